import OperonModel
import OperonPorts
import OperonTestKit
import Testing

/// The faults that only the store in memory can be asked for.
@Suite struct MemoryTests {
    @Test func `a power cut loses what was not synced, and nothing else`() async throws {
        let store = InMemoryStore(reign: StoreUnderTest.reign)
        var workload = StoreWorkload(seed: 3, reign: StoreUnderTest.reign)
        workload.open()
        _ = try await store.open()
        for _ in 0..<20 { try await store.commit(workload.next(), by: workload.image.epoch) }
        try await store.sync()
        let safe = workload.image.state
        for _ in 0..<20 { try await store.commit(workload.next(), by: workload.image.epoch) }
        #expect(!workload.image.state.holdsWhat(safe))

        await store.cutPower()

        let found = try await store.open()
        #expect(found.holdsWhat(safe) && found.epoch == Epoch(rawValue: 2))
    }

    @Test func `the death of its coordinator loses nothing`() async throws {
        let store = InMemoryStore(reign: StoreUnderTest.reign)
        var workload = StoreWorkload(seed: 4, reign: StoreUnderTest.reign)
        workload.open()
        _ = try await store.open()
        for _ in 0..<20 { try await store.commit(workload.next(), by: workload.image.epoch) }

        await store.kill()

        #expect(try await store.open().holdsWhat(workload.image.state))
    }

    @Test func `it fails when it is asked to, and keeps nothing of that batch`() async throws {
        let store = InMemoryStore(reign: StoreUnderTest.reign)
        _ = try await store.open()
        let batch = StoreBatch(
            wall: time(1),
            records: [.queueLimit(queue: "q", maximum: 3)]
        )
        await store.fail([StoreError(.full, "full"), StoreError(.busy, "busy")])
        let first = try await storeError { try await store.commit(batch, by: .first) }
        let second = try await storeError { try await store.commit(batch, by: .first) }
        #expect(first.isTransient && second.code == .busy)
        await store.kill()
        #expect(try await store.open().queues.isEmpty)
        try await store.commit(batch, by: .second)
        await store.kill()
        #expect(try await store.open().queues.count == 1)
    }
}
