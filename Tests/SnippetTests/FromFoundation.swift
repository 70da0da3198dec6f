import Operon
import Synchronization
import Testing

@Suite struct FromFoundation {
    @Test func dependencies() async throws {
        let queue = OperationQueue()
        // snippet: two-steps
        let download = OperationHandle(Resize(file: "a.png", width: 200))
        let publish = OperationHandle(Publish())
        try await publish.addDependency(download)
        try await queue.addOperations([publish, download], waitUntilFinished: true)
        // end
        #expect(try await publish.isFinished)
    }

    @Test func settings() async throws {
        // snippet: settings
        let queue = OperationQueue(name: "images", cluster: .inProcess(slots: 2))
        try await queue.setMaxConcurrentOperationCount(2)
        try await queue.suspend(reason: "the disk is full")
        print(try await queue.isSuspended)
        try await queue.resume()
        // end
        #expect(try await !queue.isSuspended)
        await queue.cluster.close()
    }

    @Test func blocks() async throws {
        let cluster = Cluster.inProcess(slots: 2)
        let queue = OperationQueue(cluster: cluster)
        // snippet: local
        let resized = try await queue.addOperation(Resize(file: "a.png", width: 200))
        let shown = try await queue.addLocal(after: [resized]) { context in
            let file = try context.output(of: context.dependencies[0], as: String.self)
            return await MainActor.run { "shown: \(file)" }
        }
        print(try await shown.value)
        // end
        #expect(try await shown.value == "shown: 200/a.png")
        await cluster.close()
    }

    @Test func completion() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = OperationQueue(cluster: cluster)
        // snippet: completion
        let handle = OperationHandle(Resize(file: "a.png", width: 200))
        handle.completionBlock = { outcome in
            if case .cancelled(let reason) = outcome { print("cancelled: \(reason)") }
        }
        try await queue.addOperation(handle)
        // end
        try await handle.waitUntilFinished()
        #expect(handle.outcomeIfKnown == .succeeded)
        await cluster.close()
    }

    @Test func barrier() async throws {
        let cluster = Cluster.inProcess(slots: 2)
        let queue = OperationQueue(cluster: cluster)
        // snippet: barrier
        for width in [100, 200] {
            try await queue.addOperation(Resize(file: "a.png", width: width))
        }
        let barrier = try await queue.addBarrierBlock { _ in print("both are done") }
        try await queue.addOperation(Resize(file: "a.png", width: 400))
        // end
        try await barrier.value
        try await queue.waitUntilAllOperationsAreFinished()
        #expect(try await queue.operationCount == 0)
        await cluster.close()
    }

    @Test func refusals() async throws {
        let queue = OperationQueue()
        // snippet: refusal
        let first = OperationHandle(Publish())
        let second = OperationHandle(Publish())
        try await first.addDependency(second)
        try await second.addDependency(first)
        do {
            try await queue.addOperations([first, second])
        } catch Refusal.dependencyCycle(let path) {
            print("in a circle:", path)
        }
        // end
        #expect(first.id == nil)
    }
}
