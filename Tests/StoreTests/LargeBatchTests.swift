import Foundation
import OperonModel
import OperonPorts
import OperonSQLite
import Testing

/// One step that says more than a store works out at once: a large graph that is cancelled.
@Suite struct LargeBatchTests {
    private static let graph = GraphID(rawValue: 0)
    private static let count = 25_000

    private func submission() -> StoreBatch {
        var batch = StoreBatch(wall: time(1), records: [.graphAdded(Self.graph)])
        batch.graphs = [contents(Self.graph, count: Self.count)]
        return batch
    }

    /// The first operation runs, and its attempt ends with the graph.
    private func grant() -> StoreBatch {
        let first = OperationID(graph: Self.graph, index: 0)
        let attempt = AttemptID(epoch: Epoch(rawValue: 1), number: 1)
        let worker = Incarnation(rawValue: 7)
        return StoreBatch(
            wall: time(2),
            records: [.granted(attempt, first, ordinal: 1, to: worker), .started(attempt, first)]
        )
    }

    private func cancellation() -> StoreBatch {
        var batch = StoreBatch(
            wall: time(3),
            records: [.cancelled(.graph(Self.graph), reason: "enough", cascade: false, by: "me")]
        )
        for index in 0..<UInt32(Self.count) {
            batch.records.append(finished(Self.graph, index, .cancelled(reason: "enough")))
            batch.events.append(StoredEvent(sequence: UInt64(index) + 1, body: [1]))
        }
        batch.records.append(.queueLimit(queue: "q", maximum: 1))
        let attempt = AttemptID(epoch: Epoch(rawValue: 1), number: 1)
        batch.results = [
            StoredResult(
                operation: OperationID(graph: Self.graph, index: 0),
                attempt: attempt,
                output: .empty,
                log: KeptLog(tail: [1, 2]),
                startedAt: time(2),
                endedAt: time(3)
            )
        ]
        return batch
    }

    @Test(arguments: StoreKind.allCases)
    func `it is kept whole, with the last of its events`(kind: StoreKind) async throws {
        var limits = Limits()
        limits.storedEvents = 100
        let subject = try StoreUnderTest(kind, limits: limits)
        defer { subject.remove() }
        let store = subject.store()
        _ = try await store.open()
        for batch in [submission(), grant(), cancellation()] {
            try await store.commit(batch, by: .first)
        }
        let events = try await store.events(after: 0, limit: .max).map(\.sequence)
        #expect(events == Array(UInt64(Self.count - 99)...UInt64(Self.count)))
        await store.close()

        let next = subject.store()
        let state = try await next.open()
        let graph = try #require(state.graphs.first)
        #expect(graph.finishedAt == time(3) && graph.cancelReason == "enough")
        #expect(graph.operations.count == Self.count)
        #expect(graph.operations.allSatisfy { $0.outcome == .cancelled(reason: "enough") })
        #expect(state.inFlight.isEmpty && state.queues.map(\.name) == ["q"])
        #expect(state.lastEvent == UInt64(Self.count))
        let first = OperationID(graph: Self.graph, index: 0)
        #expect(try await next.attempts(of: first).map(\.ending) == [.cancelled])
        #expect(try await next.log(of: first).map(\.log.tail) == [[1, 2]])
        await next.close()
    }

