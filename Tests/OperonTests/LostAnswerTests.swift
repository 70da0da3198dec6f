import ClusterKit
import Operon
import OperonModel
import OperonPorts
import Testing

/// Whoever waits is told, whatever becomes of the answers of a coordinator.
@Suite(.timeLimit(.minutes(5))) struct LostAnswerTests {
    private static let forbidden = ClientError(.forbidden, "You may only look.")

    @Test func whoeverWaitsForWhatIsRefusedIsTold() async throws {
        try await RemoteCluster.run { remote in
            await remote.tap.failNext("submit", with: Self.forbidden)
            await remote.tap.hold("submit")
            let handle = OperationHandle(Nothing())
            let adding = Task { try await remote.queue.addOperation(handle) }
            await remote.tap.waitForCalls("submit", 1)
            let waiting = Task { try await handle.finalOutcome() }
            let cancelling = Task { try await handle.cancel(reason: "no need") }
            // Both wait for the answer by now; one that did not come so far is told at once.
            for _ in 0..<100 { await Task.yield() }
            await remote.tap.release("submit")
            await #expect(throws: OperonError.self) { try await adding.value }
            await #expect(throws: OperonError.self) { try await waiting.value }
            try await cancelling.value

            // It is as it was but for the cancellation, which counts.
            try await remote.queue.addOperation(handle)
            let id = try #require(handle.id)
            let outcome = try await handle.finalOutcome()
            #expect(outcome == .cancelled(reason: "no need"))
            let there = try await remote.coordinator.client.operation(OperationSelector(id))
            #expect(there.operation.outcome == .cancelled)
            #expect(there.operation.reason == "no need")
        }
    }

    @Test func `a suspension that a worker has not confirmed is told as such`() async throws {
        try await RemoteCluster.run { remote in
            _ = try await remote.queue.addOperation(Nothing())
            try await remote.queue.suspend()
            let late = ClientError(.timedOut, "A worker has not given back what it holds.")
            await remote.tap.failNext("suspend", with: late)
            let error = await #expect(throws: OperonError.self) {
                try await remote.queue.suspend(reason: "disk is full")
            }
            #expect(error?.code == .timedOut)
            #expect(try await remote.queue.isSuspended)
        }
    }

    @Test func whoeverWaitsForWhatIsInLineIsToldThatItIsClosed() async throws {
        try await RemoteCluster.run { remote in
            await remote.tap.hold("submit")
            let first = Task { try await remote.queue.addOperation(Nothing()) }
            await remote.tap.waitForCalls("submit", 1)
            let second = OperationHandle(Nothing())
            let adding = Task { try await remote.queue.addOperation(second) }
            while second.queue == nil { await Task.yield() }
            let (begun, begin) = AsyncStream<Void>.makeStream()
            let waiting = Task {
                begin.finish()
                return try await second.finalOutcome()
            }
            for await _ in begun {}
            // It waits by now: an operation that the end of the cluster takes out of the line would
            // be waited for until it is added again.
            for _ in 0..<100 { await Task.yield() }
            await remote.cluster.close(within: .zero)
            for end in [await adding.result.map { _ in }, await waiting.result.map { _ in }] {
                #expect(throws: OperonError.self) { try end.get() }
            }
            await remote.tap.release("submit")
            _ = await first.result
        }
    }

    @Test func whoMayNotListenAnyMoreIsTold() async throws {
        try await RemoteCluster.run { remote in
            let handle = try await remote.queue.addOperation(Nothing())
            await remote.tap.waitForWatchers(1)
            await remote.tap.failNext("events", with: Self.forbidden)
            await remote.tap.endStreams()
            let error = await #expect(throws: OperonError.self) { try await handle.finalOutcome() }
            #expect(error?.code == .forbidden)
        }
    }

    @Test func refusalsThatLastAreToldAfterThePatience() async throws {
        try await RemoteCluster.run(patience: .milliseconds(300)) { remote in
            let handle = try await remote.queue.addOperation(Nothing())
            await remote.tap.waitForWatchers(1)
            for _ in 0..<20 { await remote.tap.failNext("events", with: Self.forbidden) }
            await remote.tap.endStreams()
            let error = await #expect(throws: OperonError.self) { try await handle.finalOutcome() }
            #expect(error?.code == .forbidden)
            #expect(await remote.tap.calls.count { $0.name == "events" } > 2)
        }
    }

    @Test func whatBelongsToNobodyHereIsForgotten() async throws {
        try await RemoteCluster.run { remote in
            let first = try await remote.queue.addOperation(Nothing())
            let graph = "\(try #require(first.id).graph)"
            await remote.tap.waitForWatchers(1)
            await remote.tap.hold("add")
            let adding = Task { try await remote.queue.addOperation(Nothing()) }
            await remote.tap.waitForCalls("add", 1)
            // Meanwhile somebody else adds two; one ends, of the other it is the turn.
            let operations = ["ends", "starts"].map {
                OperationDescription(name: $0, work: .external(input: .empty))
            }
            let more = GraphDescription(name: "more", operations: operations)
            let somebody = remote.coordinator.client(of: "somebody")
            _ = try await somebody.add(Submission(graph: more), to: graph)
            let ends = OperationSelector(graph: graph, operation: "ends")
            _ = try await somebody.complete(ends, attempt: nil, with: .succeeded(.empty))
            while try await remote.cluster.earlyCount < 2 { await Task.yield() }
            await remote.tap.release("add")
            let second = try await adding.value
            while try await remote.cluster.earlyCount > 0 { await Task.yield() }
            try await remote.coordinator.join("worker", slots: 2, kinds: ["Nothing"])
            try await remote.coordinator.finish(
                OperationSelector(graph: graph, operation: second.name)
            )
            #expect(try await second.finalOutcome() == .succeeded)
        }
    }

    @Test func whatEndsBeforeItsAdditionIsAnsweredIsTold() async throws {
        try await RemoteCluster.run { remote in
            let first = try await remote.queue.addOperation(Nothing())
            await remote.tap.waitForWatchers(1)
            await remote.tap.hold("add")
            let last = OperationHandle(Nothing()).after(first)
            let adding = Task { try await remote.queue.addOperation(last) }
            await remote.tap.waitForCalls("add", 1)
            // It is asked why it was skipped, and not told.
            await remote.tap.failNext("operation", with: ClientError(.unavailable, "not now"))
            let id = try #require(first.id)
            try await remote.coordinator.join("worker", slots: 1, kinds: ["Nothing"])
            try await remote.coordinator.finish(OperationSelector(id), .exit(code: 1))
            // The stream was cut, and begun again behind what was asked anew.
            await remote.tap.waitForCalls("events", 2)
            await remote.tap.waitForCalls("operation", 2)
            await remote.tap.release("add")
            try await adding.value
            #expect(try await last.finalOutcome() == .skipped(cause: id))
        }
    }

    @Test func aCoordinatorThatDoesNotAnswerHoldsNoProgram() async throws {
        try await RemoteCluster.run { remote in
            let handle = try await remote.queue.addOperation(Nothing())
            await remote.tap.hold("close")
            let start = ContinuousClock.now
            await remote.cluster.close(within: .zero)
            // A call has a minute.
            #expect(ContinuousClock.now - start < .seconds(40))
            let error = await #expect(throws: OperonError.self) { try await handle.finalOutcome() }
            #expect(error?.code == .closed)
            await remote.tap.release("close")
        }
    }

    @Test func aGraphThatDidNotEndIsNotSaidToHave() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let graph = try GraphDescription(text: "{\"operations\": {\"a\": {\"wait\": \"1h\"}}}")
        let submitted = try await cluster.submit(graph)
        let waiting = Task { try await submitted.waitUntilFinished() }
        let handle = try await submitted.operation(named: "a")
        while try await handle.operationState != .executing { await Task.yield() }
        await cluster.close(within: .zero)
        await #expect(throws: OperonError.self) { try await waiting.value }
    }
}
