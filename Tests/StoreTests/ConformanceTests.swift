import OperonModel
import OperonPorts
import OperonTestKit
import Testing

/// What every store does, tried on each.
@Suite struct ConformanceTests {
    @Test(arguments: StoreKind.allCases, 1...12 as ClosedRange<UInt64>)
    func `what was committed is loaded, whenever it is opened again`(
        kind: StoreKind,
        seed: UInt64
    ) async throws {
        let subject = try StoreUnderTest(kind)
        defer { subject.remove() }
        var workload = StoreWorkload(seed: seed, reign: StoreUnderTest.reign)
        for round in 0..<25 {
            let store = subject.store()
            workload.open()
            let state = try await store.open()
            expectEqual(state, workload.image.state, "seed \(seed), round \(round)")
            for _ in 0..<6 { try await store.commit(workload.next(), by: workload.image.epoch) }
            try await expectLookups(store, workload)
            await store.close()
        }
        #expect(workload.image.state.graphs.count > 10)
    }

    @Test(arguments: StoreKind.allCases)
    func `a store that is pruned keeps tombstones and what is needed`(
        kind: StoreKind
    ) async throws {
        var dropped = 0
        for seed in 100..<110 as Range<UInt64> {
            let subject = try StoreUnderTest(kind)
            defer { subject.remove() }
            var workload = StoreWorkload(seed: seed, reign: StoreUnderTest.reign)
            for round in 0..<8 {
                let store = subject.store()
                workload.open()
                let state = try await store.open()
                expectEqual(state, workload.image.state, "seed \(seed), round \(round)")
                let epoch = state.epoch
                for _ in 0..<15 { try await store.commit(workload.next(), by: epoch) }
                let before = round.isMultiple(of: 2) ? workload.now : nil
                let count = round.isMultiple(of: 3) ? 2 : nil
                let expected = workload.prune(finishedBefore: before, keeping: count)
                let found = try await store.prune(
                    finishedBefore: before,
                    keeping: count,
                    by: epoch
                )
                #expect(found == expected)
                dropped += found
                try await expectLookups(store, workload)
                await store.close()
            }
        }
        #expect(dropped > 20)
    }

