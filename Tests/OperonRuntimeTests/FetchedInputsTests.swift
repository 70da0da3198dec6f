import Logging
import OperonCore
import OperonModel
import OperonPorts
import Testing

@testable import OperonRuntime

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

    /// What became of the operations of a graph: outcomes and logs by name.
    private struct Ended {
        var outcomes: [String: Outcome] = [:]
        var logs: [String: String] = [:]
    }

    private final class Notes: Sendable {
        let stream: AsyncStream<[Scheduler.Notice]>
        let continuation: AsyncStream<[Scheduler.Notice]>.Continuation

        init() { (stream, continuation) = AsyncStream.makeStream() }
    }

    private func run(
        _ operations: [OperationDescription],
        limits: Limits = Self.limits
    ) async throws -> Ended {
        let graph = GraphDescription(name: "g", operations: operations)
        var configuration = Scheduler.Configuration()
        configuration.limits = limits
        let hub = InProcessHub()
        let notes = Notes()
        let coordinator = CoordinatorService(
            scheduler: Scheduler(
                configuration: configuration,
                reign: Reign(rawValue: 1),
                epoch: Epoch(rawValue: 1)
            ),
            transport: hub.makeCoordinator(),
            logger: Logger(label: "test"),
            // One message of one test is small.
            operationsPerMessage: 1
        ) { notices, _ in notes.continuation.yield(notices) }
        return try await ProcessSupport.withRunner { runner in
            let incarnation = Incarnation(rawValue: 5)
            var agent = WorkerAgent.Configuration(
                name: "w",
                incarnation: incarnation,
                host: "here",
                processID: 1,
                slots: 3,
                kinds: Work.builtInKinds
            )
            agent.limits = limits
            agent.eventBytesPerMessage = 1_000
            let worker = WorkerService(
                agent: WorkerAgent(configuration: agent),
                transport: hub.makeWorker(incarnation: incarnation),
                processes: runner,
                logger: Logger(label: "test")
            )
            async let coordinating: Void = coordinator.run()
            async let working: Void = worker.run()
            try await coordinator.waitUntilConnected(within: .seconds(30))
            let id = await coordinator.submit(graph, compiled: try CompiledGraph.compile(graph))
            await coordinator.waitUntilFinished(id)
            await coordinator.shutDown()
            worker.drain(timeout: .zero)
            _ = try await (coordinating, working)
            notes.continuation.finish()
            return await ended(notes, graph)
        }
    }

    private func ended(_ notes: Notes, _ graph: GraphDescription) async -> Ended {
        var ended = Ended()
        for await notices in notes.stream {
            for notice in notices {
                switch notice {
                case .finished(let id, let outcome):
                    ended.outcomes[graph.operations[Int(id.index)].name] = outcome
                case .result(let id, _, let result):
                    ended.logs[graph.operations[Int(id.index)].name] =
                        String(decoding: result.logTail, as: UTF8.self)
                default: continue
                }
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

        #expect(ended.outcomes["join"] == .succeeded)
        #expect(
            ended.logs["join"]
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
            #expect(ended.logs["r\(reader)"] == "{\(parts.joined(separator: ","))}\n")
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
        #expect(ended.outcomes["exact"] == .succeeded)
        #expect(ended.outcomes["over"] == .failed(error))
        #expect(error.description == "input of 501 bytes is over the limit of 500")
    }

    @Test func `more names than a message can carry are a failure that says so`() async throws {
        var limits = Self.limits
        limits.messageBytes = 4_000
        let names = (0..<200).map { "an-operation-with-a-long-name-\($0)" }
        let needed = names.map { OperationDescription(name: $0, work: .nothing) }

        let ended = try await run(needed + [command("join", "true", needs: names)], limits: limits)

        guard case .failed(.inputTooLarge(let bytes, 4_000)) = ended.outcomes["join"] else {
            Issue.record("it ended \(String(describing: ended.outcomes["join"]))")
            return
        }
        #expect(bytes > 4_000)
    }
}
