import Foundation
import OperonGraphFile
import OperonModel
import Testing

/// Damaged files give a graph or an error with a place, never a trap.
@Suite struct MutationTests {
    /// SplitMix64 (Steele, Lea, Flood 2014): the same mutations for the same seed, everywhere.
    struct Generator: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }

    /// What parsers stumble over.
    static let fragments: [[UInt8]] =
        [
            "{", "}", "[", "]", ":", ",", "\"", "'", "\n", "\r", "\t", " ", "- ", "? ", "&a ", "*a",
            "<<",
            "*first", "!!str ", "|", ">", "#", "---", "...", "%", "@", "`", "~", "null", "true",
            "-1",
            "1e999", ".nan", "0x", "99999999999999999999", "-9223372036854775808", "0.0000000001",
            "\\u", "\\ud800", "\\", "\u{FEFF}", "\0", "é", "😀", "1d1d", "106751d", "-", ".", "+",
            "operations", "defaults", "queues", "run", "wait", "input", "9999-12-31T23:59:59Z",
            "parameters", "default", "${", "$${", "${day}", "\"${files}\"", "type: list",
            "forEach", "matrix", "1..3", "0..9..-3", "${item}", "[*]", "zip: true", "exclude",
            "resources", "workers", "{ gpus: 1 }", "8GiB", "0.0005", "notIn", "exists", "in",
            "output: list", "variables: [x]", "tile",
        ].map { Array($0.utf8) } + [[0xFF], [0xC3], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80]]

    static func mutated(
        _ original: [UInt8],
        _ other: [UInt8],
        using generator: inout Generator
    ) -> [UInt8] {
        var bytes = original
        for _ in 0..<Int.random(in: 1...4, using: &generator) {
            let at = Int.random(in: 0...bytes.count, using: &generator)
            let length = min(bytes.count - at, Int.random(in: 0...12, using: &generator))
            switch Int.random(in: 0..<6, using: &generator) {
            case 0 where at < bytes.count:
                bytes[at] = UInt8.random(in: 0...255, using: &generator)
            case 1: bytes.removeSubrange(at..<(at + length))
            case 2:
                bytes.insert(
                    contentsOf: fragments[Int.random(in: 0..<fragments.count, using: &generator)],
                    at: at
                )
            case 3: bytes.insert(contentsOf: bytes[at..<(at + length)], at: at)
            case 4:
                let from = Int.random(in: 0...other.count, using: &generator)
                bytes.insert(contentsOf: other[from..<min(from + 40, other.count)], at: at)
            default: bytes.removeSubrange(at...)
            }
            if bytes.isEmpty { bytes = original }
        }
        return bytes
    }

    /// Eight parts, so that they run side by side.
    @Test(arguments: 0..<8)
    func `twenty thousand damaged files are read or refused`(part: Int) throws {
        var seeds = try FixtureTests.files(in: "Good").map {
            (file: $0, bytes: try Fixture.bytes($0))
        }
        let others = try FixtureTests.bad.map { try Fixture.bytes($0) } + seeds.map(\.bytes)
        let task =
            #"{"name": "w", "workflow": {"specification": {"tasks": ["#
            + #"{"id": "a", "parents": []}, {"id": "b", "parents": ["a"]}]}, "#
            + #""execution": {"tasks": [{"id": "a", "runtimeInSeconds": 1.5}]}}}"#
        seeds.append((file: "workflow.json", bytes: Array(task.utf8)))
        var generator = Generator(state: 0x0FE2_0000 + UInt64(part))
        var refused = 0
        for round in 0..<2_500 {
            let (file, original) = seeds[Int.random(in: 0..<seeds.count, using: &generator)]
            let other = others[Int.random(in: 0..<others.count, using: &generator)]
            let bytes = Self.mutated(original, other, using: &generator)
            let options = GraphFileOptions(
                replayScale: file == "workflow.json" ? 2 : nil,
                directory: "/graphs",
                parameters: file.contains("parameters") ? given(using: &generator) : []
            )
            // Every fourth one also has to find out what it is.
            let name = round % 4 == 0 ? "damaged" : file
            do {
                let graph = try GraphFile.read(bytes: bytes, file: name, options: options).graph
                try Self.check(graph)
            } catch {
                refused += 1
                #expect(!error.problems.isEmpty)
                #expect(error.problems.count <= GraphFileError.problemsMax)
                // What only the check of the whole graph refuses is found when it is written.
                #expect(
                    error.problems.allSatisfy {
                        ($0.file == name || $0.file.hasPrefix("--set ") || $0.code == .unsupported)
                            && !$0.message.isEmpty
                    },
                    "\(error.problems) of \(name)"
                )
            }
        }
        #expect((500..<2_450).contains(refused), "mutations that neither break nor keep anything")
    }

    /// Values for parameters, good ones and bad ones.
    private func given(using generator: inout Generator) -> [ParameterAssignment] {
        let settings = [
            "day=x", "most=0", "most=${day}", "files=", "files=c.txt,d", "out=\0", "n=1",
        ]
        return settings.filter { _ in Int.random(in: 0..<6, using: &generator) == 0 }
            .compactMap { ParameterAssignment($0, source: "--set", directory: "/here") }
    }

    /// What is read from a damaged file can be written and read as the same graph.
    private static func check(_ graph: GraphDescription) throws(GraphFileError) {
        let written = try GraphFile.encodeJSON(graph)
        let again = try GraphFile.read(bytes: written, file: "again.json").graph
        #expect(again == graph)
    }
}