    @Test(arguments: StoreKind.allCases)
    func `the name of a worker stays while an attempt of it does`(kind: StoreKind) async throws {
        let subject = try StoreUnderTest(kind)
        defer { subject.remove() }
        var store = subject.store()
        _ = try await store.open()
        let graph = GraphID(rawValue: 0)
        let workers = (1...3).map { number in
            StoredWorker(Incarnation(rawValue: UInt64.max - number), name: "worker \(number)")
        }
        var batch = StoreBatch(wall: time(1), records: [.graphAdded(graph)])
        batch.graphs = [contents(graph)]
        batch.workers = workers
        batch.records.append(
            .granted(
                AttemptID(epoch: Epoch(rawValue: 1), number: 1),
                OperationID(graph: graph, index: 0),
                ordinal: 1,
                to: workers[1].incarnation
            )
        )
        try await store.commit(batch, by: .first)
        let gone = workers.prefix(2).map(\.incarnation)
        #expect(try await store.forget(workers: gone, by: .first) == [gone[0]])
        try await store.commit(StoreBatch(wall: time(2), records: [finished(graph)]), by: .first)
        #expect(try await store.forget(workers: gone, by: .first) == [gone[0]])
        await store.close()
        store = subject.store()
        #expect(Set(try await store.open().workers) == Set(workers.dropFirst()))
        #expect(try await store.prune(finishedBefore: nil, keeping: 0, by: .second) == 1)
        #expect(try await store.forget(workers: [gone[1]], by: .second) == [gone[1]])
        await store.close()
        store = subject.store()
        #expect(try await store.open().workers == [workers[2]])
        await store.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `a finished graph stays while an unfinished one needs it`(kind: StoreKind) async throws {
        let subject = try StoreUnderTest(kind)
        defer { subject.remove() }
        let store = subject.store()
        _ = try await store.open()
        let (first, second) = (GraphID(rawValue: 0), GraphID(rawValue: 1))
        var batch = StoreBatch(wall: time(1), records: [.graphAdded(first), .graphAdded(second)])
        batch.graphs = [contents(first), contents(second, needs: [first])]
        try await store.commit(batch, by: .first)
        try await store.commit(StoreBatch(wall: time(2), records: [finished(first)]), by: .first)
        #expect(try await store.prune(finishedBefore: time(9), keeping: 0, by: .first) == 0)
        try await store.commit(StoreBatch(wall: time(3), records: [finished(second)]), by: .first)
        #expect(try await store.prune(finishedBefore: time(3), keeping: 2, by: .first) == 1)
        #expect(try await store.prune(finishedBefore: nil, keeping: 1, by: .first) == 0)
        #expect(try await store.prune(finishedBefore: nil, keeping: 0, by: .first) == 1)
        await store.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `a tombstone says how each operation finished`(kind: StoreKind) async throws {
        let subject = try StoreUnderTest(kind)
        defer { subject.remove() }
        let graph = GraphID(rawValue: 0)
        var batch = StoreBatch(wall: time(1), records: [.graphAdded(graph)])
        batch.graphs = [contents(graph, count: 3)]
        batch.records += [
            finished(graph, 2, .skipped(cause: OperationID(graph: graph, index: 1))),
            finished(graph, 0, .succeeded), finished(graph, 1, .failed(.exit(code: 3))),
        ]
        let store = subject.store()
        _ = try await store.open()
        try await store.commit(batch, by: .first)
        #expect(try await store.prune(finishedBefore: nil, keeping: 0, by: .first) == 1)
        #expect(try await store.prune(finishedBefore: nil, keeping: 0, by: .first) == 0)
        await store.close()
        let next = subject.store()
        let stone = try #require(try await next.open().graphs.first)
        #expect(stone.isTombstone && stone.contents.isEmpty && stone.operations.isEmpty)
        #expect(stone.name == "graph" && stone.finishedAt == time(1))
        #expect((0..<3).map { stone.outcomes[$0] } == [.succeeded, .failed, .skipped])
        #expect(stone.outcomes[3] == nil)
        await next.close()
    }

    static let graph = GraphID(rawValue: 0)

    private static func range(_ indices: Range<UInt32>) -> StoreRecord {
        let range = OperationRange(graph: graph, indices: indices)
        return .rangeFinished(range, .cancelled(reason: ""))
    }

    /// Records that contradict a store with one graph of one operation.
    static let contradictions: [[StoreRecord]] = {
        let first = OperationID(graph: graph, index: 0)
        let one = AttemptID(epoch: Epoch(rawValue: 1), number: 1)
        let two = AttemptID(epoch: Epoch(rawValue: 1), number: 2)
        let worker = Incarnation(rawValue: 7)
        return [
            [.graphAdded(graph)], [.operationsAdded(graph, first: 7)],
            [.graphClosed(GraphID(rawValue: 9))], [.started(one, first)],
            [.finished(OperationID(graph: graph, index: 1), .succeeded)],
            [finished(graph), finished(graph)], [.reopened(first)],
            [
                .granted(one, first, ordinal: 1, to: worker),
                .granted(two, first, ordinal: 2, to: worker),
            ],
            [.resumed(one, first)], [.attemptEnded(one, first, .lost)],
            [range(0..<1), finished(graph)], [finished(graph), range(0..<1)],
            [range(0..<1), range(0..<1)], [range(0..<2)], [range(0..<0)],
        ]
    }()

    @Test(arguments: StoreKind.allCases, contradictions)
    func `a batch that says what cannot be leaves nothing behind`(
        kind: StoreKind,
        records: [StoreRecord]
    ) async throws {
        let subject = try StoreUnderTest(kind)
        defer { subject.remove() }
        let store = subject.store()
        _ = try await store.open()
        var batch = StoreBatch(wall: time(1), records: [.graphAdded(Self.graph)])
        batch.graphs = [contents(Self.graph)]
        try await store.commit(batch, by: .first)
        let queue = StoreRecord.queueLimit(queue: "q", maximum: 1)
        let error = try await storeError {
            let batch = StoreBatch(wall: time(2), records: [queue] + records)
            try await store.commit(batch, by: .first)
        }
        #expect(error.code == .failed)
        await store.close()
        let next = subject.store()
        let state = try await next.open()
        #expect(state.queues.isEmpty && state.inFlight.isEmpty)
        #expect(state.graphs.first?.operations.isEmpty == true)
        await next.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `epochs rise with every opening and the reign stays`(kind: StoreKind) async throws {
        let subject = try StoreUnderTest(kind)
        defer { subject.remove() }
        for number in 1...4 as ClosedRange<UInt32> {
            let store = subject.store()
            let state = try await store.open()
            #expect(state.epoch == Epoch(rawValue: number) && state.reign == StoreUnderTest.reign)
            await store.close()
        }
    }

    /// Every write that a coordinator may ask for.
    static let writes: [@Sendable (any OperationStore, Epoch) async throws -> Void] = [
        { try await $0.commit(queueLimit, by: $1) },
        { try await $0.drop([graph], by: $1) },
        { _ = try await $0.forget(workers: [Incarnation(rawValue: 7)], by: $1) },
    ]
    static let queueLimit = StoreBatch(
        wall: time(2),
        records: [.queueLimit(queue: "q", maximum: 1)]
    )

    @Test(arguments: StoreKind.allCases, 0..<3)
    func `a write of any but the current epoch is refused and stores nothing`(
        kind: StoreKind,
        write: Int
    ) async throws {
        let subject = try StoreUnderTest(kind)
        defer { subject.remove() }
        var store = subject.store()
        _ = try await store.open()
        var batch = StoreBatch(wall: time(1), records: [.graphAdded(Self.graph)])
        batch.graphs = [contents(Self.graph)]
        batch.records.append(finished(Self.graph))
        batch.workers = [StoredWorker(Incarnation(rawValue: 7), name: "worker")]
        try await store.commit(batch, by: .first)
        await store.close()
        store = subject.store()
        let expected = try await store.open()
        for refused in [Epoch.first, Epoch(rawValue: 9)] {
            let error = try await storeError { try await Self.writes[write](store, refused) }
            #expect(error.code == (refused == .first ? .superseded : .failed), "\(error)")
            #expect(!error.isTransient)
            await store.close()
            store = subject.store()
            let found = try await store.open()
            #expect(found.holdsWhat(expected))
        }
        try await Self.writes[write](store, Epoch(rawValue: 4))
        await store.close()
        store = subject.store()
        #expect(try await store.open().holdsWhat(expected) == false)
        await store.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `an operation that starts while its cancelled graph is reopened keeps its row`(
        kind: StoreKind
    ) async throws {
        let subject = try StoreUnderTest(kind)
        defer { subject.remove() }
        var store = subject.store()
        _ = try await store.open()
        let running = OperationID(graph: Self.graph, index: 1)
        let attempt = AttemptID(epoch: .first, number: 1)
        var batch = StoreBatch(
            wall: time(1),
            records: [
                .graphAdded(Self.graph), finished(Self.graph), .priority(running, .high),
                .granted(attempt, running, ordinal: 2, to: Incarnation(rawValue: 7)),
                .cancelled(.graph(Self.graph), reason: "enough", cascade: false, by: ""),
            ]
        )
        batch.graphs = [contents(Self.graph, count: 2)]
        try await store.commit(batch, by: .first)
        let again = StoreRecord.reopened(OperationID(graph: Self.graph, index: 0))
        let records = [StoreRecord.started(attempt, running), again]
        try await store.commit(StoreBatch(wall: time(2), records: records), by: .first)
        await store.close()
        store = subject.store()
        let found = try await store.open().graphs[0].operations.last
        #expect(found?.attempts == 2 && found?.priority == .high)
        #expect(found?.cancelReason == "enough")
        await store.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `one at a time has the store`(kind: StoreKind) async throws {
        let subject = try StoreUnderTest(kind)
        defer { subject.remove() }
        let first = subject.store()
        _ = try await first.open()
        let second = subject.store()
        let error = try await storeError { _ = try await second.open() }
        #expect(error.code == .held)
        try await first.commit(StoreBatch(wall: time(1), records: []), by: .first)
        await first.close()
        let third = subject.store()
        #expect(try await third.open().epoch == Epoch(rawValue: 2))
        await third.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `events are given page by page, and the oldest are dropped`(
        kind: StoreKind
    ) async throws {
        var limits = Limits()
        limits.storedEvents = 20
        let subject = try StoreUnderTest(kind, limits: limits)
        defer { subject.remove() }
        let store = subject.store()
        _ = try await store.open()
        for number in 1...50 as ClosedRange<UInt64> {
            var batch = StoreBatch(wall: time(1))
            batch.events = [StoredEvent(sequence: number, body: [UInt8(number)])]
            try await store.commit(batch, by: .first)
        }
        let all = try await store.events(after: 0, limit: .max)
        #expect(all.last == StoredEvent(sequence: 50, body: [50]))
        let first = try #require(all.first?.sequence)
        #expect((29...31).contains(first) && all.count == Int(50 - first + 1))
        #expect(try await store.events(after: 40, limit: 3).map(\.sequence) == [41, 42, 43])
        #expect(try await store.events(after: 50, limit: 3).isEmpty)
        #expect(try await store.events(after: 0, limit: 0).isEmpty)
        var gap = StoreBatch(wall: time(2))
        gap.events = [StoredEvent(sequence: 52, body: [])]
        let error = try await storeError { try await store.commit(gap, by: .first) }
        #expect(error.code == .failed)
        await store.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `an operation keeps the logs of its last attempts`(kind: StoreKind) async throws {
        var limits = Limits()
        limits.logBytes = 10
        let subject = try StoreUnderTest(kind, limits: limits)
        defer { subject.remove() }
        let store = subject.store()
        _ = try await store.open()
        let id = OperationID(graph: Self.graph, index: 0)
        var batch = StoreBatch(wall: time(1), records: [.graphAdded(Self.graph)])
        batch.graphs = [contents(Self.graph)]
        try await store.commit(batch, by: .first)
        for (number, bytes) in [(1, 4), (2, 5), (3, 3), (4, 30)] {
            try await store.commit(tried(id, number, logBytes: bytes), by: .first)
            let kept = try await store.log(of: id)
            let expected = [1: [4], 2: [4, 5], 3: [5, 3], 4: [10]][number]
            #expect(kept.map(\.log.count) == expected)
            #expect(kept.last?.log.tail.last == UInt8(bytes - 1))
        }
        await store.close()
    }

    /// An attempt that printed something, failed and is tried again.
    private func tried(_ id: OperationID, _ number: Int, logBytes: Int) -> StoreBatch {
        let attempt = AttemptID(epoch: Epoch(rawValue: 1), number: UInt64(number))
        var batch = StoreBatch(
            wall: time(2),
            records: [
                .granted(attempt, id, ordinal: UInt32(number), to: Incarnation(rawValue: 1)),
                .attemptEnded(attempt, id, .failed(.exit(code: 1))),
                .retryScheduled(id, at: time(2)),
            ]
        )
        batch.results = [
            StoredResult(
                operation: id,
                attempt: attempt,
                output: .empty,
                log: KeptLog(tail: (0..<logBytes).map { UInt8($0) }),
                startedAt: nil,
                endedAt: time(3)
            )
        ]
        return batch
    }

    @Test(arguments: StoreKind.allCases)
    func `a large submission is given back as it was`(kind: StoreKind) async throws {
        let subject = try StoreUnderTest(kind)
        defer { subject.remove() }
        var batch = StoreBatch(wall: time(1), records: [.graphAdded(Self.graph)])
        batch.graphs = [contents(Self.graph)]
        // More than one piece, and not a whole number of them.
        batch.graphs[0].body = [UInt8](repeating: 7, count: 20 << 20) + [1, 2, 3]
        let store = subject.store()
        _ = try await store.open()
        try await store.commit(batch, by: .first)
        await store.close()
        let next = subject.store()
        let found = try await next.open().graphs[0].contents
        #expect(found == batch.graphs)
        await next.close()
    }
}
