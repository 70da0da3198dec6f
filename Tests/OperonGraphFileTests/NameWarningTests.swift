import OperonGraphFile
import Testing

/// Queues and keys that are probably typing mistakes.
@Suite struct NameWarningTests {
    private func warnings(_ text: String) throws -> [String] {
        try Fixture.read(text, "g.yaml").nameWarnings.map(\.description)
    }

    @Test func `a queue and a key that are nearly those of the file are told once`() throws {
        let found = try warnings(
            """
            queues: { net: { maxConcurrentOperationCount: 2 } }
            keys: { disk: { limit: 2 } }
            operations:
              a: { wait: 1s, queue: nte }
              b: { wait: 1s, queue: nte, exclusive: dsik }
            """
        )
        #expect(
            found == [
                "g.yaml:4:3: the file declares no queue “nte”, and nothing uses its queue “net”: "
                    + "did you mean that?",
                "g.yaml:5:3: the file declares no key “dsik”, and nothing uses its key “disk”: did "
                    + "you mean that?",
            ]
        )
    }

    @Test func `so is one while the right one is used as well`() throws {
        let found = try warnings(
            """
            queues: { slow: { maxConcurrentOperationCount: 1 } }
            operations:
              a: { wait: 1s, queue: slow }
              b: { wait: 1s, queue: slwo }
            """
        )
        #expect(
            found == ["g.yaml:4:3: the file declares no queue “slwo”: did you mean “slow”?"]
        )
    }

    /// A generated file: 1,000 queues are declared, and operations use others.
    @Test(arguments: [(others: 50, found: 1), (others: 150, found: 0)])
    func `after many comparisons no more names are compared`(others: Int, found: Int) throws {
        let declared = ["net: {}"] + (1..<1_000).map { "declared\($0): {}" }
        let used = (0..<others).map { String(repeating: "z", count: 20 + $0) } + ["nte"]
        let operations = used.map { "{ name: on-\($0), wait: 1s, queue: \($0) }" }
        let text = """
            queues: { \(declared.joined(separator: ", ")) }
            operations: [\(operations.joined(separator: ", "))]
            """
        #expect(try warnings(text).count == found)
    }

    @Test(arguments: [
        // One of several.
        "queues: { gpu1: {} }\noperations: { a: { wait: 1s, queue: gpu1 }, "
            + "b: { wait: 1s, queue: gpu2 } }",
        // Of another graph.
        "queues: { net: {} }\noperations: { a: { wait: 1s, queue: archive } }",
        // Nothing is declared.
        "operations: { a: { wait: 1s, queue: net }, b: { wait: 1s, exclusive: nte } }",
        "queues: { net: {} }\noperations: { a: { wait: 1s } }",
    ]) func `what may be meant is no mistake`(text: String) throws {
        #expect(try warnings(text) == [])
    }
}
