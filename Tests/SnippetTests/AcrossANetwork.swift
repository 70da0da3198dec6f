import Operon
import Testing

@Suite struct AcrossANetwork {
    @Test func aHandleAgain() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = OperationQueue(cluster: cluster)
        let handle = try await queue.addOperation(Resize(file: "a.png", width: 200))
        let id = try #require(handle.id)
        // snippet: again
        let again = try await cluster.handle(id, of: Resize.self)
        print(again.operation.file, try await again.value)
        // end
        #expect(try await again.value == "200/a.png")
        await cluster.close()
    }

    /// Compiled, and not run: it would leave a database where the tests run.
    func keep() {
        // snippet: keep
        let kept = Cluster.embedded(
            store: "operations.db",
            keep: Retention(time: .seconds(7 * 86_400))
        )
        // end
        _ = kept
    }

    @Test func events() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = OperationQueue(cluster: cluster)
        let handle = try await queue.addOperation(Resize(file: "a.png", width: 200))
        var last: OutcomeKind?
        // snippet: events
        for try await event in handle.events {
            switch event.kind {
            case .state(let state): print("is \(state) now")
            case .started: print("runs on \(event.worker ?? "a worker")")
            case .finished(let outcome): last = outcome
            case .gap(let first, let last): print("events \(first) to \(last) are lost")
            default: break
            }
        }
        // end
        #expect(last == .succeeded)
        await cluster.close()
    }

    @Test func aSequence() async throws {
        let cluster = Cluster.inProcess(slots: 2)
        let queue = OperationQueue(cluster: cluster)
        // snippet: sequence
        let (pictures, source) = AsyncStream.makeStream(of: Resize.self)
        for number in 1...1_000 { source.yield(Resize(file: "\(number).png", width: 200)) }
        source.finish()

        var count = 0
        try await queue.addOperations(from: pictures, inFlight: 50) { handle in
            count += try await handle.outcome.kind == .succeeded ? 1 : 0
        }
        // end
        #expect(count == 1_000)
        await cluster.close()
    }

    @Test func external() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = OperationQueue(cluster: cluster)
        // snippet: external
        let approval = try ExternalOperationHandle(Bool.self)
        try await queue.addOperation(approval)
        let publish = try await queue.addOperation(Publish(), after: [approval])
        // end
        try await approval.fail(Declined(order: 1))
        #expect(try await publish.outcome.kind == .skipped)
        await cluster.close()
    }
}
