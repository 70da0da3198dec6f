import Foundation
import Glibc
import OperonFaultKit
import OperonModel
import Testing

/// `operon up`, from submission to the next life.
@Suite struct UpTests {
    @Test func `its own worker is a part of it, and cannot be drained`() async throws {
        try await Scene.play { scene in
            let up = try await Up(scene)
            let drain = try await up.operon("drain", "local")
            #expect(drain.end == .exit(2))
            #expect(drain.errors.contains("a part of the coordinator"), "\(drain.errors)")
        }
    }

    @Test func `what failed runs again with its inputs, and graphs grow, whoever died meanwhile`()
        async throws
    {
        try await Scene.play { scene in
            let demo = try scene.write(
                "demo.yaml",
                """
                name: demo
                operations:
                  a: { run: 'echo "\\"A\\"" > $OPERON_OUTPUT' }
                  bad: { run: 'test -e fixed && cat $OPERON_INPUTS > bad.in', dependencies: [a] }
                  after: { run: touch after, dependencies: [bad] }
                """
            )
            let up = try await Up(scene)
            #expect(try await up.operon("submit", demo, "--wait").end == .exit(1))
            #expect(!FileManager.default.fileExists(atPath: scene.path("after")))

            _ = try scene.write("fixed", "")
            #expect(try await up.operon("retry", "demo", "--failed").end == .exit(0))
            #expect(try await up.operon("wait", "demo").end == .exit(0))
            #expect(try scene.read("bad.in").contains(#""a":"A""#))
            #expect(FileManager.default.fileExists(atPath: scene.path("after")))

            try await up.restart()
            let base = try scene.write(
                "base.yaml",
                """
                name: base
                operations:
                  one: { run: 'echo 1 > $OPERON_OUTPUT', dependencies: [demo/after] }
                """
            )
            #expect(try await up.operon("submit", base, "--open").end == .exit(0))
            let more = try scene.write(
                "more.yaml",
                """
                operations:
                  two: { run: 'cat $OPERON_INPUTS > two.in', dependencies: [one] }
                """
            )
            let added = try await up.operon("submit", more, "--graph", "base")
            #expect(added.end == .exit(0), "\(added.errors)")

            try await up.restart()
            let three = try scene.write(
                "three.yaml",
                """
                operations:
                  three: { run: 'cat $OPERON_INPUTS > three.in', dependencies: [one, two] }
                """
            )
            #expect(try await up.operon("submit", three, "--graph", "base").end == .exit(0))
            #expect(try await up.operon("graph", "close", "base").end == .exit(0))
            let late = try await up.operon("submit", more, "--graph", "base")
            #expect(late.end == .exit(2), "\(late.errors)")
            let ended = try await up.operon("wait", "base")
            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(try scene.read("two.in").contains(#""one":1"#))
            #expect(try scene.read("three.in").contains(#""one":1"#))
        }
    }

    @Test func `what a second Ctrl-C ends is given back, and runs again`() async throws {
        try await Scene.play { scene in
            let file = try scene.write(
                "long.yaml",
                """
                name: long
                operations:
                  a:
                    run: trap '' TERM; echo $$ >> runs; until test -e go; do sleep 0.05; done
                    retry: { limit: 0 }
                """
            )
            let up = try await Up(scene)
            #expect(try await up.operon("submit", file).end == .exit(0))
            try await scene.waitForFile("runs")
            let ended = try await up.interruptTwice()
            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(scene.lines(of: "runs").count == 1)
            let first = try #require(scene.lines(of: "runs").first.flatMap { pid_t($0) })
            #expect(!scene.processes().contains(first), "it was ended with its coordinator")

            try await up.begin()
            _ = try scene.write("go", "")
            let waited = try await up.operon("wait", "long")
            #expect(waited.end == .exit(0), "\(waited.errors)")
            let shown = try await up.operon("show", "long/a", "--output", "json")
            let detail = try JSONDecoder().decode(
                OperationDetail.self,
                from: Data(shown.output.utf8)
            )
            #expect(detail.attempts.map(\.ending) == ["returned", "succeeded"])
            #expect(scene.lines(of: "runs").count == 2)
        }
    }
}

/// `operon up` in a scene, from life to life.
final class Up {
    private let scene: Scene
    private(set) var program: Program
    private(set) var address = "127.0.0.1:0"

    private let options: [String]

    init(_ scene: Scene, _ options: String...) async throws {
        self.scene = scene
        self.options = options
        program = try Self.start(in: scene, address, options)
        try await findAddress()
    }

    private static func start(
        in scene: Scene,
        _ address: String,
        _ options: [String]
    ) throws -> Program {
        let arguments = ["up", "--store", scene.path("graphs.db"), "--listen", address]
        return try scene.start("operon", arguments + ["--slots", "2"] + options)
    }

    private func findAddress() async throws {
        try await program.says("answers at ")
        // In a sentence, or in an object.
        let rest = program.errors.text.split(separator: "answers at ").last ?? ""
        address = String(rest.prefix { !$0.isWhitespace && $0 != "\"" })
    }

    func restart() async throws {
        program.signal(SIGKILL)
        #expect(try await program.end().end == .signal(SIGKILL))
        try await begin()
    }

    func interruptTwice() async throws -> Ended {
        program.signal(SIGINT)
        try await program.says("ends; what it keeps is taken up at the next start")
        program.signal(SIGINT)
        return try await program.end()
    }

    /// Its next life.
    func begin() async throws {
        program = try Self.start(in: scene, address, options)
        try await findAddress()
    }

    func operon(_ arguments: String...) async throws -> Ended {
        try await scene.operon(
            arguments,
            environment: ["OPERON_COORDINATOR": "http://\(address)"]
        )
    }
}
