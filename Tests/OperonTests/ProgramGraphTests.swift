import Operon
import Testing

/// Graph files from code.
@Suite(.timeLimit(.minutes(10))) struct ProgramGraphTests {
    @Test func aGraphFileIsSubmittedFromCode() async throws {
        let cluster = Cluster.inProcess(slots: 2)
        try await cluster.register(.on(Doubled.self), .on(SumOfInputs.self))
        let graph = try GraphDescription(
            text: """
                name: sums
                operations:
                  one: { operation: Doubled, input: { number: 1 } }
                  two: { operation: Doubled, input: { number: 2 } }
                  sum: { operation: SumOfInputs, dependencies: [one, two] }
                  wrong: { run: exit 3 }
                """
        )
        let again = try GraphDescription(text: try graph.text())
        #expect(again == graph)
        let submitted = try await cluster.submit(graph)
        #expect(submitted.name == "sums")
        let ends = try await submitted.waitUntilFinished()
        #expect(ends == [.succeeded: 3, .failed: 1, .cancelled: 0, .skipped: 0])
        let wrong = try await submitted.operation(named: "wrong")
        #expect(try await wrong.finalOutcome() == .failed(.exit(code: 3)))
        let sum = try await submitted.operation(named: "sum")
        let typed = try await cluster.handle(try #require(sum.id), of: SumOfInputs.self)
        #expect(try await typed.value == 6)
        await cluster.close()
    }

    @Test func anotherOperationMayHaveItsNumberAsName() async throws {
        let cluster = Cluster.inProcess(slots: 2)
        try await cluster.register(.on(Doubled.self))
        let graph = try GraphDescription(
            text: """
                operations:
                  "1": { operation: Doubled, input: { number: 10 } }
                  "0": { operation: Doubled, input: { number: 20 } }
                """
        )
        let submitted = try await cluster.submit(graph)
        try await submitted.waitUntilFinished()
        for (name, expected) in [("1", 20), ("0", 40)] {
            let handle = try await submitted.operation(named: name)
            #expect(handle.name == name)
            let typed = try await cluster.handle(try #require(handle.id), of: Doubled.self)
            #expect(try await typed.value == expected)
            // As people write it, on a command line, and in addresses.
            let byNumber = try await submitted.operation(named: "@\(name)")
            #expect(byNumber.name != name)
        }
        await #expect(throws: OperonError.self) {
            try await submitted.operation(named: "@2")
        }
        await cluster.close()
    }

    @Test func whatIsWrongWithAFileHasAPlace() throws {
        let error = #expect(throws: GraphFileInvalid.self) {
            _ = try GraphDescription(text: "operations:\n  a: { rum: echo }\n", name: "x.yaml")
        }
        #expect(error?.problems.first?.line == 2)
        #expect("\(try #require(error))".hasPrefix("x.yaml:2:"))
    }

    @Test func aKeySubmitsOnce() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let graph = try GraphDescription(text: "{\"operations\": {\"a\": {\"wait\": \"0s\"}}}")
        let first = try await cluster.submit(graph, idempotencyKey: "k")
        let second = try await cluster.submit(graph, idempotencyKey: "k")
        let third = try await cluster.submit(graph)
        #expect(first.id == second.id)
        #expect(first.id != third.id)
        await cluster.close()
    }
}
