import OperonGraphFile
import OperonModel
import Testing

/// Refusals of the whole graph get the place in the file that they are about.
@Suite struct LocatedTests {
    static let text = """
        operations:
          fetch: { run: a, dependencies: [pack] }
          build:
            run: b
            dependencies:
              - fetch
              - fetsh
          pack: { run: c, dependencies: { build: finished } }
          alone: { run: d, dependencies: [alone] }
        """

    private func located(_ refusal: Refusal) throws -> String {
        try Fixture.read(Self.text, "g.yaml").located(refusal).description
    }

    @Test func `a cycle is shown where its first operation names the second`() throws {
        let refusal = Refusal.dependencyCycle(path: ["build", "fetch", "pack", "build"])
        #expect(
            try located(refusal)
                == "g.yaml:6:9: dependency cycle: build → fetch → pack → build"
        )
    }

    @Test func `an operation that waits for itself is shown at that dependency`() throws {
        let refusal = Refusal.dependencyCycle(path: ["alone", "alone"])
        #expect(try located(refusal) == "g.yaml:9:35: dependency cycle: alone → alone")
    }

    @Test func `an unknown operation is shown where it is named, with what may be meant`() throws {
        let refusal = Refusal.unknownOperation(name: "fetsh", namedBy: "build")
        #expect(
            try located(refusal)
                == "g.yaml:7:9: “build” depends on “fetsh”, which does not exist; did you mean"
                + " “fetch”?"
        )
    }

    @Test func `a refusal without a place keeps the file`() throws {
        let refusal = Refusal.limitExceeded(limit: .queues, value: 5, maximum: 4)
        let error = try Fixture.read(Self.text, "g.yaml").located(refusal)
        #expect(error.description == "g.yaml: queues in a graph: 5 is over the limit of 4")
        #expect(error.problems.map(\.limit) == [.queues])
        #expect(try located(.unknownOperation(name: "x", namedBy: "y")).hasPrefix("g.yaml: "))
        #expect(try located(.invalid(field: "f", why: "w")) == "g.yaml: f: w")
    }

    @Test func `an invalid field of an operation is shown at that operation`() throws {
        let refusal = Refusal.invalid(field: "timeout of “build”", why: "it is negative")
        #expect(try located(refusal) == "g.yaml:3:3: timeout of “build”: it is negative")
    }

    @Test func `every operation has its place, whatever the format`() throws {
        let yaml = try Fixture.read(Self.text, "g.yaml")
        #expect(yaml.sourceMap.place(ofOperation: 0)?.line == 2)
        #expect(yaml.sourceMap.place(ofOperation: 3)?.line == 9)
        #expect(yaml.sourceMap.place(ofOperation: 3)?.column == 3)
        #expect(yaml.sourceMap.place(ofOperation: 4) == nil)
        let lines = try Fixture.read(
            "{\"name\": \"g\"}\r\n\n{\"run\": \"ls\", \"name\": \"é\"}",
            "g.jsonl"
        )
        #expect(lines.sourceMap.place(ofOperation: 0)?.line == 3)
        #expect(lines.sourceMap.place(ofOperation: 0)?.column == 23)
    }
}
