import ClusterKit
import OperonCore
import OperonFaultKit
import OperonModel
import OperonRuntime
import Testing

/// A coordinator and a worker in one process, with pieces so small that short outputs are fetched.
@Suite(.timeLimit(.minutes(5))) struct FetchedInputsTests {
    private static var limits: Limits {
        var limits = Limits()
        limits.inlineInputBytes = 70
        limits.chunkBytes = 100
        limits.chunksAhead = 2
        limits.cachedBytes = 1_000
        return limits
    }

    /// What became of the operations of a graph, by name.
    private func run(
        _ operations: [OperationDescription],
        limits: Limits = Self.limits
    ) async throws -> [String: History.Operation] {
        var options = TestCluster.Options.real(.inProcess)
        options.scheduler.limits = limits
        // One message of one test is small.
        options.operationsPerMessage = 1
        var ended: [String: History.Operation] = [:]
        try await TestCluster.run(options) { cluster in
            try await cluster.join("w", slots: 3) { $0.eventBytesPerMessage = 1_000 }
            let graph = GraphDescription(name: "g", operations: operations)
            let id = await cluster.service.submit(
                graph,
                compiled: try CompiledGraph.compile(graph)
            )
            await cluster.service.waitUntilFinished(id)
            for (index, operation) in operations.enumerated() {
                ended[operation.name] = cluster.history.current[index]
            }
        }
        return ended
    }

    private func command(
        _ name: String,
        _ line: String,
        needs: [String] = []
    ) -> OperationDescription {
        var operation = OperationDescription(
            name: name,
            work: .command(ProcessSupport.shell(line))
        )
        operation.dependencies = needs.map { DependencyDescription($0) }
        return operation
    }

    /// An operation whose output is a number of so many digits, all alike.
    private func number(_ name: String, digit: Int, bytes: Int) -> OperationDescription {
        command(name, "printf '%0\(bytes)d' 0 | tr 0 \(digit) > $OPERON_OUTPUT")
    }

    private func digits(_ digit: Int, _ count: Int) -> String {
        String(repeating: String(digit), count: count)
    }

    @Test func `what was fetched lies between what came along, in the order of the dependencies`()
        async throws
    {
        let ended = try await run([
            number("a", digit: 1, bytes: 250),
            number("b", digit: 2, bytes: 5),
            command("c", "true"),
            number("d", digit: 3, bytes: 100),
            number("e", digit: 4, bytes: 101),
            command("join", "cat $OPERON_INPUTS", needs: ["e", "a", "b", "c", "d"]),
        ])

        #expect(ended["join"]?.outcome == .succeeded)
        #expect(
            ended["join"]?.tail
                == "{\"e\":\(digits(4, 101)),\"a\":\(digits(1, 250)),\"b\":22222,\"c\":null,"
                + "\"d\":\(digits(3, 100))}\n"
        )
    }

    @Test func `many that need much at once all get theirs, though less may be held`() async throws
    {
        let outputs = (1...8).map { number("o\($0)", digit: $0, bytes: 300) }
        let readers = (1...20).map { reader in
            let needs = (0..<5).map { "o\((reader + $0) % 8 + 1)" }
            return command("r\(reader)", "cat $OPERON_INPUTS", needs: needs)
        }

        let ended = try await run(outputs + readers)

        for reader in 1...20 {
            let parts = (0..<5).map { place in
                let output = (reader + place) % 8 + 1
                return "\"o\(output)\":\(digits(output, 300))"
            }
            #expect(ended["r\(reader)"]?.tail == "{\(parts.joined(separator: ","))}\n")
        }
    }

    @Test func `inputs at their limit go into one operation, a byte more is a failure`()
        async throws
    {
        var limits = Self.limits
        limits.inputsBytes = 500
        let ended = try await run(
            [
                number("a", digit: 1, bytes: 250),
                number("b", digit: 2, bytes: 250),
                number("c", digit: 3, bytes: 251),
                command("exact", "true", needs: ["a", "b"]),
                command("over", "true", needs: ["a", "c"]),
            ],
            limits: limits
        )

        let error = OperationError.inputTooLarge(bytes: 501, limit: 500)
        #expect(ended["exact"]?.outcome == .succeeded)
        #expect(ended["over"]?.outcome == .failed(error))
        #expect(error.description == "input of 501 bytes is over the limit of 500")
    }

    @Test func `more names than a message can carry are a failure that says so`() async throws {
        var limits = Self.limits
        limits.messageBytes = 4_000
        let names = (0..<200).map { "an-operation-with-a-long-name-\($0)" }
        let needed = names.map { OperationDescription(name: $0, work: .nothing) }

        let ended = try await run(needed + [command("join", "true", needs: names)], limits: limits)

        guard case .failed(.inputTooLarge(let bytes, 4_000)) = ended["join"]?.outcome else {
            Issue.record("it ended \(String(describing: ended["join"]?.outcome))")
            return
        }
        #expect(bytes > 4_000)
    }
}
