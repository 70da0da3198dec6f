import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTestKit
import Synchronization
import Testing

/// A run whose state is kept, and that goes on after its process died.
@Suite(.timeLimit(.minutes(5))) struct ResumedRunTests {
    private let store = InMemoryStore(reign: Reign(rawValue: 5))
    private let graph = GraphDescription(
        name: "g",
        operations: ["before", "after"].map { name in
            OperationDescription(name: name, work: .registered(kind: "K", input: .empty))
        }
    )
    private let failure = AttemptResult(
        end: .failed(.exit(code: 1)),
        startedAt: .zero,
        endedAt: .zero,
        output: .empty
    )

    @discardableResult
    private func takeUp(
        _ service: CoordinatorService,
        _ other: GraphDescription? = nil
    ) async throws -> RestoredRun {
        let graph = other ?? graph
        let compiled = try CompiledGraph.compile(graph)
        let plan = try await service.planRun(graph, compiled: compiled, again: [])
        let restored = Mutex<RestoredRun?>(nil)
        try await service.takeUp(plan, traceParent: "") { run in restored.withLock { $0 = run } }
        return try #require(restored.withLock { $0 })
    }

    /// The first process of the run.
    private func runUntilBeforeFails() async throws {
        try await ManualCluster.run(store) { cluster in
            try await takeUp(cluster.service)
            try await cluster.join(slots: 1, kinds: ["K"])
            let held = try await cluster.dispatched("before").held
            try await cluster.report(1, .started(held, at: .zero), .finished(held, failure))
            try await cluster.service.kept()
        }
    }

    @Test func `what fails before the run has asked what to try again failed in this run`()
        async throws
    {
        let id = GraphID(rawValue: 0)
        try await runUntilBeforeFails()
        try await ManualCluster.run(store) { cluster in
            try await cluster.service.prepareRun(of: id)
            // Its worker is there before it has compared the file, and has lost what it held.
            try await cluster.join(slots: 1, kinds: ["K"])
            let held = try await cluster.dispatched("after").held
            try await cluster.report(1, .started(held, at: .zero), .finished(held, failure))
            let restored = try await takeUp(cluster.service)
            // Its notice tells that “after” failed, so it is missing in `before`.
            #expect(restored.before.map(\.outcome) == [nil, nil])
            #expect(restored.now.map(\.outcome) == [nil, .failed(.exit(code: 1))])
            #expect(!restored.wasCancelled)

            _ = try await cluster.dispatched("before")
            let outcome = await cluster.service.query {
                $0.outcomeKind(of: OperationID(graph: id, index: 1))
            }
            #expect(outcome == .failed)
        }
    }

    @Test func `what is cancelled before the run has asked what to try again stays cancelled`()
        async throws
    {
        let id = GraphID(rawValue: 0)
        try await runUntilBeforeFails()
        try await ManualCluster.run(store) { cluster in
            try await cluster.service.prepareRun(of: id)
            _ = try await cluster.client.cancel(.graph("g"), CancelRequest())
            try await takeUp(cluster.service)

            let outcomes = await cluster.service.query { scheduler in
                (0..<2).map { scheduler.outcomeKind(of: OperationID(graph: id, index: $0)) }
            }
            #expect(outcomes == [.failed, .cancelled])
        }
    }

    @Test func `a signal while a run waits for what was cancelled before is not forgotten`()
        async throws
    {
        let id = GraphID(rawValue: 0)
        try await runUntilBeforeFails()
        try await ManualCluster.run(store) { cluster in
            _ = try await cluster.client.cancel(.graph("g"), CancelRequest())
            try await cluster.service.kept()
        }
        try await ManualCluster.run(store) { cluster in
            try await cluster.service.prepareRun(of: id)
            try await cluster.service.cancelRun(id, reason: "interrupted")
            try await takeUp(cluster.service)

            let outcomes = await cluster.service.query { scheduler in
                (0..<2).map { scheduler.outcomeKind(of: OperationID(graph: id, index: $0)) }
            }
            #expect(outcomes == [.failed, .cancelled])
        }
    }

    @Test func `a signal while a run reads outputs from its disk is not forgotten`() async throws {
        let id = GraphID(rawValue: 0)
        var graph = graph
        graph.operations[1].dependencies = [DependencyDescription("before")]
        // No worker has it.
        let pending = Work.registered(kind: "L", input: .empty)
        graph.operations.append(OperationDescription(name: "pending", work: pending))
        try await ManualCluster.run(store) { cluster in
            try await takeUp(cluster.service, graph)
            try await cluster.join(slots: 1, kinds: ["K"])
            var success = failure
            success.end = .succeeded
            success.output = Payload(bytes: Array("1".utf8))
            for (number, (name, result)) in zip(
                [UInt64(1), 3],
                [("before", success), ("after", failure)]
            ) {
                let held = try await cluster.dispatched(name).held
                let finished = WorkerEvent.finished(held, result)
                try await cluster.report(number, .started(held, at: .zero), finished)
            }
            try await cluster.service.kept()
        }
        try await ManualCluster.run(store) { cluster in
            let service = cluster.service
            let cancels = Mutex(0)
            await store.whileReading {
                await #expect(throws: Never.self) {
                    try await service.cancelRun(id, reason: "interrupted")
                }
                cancels.withLock { $0 += 1 }
            }
            try await service.prepareRun(of: id)
            try await cluster.join(slots: 1, kinds: ["K"])
            let restored = try await takeUp(service, graph)

            #expect(cancels.withLock { $0 } == 1)
            #expect(restored.before.map { $0.outcome?.kind } == [.succeeded, .failed, nil])
            // Had “after” been reopened, its worker would have got it.
            #expect(restored.now.map { $0.outcome?.kind } == [.succeeded, .failed, .cancelled])
        }
    }

    @Test func `a run that was cancelled before knows it when it goes on`() async throws {
        try await runUntilBeforeFails()
        try await ManualCluster.run(store) { cluster in
            _ = try await cluster.client.cancel(.graph("g"), CancelRequest())
            try await cluster.service.kept()
        }
        try await ManualCluster.run(store) { cluster in
            try await cluster.service.prepareRun(of: GraphID(rawValue: 0))
            let restored = try await takeUp(cluster.service)
            #expect(restored.wasCancelled)
            #expect(restored.before == restored.now)
            #expect(restored.now.map(\.outcome) == [nil, nil])
        }
    }
}
