import Foundation
import OperonGraphFile
import OperonModel
import Testing

/// The default limits at full size. Some 90 s in a debug build, so only where asked for, as
/// `scripts/test` does: `OPERON_LARGE_TESTS=1 swift test --filter LargeFileTests`. Prints what it
/// took.
@Suite(
    .serialized,
    .enabled(if: ProcessInfo.processInfo.environment["OPERON_LARGE_TESTS"] == "1")
)
struct LargeFileTests {
    /// Lines of a layered graph: each operation waits for two of those before it.
    private static func line(_ index: Int) -> String {
        let names = [index - 1, index - 17].filter { $0 >= 0 }.map { "\"operation-\($0)\"" }
        return #"{"name": "operation-\#(index)", "run": "echo \#(index)", "dependencies": ["#
            + names.joined(separator: ", ") + "]}\n"
    }

    private static func measured(_ what: String, _ body: () throws -> Void) rethrows {
        let elapsed = try ContinuousClock().measure(body)
        print("\(what): \(elapsed)")
    }

    /// `LimitTests` refuse one more, with a lower limit.
    @Test func `as many lines as a graph may have are read`() throws {
        let count = Limits().operationsPerGraph
        let text = (0..<count).map(Self.line).joined()
        try Fixture.withFile("g.jsonl", Array(text.utf8)) { path in
            try Self.measured("\(count) lines of JSON, \(text.utf8.count) bytes") {
                let file = try GraphFile.read(path: path)
                #expect(file.graph.operations.count == count)
                #expect(file.graph.operations.last?.dependencies.count == 2)
                #expect(file.sourceMap.place(ofOperation: count - 1)?.line == count)
            }
        }
    }

    @Test func `a hundred thousand operations in YAML are read and one more is refused`() throws {
        var text = Sample.yaml(operations: 100_000)
        try Self.measured("100,000 operations in YAML, \(text.utf8.count) bytes") {
            let graph = try Fixture.read(text, "g.yaml").graph
            #expect(graph.operations.count == 100_000)
        }
        text += "  one-more: {wait: 1}\n"
        let problems = Fixture.problems(text, "g.yaml")
        #expect(problems.map(\.limit) == [.yamlOperations])
        #expect(problems.first?.line == 100_002)
    }

    @Test func `the dependency after ten million is refused, with its line`() throws {
        let names = (0..<10_000).map { "d\($0)" }
        let list = names.map { "\"\($0)\"" }.joined(separator: ",")
        let text = (0..<1_000)
            .map { #"{"name":"o\#($0)","wait":1,"dependencies":[\#(list)]}"# + "\n" }
            .joined()
        let over = #"{"name":"over","wait":1,"dependencies":["d0"]}"#
        let problems = Fixture.problems(text + over, "g.jsonl")
        #expect(problems.map(\.limit) == [.edgesPerGraph])
        #expect(problems.map(\.line) == [1_001])
    }

    @Test func `a file of 256 MiB is read and of one byte more is refused`() throws {
        let graph = Array(#"{"operations": {"a": {"wait": 1}}}"#.utf8)
        let bytes = graph + [UInt8](repeating: 0x20, count: (256 << 20) - graph.count)
        #expect(try GraphFile.read(bytes: bytes, file: "g.json").graph.operations.count == 1)
        let error = #expect(throws: GraphFileError.self) {
            try GraphFile.read(bytes: bytes + [0x20], file: "g.json")
        }
        #expect(error?.problems.map(\.limit) == [.graphFileBytes])
    }
}
