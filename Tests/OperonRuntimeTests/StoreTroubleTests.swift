import ClusterKit
import OperonArguments
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTestKit
import Testing

/// What is told of what was decided while nothing could be kept.
@Suite(.timeLimit(.minutes(5))) struct StoreTroubleTests {
    private func graph(_ name: String) -> Submission {
        let wait = OperationDescription(name: "a", work: .wait(.seconds(3_600)))
        return Submission(graph: GraphDescription(name: name, operations: [wait]))
    }

    @Test func `whoever may wait is told when there is room again`() async throws {
        let store = InMemoryStore(reign: Reign(rawValue: 5))
        try await ManualCluster.run(store, isConnected: false) { cluster in
            _ = try await cluster.client.submit(graph("before"))
            await store.fail(Array(repeating: StoreError(.full, "full"), count: 4))
            async let later = cluster.client.submit(graph("later"))
            try await cluster.log.wait { $0.contains("the store takes no records") }
            let error = await #expect(throws: ClientError.self) {
                try await cluster.service.durable()
            }
            #expect(error?.code == .unavailable)
            try await cluster.service.kept()
            #expect(await cluster.service.trouble == nil)
            let name = try await later.name
            #expect(name == "later")
        }
    }

    @Test func `a store that says that it is full is given up early`()
        async throws
    {
        let store = InMemoryStore(reign: Reign(rawValue: 5))
        try await ManualCluster.run(store, isConnected: false) { cluster in
            await store.fail(Array(repeating: StoreError(.full, "full"), count: 1_000))
            let never = Task { try await cluster.client.submit(graph("never")) }
            try await cluster.log.wait { $0.contains("the store takes no records") }
            try await cluster.service.waitUntilStoreIsStuck(
                for: .seconds(3_600),
                refused: .milliseconds(10)
            )
            await cluster.service.shutDown(kill: true)
            await #expect(throws: ClientError.self) { try await never.value }
        }
    }

    @Test func `nobody waits for a coordinator that ends`() async throws {
        let store = InMemoryStore(reign: Reign(rawValue: 5))
        try await ManualCluster.run(store, isConnected: false) { cluster in
            await store.fail(Array(repeating: StoreError(.full, "full"), count: 1_000))
            let never = Task { try await cluster.client.submit(graph("never")) }
            try await cluster.log.wait { $0.contains("the store takes no records") }
            let isDurable = Task { await cluster.service.untilDurable() }
            await cluster.service.shutDown(kill: true)
            #expect(await isDurable.value == false)
            // Afterwards as well.
            #expect(await cluster.service.untilDurable() == false)
            await #expect(throws: ClientError.self) { try await never.value }
        }
    }

    @Test func `whoever waits for a queue is told that nothing will happen any more`() async throws
    {
        let store = InMemoryStore(reign: Reign(rawValue: 5))
        try await ManualCluster.run(store, isConnected: false) { cluster in
            _ = try await cluster.client.submit(graph("never"))
            let queue = try #require(try await cluster.client.queues().first { $0.unfinished > 0 })
                .name
            await cluster.service.shutDown(kill: true)
            let error = await #expect(throws: ClientError.self) {
                try await cluster.client.waitUntilEmpty(queue: queue, within: 3_600)
            }
            #expect(error?.code == .unavailable)
        }
    }

    @Test func `a coordinator ends when a later one has opened its store`() async throws {
        let store = InMemoryStore(reign: Reign(rawValue: 5))
        let error = await #expect(throws: StoreError.self) {
            try await ManualCluster.run(store, isConnected: false) { cluster in
                _ = try await cluster.client.submit(graph("stored"))
                await store.kill()
                #expect(try await store.open().graphs.count == 1)
                #expect(await (try? cluster.client.submit(graph("too late"))) == nil)
            }
        }
        #expect(error?.code == .superseded)
        let failure = Failure(try #require(error), hint: "Start it again to go on.")
        #expect(failure.code == ExitStatus.held)
        #expect(
            failure.message
                == "A later coordinator (epoch 2) has opened the store; this one (epoch 1) ends."
        )
        await store.kill()
        #expect(try await store.open().graphs.count == 1)
    }

    // MARK: - Events

    @Test(arguments: [1, 1_000, UInt64.max])
    func `a number that no event has yet is told as a gap`(number: UInt64) async throws {
        let store = InMemoryStore(reign: Reign(rawValue: 5))
        try await ManualCluster.run(store, isConnected: false) { cluster in
            let events = try await cluster.client.events(after: number, graph: nil)
            var iterator = events.makeAsyncIterator()
            #expect(try await iterator.next() == .gap(0, 0))
            _ = try await cluster.client.submit(graph("heard"))
            guard case .event(let first)? = try await iterator.next() else {
                Issue.record("no event")
                return
            }
            #expect(first.sequence == 1)
            let last = try #require(try await cluster.client.status().lastEvent)
            let later = try await cluster.client.events(after: last + number / 2, graph: nil)
            var laterIterator = later.makeAsyncIterator()
            if number > 1 { #expect(try await laterIterator.next() == .gap(1, last)) }
            _ = try await cluster.client.submit(graph("heard as well"))
            guard case .event(let next)? = try await laterIterator.next() else {
                Issue.record("no event")
                return
            }
            #expect(next.sequence == last + 1)
        }
    }

    @Test func `what a power cut may undo is not told`() async throws {
        let store = InMemoryStore(reign: Reign(rawValue: 5))
        await #expect(throws: StoreError.self) {
            try await ManualCluster.run(store, isConnected: false) { cluster in
                _ = try await cluster.client.submit(graph("kept"))
                let last = try #require(try await cluster.client.status().lastEvent)
                await store.failSyncs(StoreError(.failed, "broken"))
                #expect(await (try? cluster.client.submit(graph("lost"))) == nil)
                #expect(try await store.events(after: last, limit: 1).count == 1)
                var told: [ClientEvent] = []
                for try await event in try await cluster.client.events(after: 0, graph: nil) {
                    told.append(event)
                }
                #expect(told.count == Int(last))
            }
        }
    }
}
