import CZlib
import Foundation
import Testing

/// The example with operations in Swift, as its page says to run it.
@Suite(.serialized, .timeLimit(.minutes(5))) struct MandelbrotTests {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    private static let graph = root.appendingPathComponent(
        "Examples/mandelbrot/mandelbrot.jsonl"
    )

    @Test func `two workers draw the picture that the README shows`() async throws {
        try await Workspace.run { workspace in
            let broker = try BrokerUsers().worker
            let workers = try ["a", "b"].map { name in
                try workspace.start(
                    "mandelbrot",
                    [
                        "--worker", "--broker", broker, "--prefix", workspace.prefix,
                        "--name", name, "--slots", "1",
                    ]
                )
            }
            for worker in workers { try await worker.says("worker serves") }
            let options = ["--output", "json"]
            let run = try workspace.startRun(Self.graph.path, on: .broker, options)
            let ended = try await run.end()

            #expect(ended.end == .exit(0), "\(ended.errors)")
            let report = try ended.report()
            report.expectSuccess(attempts: 1)
            // Both, unless one comes so late that nothing is left for it.
            #expect(Set(report.operations.map(\.worker)).isSubset(of: ["a", "b"]))
            let drawn = try Picture(
                Data(contentsOf: URL(filePath: workspace.path("mandelbrot.png")))
            )
            try Self.check(drawn)
            for worker in workers {
                worker.signal(SIGTERM)
                #expect(try await worker.end().end == .exit(0))
            }
        }
    }

    @Test func `a worker that is killed meanwhile costs attempts and no tile`() async throws {
        try await Workspace.run { workspace in
            let broker = try BrokerUsers().worker
            let workers = try ["a", "b"].map { name in
                try workspace.start(
                    "mandelbrot",
                    [
                        "--worker", "--broker", broker, "--prefix", workspace.prefix,
                        "--name", name, "--slots", "1",
                    ]
                )
            }
            let run = try workspace.startRun(Self.graph.path, on: .broker, ["--output", "json"])
            try await run.says("[10/65]")
            workers[0].signal(SIGKILL)
            let ended = try await run.end()

            #expect(ended.end == .exit(0), "\(ended.errors)")
            let drawn = try Picture(
                Data(contentsOf: URL(filePath: workspace.path("mandelbrot.png")))
            )
            try Self.check(drawn)
        }
    }

    @Test func `the graph is what the program prints`() async throws {
        try await Workspace.run { workspace in
            let ended = try await workspace.start("mandelbrot", ["--graph"]).end()

            #expect(ended.end == .exit(0))
            let text = try String(contentsOf: Self.graph, encoding: .utf8)
            #expect(ended.output == text)
        }
    }

    private static func check(_ drawn: Picture) throws {
        let shown = try Picture(
            Data(contentsOf: root.appendingPathComponent("docs/images/mandelbrot.png"))
        )
        #expect(drawn.width == 800 && drawn.height == 560)
        #expect(drawn.palette.count == 64 * 3 && drawn.palette == shown.palette)
        try #require(drawn.pixels.count == shown.pixels.count)
        // Another machine's logarithm may round a pixel to the next colour.
        let different = zip(drawn.pixels, shown.pixels).count { $0 != $1 }
        #expect(different < drawn.pixels.count / 1_000)
        // Of the set, and far from it: by hand.
        #expect(drawn[x: 799, y: 0] == 0)
        #expect(drawn[x: 0, y: 300] != 0)
    }
}

/// A picture with a palette, read as strictly as it is simple to.
private struct Picture {
    private(set) var width = 0
    private(set) var height = 0
    private(set) var palette: [UInt8] = []
    /// Places in the palette, row by row.
    private(set) var pixels: [UInt8] = []

    init(_ file: Data) throws {
        var rest = Array(file)[...]
        guard rest.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) else {
            throw CommandFailure("no PNG")
        }
        rest = rest.dropFirst(8)
        var names: [String] = []
        var data: [UInt8] = []
        while !rest.isEmpty {
            let length = Self.number(rest.prefix(4))
            let checked = Array(rest.dropFirst(4).prefix(4 + length))
            let sum = Self.number(rest.dropFirst(8 + length).prefix(4))
            guard Int(crc32(0, checked, uInt(checked.count))) == sum else {
                throw CommandFailure("the check sum of a chunk is wrong")
            }
            rest = rest.dropFirst(12 + length)
            let name = String(decoding: checked.prefix(4), as: UTF8.self)
            names.append(name)
            switch name {
            case "IHDR":
                width = Self.number(checked[4..<8])
                height = Self.number(checked[8..<12])
                #expect(Array(checked[12...]) == [8, 3, 0, 0, 0])
            case "PLTE": palette = Array(checked.dropFirst(4))
            case "IDAT": data += checked.dropFirst(4)
            default: break
            }
        }
        #expect(names == ["IHDR", "PLTE", "IDAT", "IEND"])
        try read(data)
    }

    private mutating func read(_ data: [UInt8]) throws {
        var rows = [UInt8](repeating: 0, count: (width + 1) * height)
        var count = uLong(rows.count)
        let code = uncompress(&rows, &count, data, uLong(data.count))
        guard code == Z_OK, Int(count) == rows.count else {
            throw CommandFailure("the pixels cannot be read: \(code)")
        }
        for row in 0..<height {
            let line = rows[row * (width + 1)..<(row + 1) * (width + 1)]
            guard line.first == 0 else { throw CommandFailure("a row has a filter") }
            pixels += line.dropFirst()
        }
    }

    subscript(x x: Int, y y: Int) -> UInt8 { pixels[y * width + x] }

    private static func number(_ bytes: some Sequence<UInt8>) -> Int {
        bytes.reduce(0) { $0 << 8 | Int($1) }
    }
}
