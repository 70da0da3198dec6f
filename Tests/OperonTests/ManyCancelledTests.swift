import Operon
import Testing

/// Very many operations that are cancelled together have one event, and each handle learns of it.
@Suite(.timeLimit(.minutes(5))) struct ManyCancelledTests {
    @Test func `each operation of this process ends`() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        try await cancelMany(OperationQueue(name: "q", cluster: cluster, isSuspended: true))
        await cluster.close()
    }

    @Test func `each operation of a coordinator elsewhere ends`() async throws {
        try await RemoteCluster.run { remote in
            let queue = OperationQueue(name: "q", cluster: remote.cluster, isSuspended: true)
            try await cancelMany(queue)
        }
    }

    private func cancelMany(
        _ queue: Operon.OperationQueue,
        isolation: isolated (any Actor)? = #isolation
    ) async throws {
        let handles = try await queue.addOperations((0..<200).map { Doubled(number: $0) })
        let one = handles[77]
        var kinds: [OperationEvent.Kind] = []
        for try await event in one.events {
            kinds.append(event.kind)
            #expect(event.operation == one.id && event.operationName == one.name)
            if case .state = event.kind { try await queue.cancelAllOperations(reason: "enough") }
        }
        #expect(kinds == [.state(.ready), .finished(.cancelled)])
        for handle in handles {
            #expect(try await handle.outcome == .cancelled(reason: "enough"))
        }
        // The events of the queue tell of all of them at once.
        ends: for try await event in queue.events(after: 0) {
            switch event.kind {
            case .rangeFinished(let outcome, let count):
                #expect(outcome == .cancelled && count == 200)
                #expect(event.operation == handles[0].id)
                break ends
            case .finished:
                Issue.record("an operation has an event of its own")
                break ends
            default: continue
            }
        }
    }
}