    @Test func `what does not fit leaves nothing behind, neither on the disk nor in memory`()
        async throws
    {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        let first = subject.sqlite()
        _ = try await first.open()
        for batch in [submission(), grant()] { try await first.commit(batch, by: .first) }
        await first.close()

        // Room for the first of several parts of it.
        let pages = Int(try #require(try size(of: subject.path))) / 4_096
        let store = subject.sqlite(pagesMax: pages + 150)
        _ = try await store.open()
        let error = try await storeError { try await store.commit(cancellation(), by: .second) }
        #expect(error.code == .full)
        let small = StoreBatch(wall: time(4), records: [finished(Self.graph, 5)])
        try await store.commit(small, by: .second)
        await store.close()

        // It says how many of its operations are finished, which is compared with their rows.
        let next = subject.sqlite()
        let state = try await next.open()
        #expect(state.graphs[0].operations.filter { $0.outcome != nil }.map(\.index) == [5])
        #expect(state.inFlight.count == 1 && state.queues.isEmpty && state.lastEvent == 0)
        let closed = StoreBatch(wall: time(5), records: [.graphClosed(Self.graph)])
        try await next.commit(closed, by: .third)
        await next.close()
    }

    private func size(of path: String) throws -> UInt64? {
        try FileManager.default.attributesOfItem(atPath: path)[.size] as? UInt64
    }

    @Test(arguments: StoreKind.allCases)
    func `a range is one row, beside those of operations that changed before`(
        kind: StoreKind
    ) async throws {
        let subject = try StoreUnderTest(kind)
        defer { subject.remove() }
        let store = subject.store()
        _ = try await store.open()
        var cancellation = StoreBatch(wall: time(3))
        let all = OperationRange(graph: Self.graph, indices: 1..<UInt32(Self.count))
        let priority = StoreRecord.priority(all[700], .high)
        cancellation.records = [.rangeFinished(all, .cancelled(reason: "enough"))]
        let reopened = StoreBatch(wall: time(4), records: [.reopened(all[9]), .reopened(all[700])])
        for batch in [
            submission(), grant(), StoreBatch(wall: time(2), records: [priority]), cancellation,
            reopened,
        ] {
            try await store.commit(batch, by: .first)
        }
        await store.close()

        let next = subject.store()
        let state = try await next.open()
        let graph = try #require(state.graphs.first)
        #expect(graph.finishedAt == nil)
        #expect(graph.operations.map(\.index) == Array(0..<UInt32(Self.count)))
        let finished = graph.operations.filter { $0.outcome == .cancelled(reason: "enough") }
        #expect(finished.count == Self.count - 3)
        #expect(finished.allSatisfy { $0.finishedAt == time(3) && $0.round == 0 })
        #expect(graph.operations[700].priority == .high)
        #expect(graph.operations.filter { $0.round == 1 }.map(\.index) == [9, 700])
        await next.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `a range of operations that have rows changes them, some thousands at a time`(
        kind: StoreKind
    ) async throws {
        let subject = try StoreUnderTest(kind)
        defer { subject.remove() }
        let store = subject.store()
        _ = try await store.open()
        let all = OperationRange(graph: Self.graph, indices: 0..<UInt32(Self.count))
        let first = StoreRecord.rangeFinished(all, .cancelled(reason: "first"))
        let second = StoreRecord.rangeFinished(all, .cancelled(reason: "second"))
        // Two of them are not retried.
        let retried = all.filter { $0.index != 3 && $0.index != 17_000 }
        var again = StoreBatch(wall: time(4), records: [])
        for indices in [0..<UInt32(3), 4..<17_000, 17_001..<UInt32(Self.count)] {
            let range = OperationRange(graph: Self.graph, indices: indices)
            again.records.append(.rangeFinished(range, .cancelled(reason: "second")))
        }
        for batch in [
            submission(), StoreBatch(wall: time(2), records: [first]),
            StoreBatch(wall: time(3), records: retried.map { .reopened($0) }), again,
        ] {
            try await store.commit(batch, by: .first)
        }
        await store.close()

        let next = subject.store()
        let graph = try #require(try await next.open().graphs.first)
        #expect(graph.finishedAt == time(4))
        #expect(graph.operations.map(\.index) == Array(all.indices))
        let old = graph.operations.filter { $0.outcome == .cancelled(reason: "first") }
        #expect(old.map(\.index) == [3, 17_000])
        #expect(
            graph.operations.count { $0.outcome == .cancelled(reason: "second") } == retried.count
        )
        await #expect(throws: StoreError.self) {
            let twice = StoreBatch(wall: time(5), records: [second])
            try await next.commit(twice, by: Epoch(rawValue: 2))
        }
        await next.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `a dropped graph keeps the outcomes of ranges`(kind: StoreKind) async throws {
        let subject = try StoreUnderTest(kind)
        defer { subject.remove() }
        let store = subject.store()
        _ = try await store.open()
        var end = StoreBatch(wall: time(2))
        for indices in [1..<UInt32(700), 701..<UInt32(Self.count)] {
            let range = OperationRange(graph: Self.graph, indices: indices)
            end.records.append(.rangeFinished(range, .cancelled(reason: "")))
        }
        for index in [UInt32(0), 700] { end.records.append(finished(Self.graph, index)) }
        for batch in [submission(), end] { try await store.commit(batch, by: .first) }
        #expect(try await store.prune(finishedBefore: nil, keeping: 0, by: .first) == 1)
        await store.close()

        let next = subject.store()
        let stone = try #require(try await next.open().graphs.first)
        #expect(stone.isTombstone && stone.outcomes.count == UInt32(Self.count))
        for index in 0..<UInt32(Self.count) {
            let expected: OutcomeKind = index == 0 || index == 700 ? .succeeded : .cancelled
            #expect(stone.outcomes[index] == expected)
        }
        await next.close()
    }
}
