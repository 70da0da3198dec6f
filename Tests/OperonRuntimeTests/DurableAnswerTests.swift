import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTestKit
import Testing

/// What clients are told is on the disk by then.
@Suite(.timeLimit(.minutes(5))) struct DurableAnswerTests {
    private let store = InMemoryStore(reign: Reign(rawValue: 5))

    private func withCluster(_ body: (ManualCluster) async throws -> Void) async throws {
        var scheduler = Scheduler.Configuration()
        // The worker says only what the test makes it say.
        scheduler.lease = .seconds(3_600)
        try await ManualCluster.run(store, scheduler: scheduler, body)
    }

    @Test func `cancel with a wait is answered when the end is on the disk`() async throws {
        try await withCluster { cluster in
            try await cluster.join(slots: 1)
            let wait = OperationDescription(name: "a", work: .wait(.seconds(3_600)))
            let graph = GraphDescription(name: "g", operations: [wait])
            _ = try await cluster.client.submit(Submission(graph: graph))
            let id = OperationID(graph: GraphID(rawValue: 0), index: 0)
            let held = try await cluster.dispatched("a").held
            // It runs: cancelling it ends nothing.
            try await cluster.report(1, .started(held, at: SystemClock.now()))
            #expect(await cluster.service.query { $0.state(of: id) } == .executing)
            try await cluster.service.kept()

            await store.holdSyncs()
            let answered = Latch()
            let answer = Task {
                defer { answered.open() }
                var request = CancelRequest()
                request.wait = 3_600
                return try await cluster.client.cancel(.graph("g"), request)
            }
            // The first sync has the request, and only that.
            await store.waitForHeldSync(number: 1)
            let now = SystemClock.now()
            let result = AttemptResult(end: .cancelled, startedAt: now, endedAt: now)
            try await cluster.report(2, .finished(held, result))
            #expect(await cluster.service.query { $0.outcome(of: id) } != nil)
            await store.letSyncGo()
            await store.waitForHeldSync(number: 2)

            // It waits for the second, or has not.
            while await cluster.service.waiterCount == 0, !answered.isOpen {
                try await Task.sleep(for: .milliseconds(1))
            }
            #expect(!answered.isOpen)
            await store.letSyncGo(all: true)
            #expect(try await answer.value.isEffective)
        }
    }

    @Test func `a refusal is told when what it tells is on the disk`() async throws {
        try await withCluster { cluster in
            let approve = OperationDescription(name: "a", work: .external(input: .empty))
            let graph = GraphDescription(name: "g", operations: [approve])
            _ = try await cluster.client.submit(Submission(graph: graph))
            let selector = OperationSelector(graph: "g", operation: "a")
            let id = OperationID(graph: GraphID(rawValue: 0), index: 0)

            await store.holdSyncs()
            let first = Task {
                try await cluster.client.complete(selector, attempt: nil, with: .succeeded(.empty))
            }
            await store.waitForHeldSync(number: 1)
            #expect(await cluster.service.query { $0.outcome(of: id) } == .succeeded)
            let waiting = await cluster.service.waiterCount
            let refused = Latch()
            let second = Task {
                defer { refused.open() }
                return try await cluster.client.complete(
                    selector,
                    attempt: nil,
                    with: .cancelled(reason: "late")
                )
            }
            while await cluster.service.waiterCount <= waiting, !refused.isOpen {
                try await Task.sleep(for: .milliseconds(1))
            }
            #expect(!refused.isOpen)
            await store.letSyncGo(all: true)
            _ = try await first.value
            let error = await #expect(throws: ClientError.self) { try await second.value }
            #expect(error?.refusal == .alreadyFinished(name: "0/a"))
        }
    }

    @Test func `whoever waits no longer leaves nothing behind`() async throws {
        try await withCluster { cluster in
            let wait = OperationDescription(name: "a", work: .wait(.seconds(3_600)))
            let graph = GraphDescription(name: "g", operations: [wait])
            _ = try await cluster.client.submit(Submission(graph: graph))
            let queue = try #require(try await cluster.client.queues().first?.name)
            for _ in 0..<10 {
                _ = try await cluster.client.waitUntilEmpty(queue: queue, within: 0.01)
            }
            let reader = Task {
                var events = try await cluster.client.events(after: nil, graph: nil)
                    .makeAsyncIterator()
                return try await events.next()
            }
            while await cluster.service.waiterCount == 0 {
                try await Task.sleep(for: .milliseconds(1))
            }
            #expect(await cluster.service.waiterCount == 1)
            reader.cancel()
            _ = await reader.result

            #expect(await cluster.service.waiterCount == 0)
        }
    }

    @Test func `suspend with a wait is answered when the last recall is on the disk`()
        async throws
    {
        try await withCluster { cluster in
            try await cluster.join(slots: 1)
            let wait = OperationDescription(name: "a", work: .wait(.seconds(3_600)))
            let graph = GraphDescription(name: "g", operations: [wait])
            _ = try await cluster.client.submit(Submission(graph: graph))
            let id = OperationID(graph: GraphID(rawValue: 0), index: 0)
            let held = try await cluster.dispatched("a").held
            try await cluster.service.kept()

            await store.holdSyncs()
            let answered = Latch()
            let answer = Task {
                defer { answered.open() }
                var request = SuspendRequest()
                request.wait = 3_600
                return try await cluster.client.suspend(.graph("g"), request)
            }
            // The first sync has the request, and only that.
            await store.waitForHeldSync(number: 1)
            try await cluster.report(1, .returned(held))
            #expect(await cluster.service.query { $0.isEffective(.graph(id.graph)) })
            await store.letSyncGo()
            await store.waitForHeldSync(number: 2)

            // It waits for the second, or has not.
            while await cluster.service.waiterCount == 0, !answered.isOpen {
                try await Task.sleep(for: .milliseconds(1))
            }
            #expect(!answered.isOpen)
            await store.letSyncGo(all: true)
            #expect(try await answer.value.isEffective)
        }
    }

    @Test func `a wait that takes too long is a timeout, and the command counts all the same`()
        async throws
    {
        try await withCluster { cluster in
            try await cluster.join(slots: 1)
            let wait = OperationDescription(name: "a", work: .wait(.seconds(3_600)))
            let graph = GraphDescription(name: "g", operations: [wait])
            _ = try await cluster.client.submit(Submission(graph: graph))
            // The worker has it, and says nothing.
            _ = try await cluster.dispatched("a")

            var suspend = SuspendRequest()
            suspend.wait = 0.01
            let late = await #expect(throws: ClientError.self) {
                _ = try await cluster.client.suspend(.graph("g"), suspend)
            }
            var cancel = CancelRequest()
            cancel.wait = 0.01
            let later = await #expect(throws: ClientError.self) {
                _ = try await cluster.client.cancel(.graph("g"), cancel)
            }

            #expect(late?.code == .timedOut && later?.code == .timedOut)
            let view = try await cluster.client.graph("g")
            #expect(view.status == .cancelling && view.suspension != nil)
        }
    }
}
