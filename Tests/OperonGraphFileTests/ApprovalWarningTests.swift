import OperonGraphFile
import Testing

/// Operations that run without the approval that they seem to need.
@Suite struct ApprovalWarningTests {
    private func warnings(_ text: String) throws -> [String] {
        try Fixture.read(text, "g.yaml").warnings.map(\.description)
    }

    @Test func `an external operation that releases another when it is cancelled is told once`()
        throws
    {
        let found = try warnings(
            """
            operations:
              approve: { external: true }
              ship: { wait: 1s, dependencies: [approve] }
              tell: { wait: 1s, dependencies: [approve, ship] }
            """
        )
        #expect(
            found == [
                "g.yaml:3:36: “ship” also runs if “approve” is cancelled. If it must not, write "
                    + "{ approve: succeeded }; if it may, { approve: unlessFailed }"
            ]
        )
    }

    @Test func `one without a condition in a map is told as well`() throws {
        let text = """
            operations:
              ship: { wait: 1s, dependencies: { approve: , other: } }
              other: { wait: 1s }
              approve: { external: true }
            """
        #expect(try warnings(text).map { $0.prefix(12) } == ["g.yaml:2:37:"])
    }

    @Test(arguments: [
        "{ approve: succeeded }", "{ approve: unlessFailed }", "[approve: unlessFailed]",
        "{ approve: finished }", "[other]",
    ]) func `what says its condition is no mistake`(dependencies: String) throws {
        let text = """
            operations:
              approve: { external: true }
              other: { wait: 1s }
              ship: { wait: 1s, dependencies: \(dependencies) }
            """
        #expect(try warnings(text) == [])
    }

    @Test func `a graph that is written again says the condition`() throws {
        let text = """
            operations:
              approve: { external: true }
              ship: { wait: 1s, dependencies: { approve: unlessFailed } }
              tell: { wait: 1s, dependencies: [ship] }
            """
        let graph = try Fixture.read(text, "g.yaml").graph
        let written = String(decoding: try GraphFile.encodeJSON(graph), as: UTF8.self)
        #expect(written.contains(#""dependencies": [{"approve": "unlessFailed"}]"#))
        #expect(written.contains(#""dependencies": ["ship"]"#))
        let again = try Fixture.read(written, "g.json")
        #expect(again.warnings.isEmpty && again.graph == graph)
    }

    @Test func `twenty are told, and no more`() throws {
        let operations = (0..<30).map {
            "  approve\($0): { external: true }\n"
                + "  ship\($0): { wait: 1s, dependencies: [approve\($0)] }"
        }
        let text = "operations:\n" + operations.joined(separator: "\n")
        #expect(try warnings(text).count == 20)
    }
}
