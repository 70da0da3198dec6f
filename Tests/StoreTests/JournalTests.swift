import Foundation
import OperonModel
import OperonPorts
import OperonTestKit
import Testing

@testable import OperonSQLite

/// The journal, and the tables that follow it.
@Suite struct JournalTests {
    /// A copy of the files is what a killed process leaves.
    @Test(arguments: [1, 7, 60, 100_000])
    func `after each commit a copy of the files has everything that was committed`(
        pendingRowsMax: Int
    ) async throws {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        let store = subject.sqlite(pendingRowsMax: pendingRowsMax)
        var workload = StoreWorkload(seed: 21, reign: StoreUnderTest.reign)
        workload.open()
        _ = try await store.open()
        let copy = subject.folder.appendingPathComponent("copy.db").path
        for number in 1...70 {
            try await store.commit(workload.next(), by: workload.image.epoch)
            if number.isMultiple(of: 20) {
                let dropped = workload.prune(finishedBefore: nil, keeping: 2)
                #expect(
                    try await store.prune(
                        finishedBefore: nil,
                        keeping: 2,
                        by: workload.image.epoch
                    ) == dropped
                )
            }
            for end in ["", "-wal"] {
                try? FileManager.default.removeItem(atPath: copy + end)
                try FileManager.default.copyItem(atPath: subject.path + end, toPath: copy + end)
            }
            let found = SQLiteStore(path: copy, newReign: StoreUnderTest.reign)
            let state = try await found.open()
            #expect(workload.image.state.holdsWhat(state), "commit \(number)")
            try await expectLookups(found, workload)
            #expect(try await found.check().isEmpty, "commit \(number)")
            await found.close()
        }
        await store.close()
    }

    @Test func `what is looked up while the tables are behind is what was committed`()
        async throws
    {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        let store = subject.sqlite(pendingRowsMax: 40)
        var workload = StoreWorkload(seed: 22, reign: StoreUnderTest.reign)
        workload.open()
        _ = try await store.open()
        for _ in 1...60 {
            try await store.commit(workload.next(), by: workload.image.epoch)
            try await expectLookups(store, workload)
        }
        await store.close()
    }

    /// Every record of every kind, and some that no workload makes.
    @Test func `what is read is what was written, but for outputs and logs`() throws {
        let id = OperationID(graph: GraphID(rawValue: 3), index: .max)
        let attempt = AttemptID(epoch: Epoch(rawValue: .max), number: .max)
        let early = WallTime(nanosecondsSince1970: .min)
        let late = WallTime(nanosecondsSince1970: .max)
        var batch = StoreBatch(
            wall: early,
            records: [
                .granted(attempt, id, ordinal: .max, to: Incarnation(rawValue: .max)),
                .attemptEnded(attempt, id, .succeeded), .attemptEnded(attempt, id, .cancelled),
                .attemptEnded(attempt, id, .returned), .attemptEnded(attempt, id, .lost),
                .attemptEnded(attempt, id, .crashed),
                .attemptEnded(
                    attempt,
                    id,
                    .failed(.thrown(type: "a|b", message: "\\", payload: [0]))
                ),
                .finished(id, .cancelled(reason: "größer")), .finished(id, .skipped(cause: id)),
                .finished(id, .failed(.exit(code: -1))), .retryScheduled(id, at: late),
                .delayed(id, until: early), .delayed(id, until: nil), .reopened(id),
                .rateUsed(.key("k"), fullAt: late), .rateUsed(.queue(""), fullAt: early),
                .deadlinePassed(id), .queueReset("q"), .keyReset("k"),
                .cancelled(.queue("q"), reason: "r", cascade: true, by: "b"),
                .suspended(.operation(id), Suspension(by: "b", reason: "r", until: late)),
            ]
        )
        batch.results = [
            StoredResult(
                operation: id,
                attempt: attempt,
                output: Payload(bytes: [0]),
                log: .empty,
                startedAt: late,
                endedAt: early
            )
        ]
        var workload = StoreWorkload(seed: 23, reign: StoreUnderTest.reign)
        workload.open()
        var batches = [batch]
        for _ in 0..<400 { batches.append(workload.next()) }
        for batch in batches {
            let bytes = try JournalBytes.encode(batch, contents: [1, .max])
            let content = try JournalBytes.decode(bytes, at: batch.wall)
            #expect(content.records == batch.records)
            #expect(content.contents == [1, .max])
            for (found, result) in zip(content.results, batch.results) {
                var expected = result
                expected.output = result.output.isEmpty ? .empty : Payload(bytes: [0])
                expected.log = KeptLog(tail: result.log.isEmpty ? [] : [0])
                #expect(found == expected)
            }
            // Bytes that are cut off, or others, are damage or something else, and never a trap.
            for end in stride(from: 0, to: bytes.count, by: max(1, bytes.count / 40)) {
                #expect(throws: (any Error).self) {
                    try JournalBytes.decode(Array(bytes[..<end]), at: batch.wall)
                }
                var changed = bytes
                changed[end] ^= 0xFF
                _ = try? JournalBytes.decode(changed, at: batch.wall)
            }
        }
    }

    /// What a killed process left, on a disk that lost some of it.
    @Test(arguments: [
        "DELETE FROM journal WHERE id = 2", "UPDATE journal SET records = x'00' WHERE id = 2",
        "UPDATE journal SET wall = wall + 1 WHERE id = 3", "DELETE FROM projection",
        "UPDATE projection SET journal = 2", "DELETE FROM contents",
    ])
    func `a journal that lacks something is refused`(damage: String) async throws {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        let store = subject.sqlite()
        var workload = StoreWorkload(seed: 24, reign: StoreUnderTest.reign)
        workload.open()
        _ = try await store.open()
        for _ in 0..<10 { try await store.commit(workload.next(), by: workload.image.epoch) }
        let copy = subject.folder.appendingPathComponent("copy.db").path
        for end in ["", "-wal"] {
            try FileManager.default.copyItem(atPath: subject.path + end, toPath: copy + end)
        }
        await store.close()
        try withDatabase(copy) { try $0.execute(damage) }
        let before = try Data(contentsOf: URL(fileURLWithPath: copy))
        let error = try await storeError {
            _ = try await SQLiteStore(path: copy, newReign: StoreUnderTest.reign).open()
        }
        #expect(error.code == .damaged, "\(error)")
        #expect(try Data(contentsOf: URL(fileURLWithPath: copy)) == before)
    }

    @Test func `a check compares the tables with the journal`() async throws {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        let graph = GraphID(rawValue: 0)
        var batch = StoreBatch(wall: time(1), records: [.graphAdded(graph), finished(graph)])
        batch.graphs = [contents(graph)]
        let store = subject.sqlite()
        _ = try await store.open()
        try await store.commit(batch, by: .first)
        #expect(try await store.check().isEmpty)
        await store.close()
        // The sum of the row is right.
        try withDatabase(subject.path) { database in
            let tables = StoreTables(database, limits: Limits())
            var operation = StoredOperation(index: 0)
            operation.outcome = .failed(.timeout)
            operation.finishedAt = time(1)
            try tables.write(operation, of: OperationID(graph: graph, index: 0))
        }
        let next = subject.sqlite()
        _ = try await next.open()
        #expect(try await next.check() == ["1 operations are not as the journal says."])
        await next.close()
    }

    @Test func `rows of the journal go when the tables have them and their events are dropped`()
        async throws
    {
        var limits = Limits()
        limits.storedEvents = 20
        let subject = try StoreUnderTest(.sqlite, limits: limits)
        defer { subject.remove() }
        let store = subject.sqlite(pendingRowsMax: 5)
        _ = try await store.open()
        for number in 1...200 as ClosedRange<UInt64> {
            let record = StoreRecord.queueLimit(queue: "q\(number % 7)", maximum: Int(number))
            var batch = StoreBatch(wall: time(1), records: [record])
            batch.events = [StoredEvent(sequence: number, body: [UInt8(number)])]
            try await store.commit(batch, by: .first)
        }
        await store.close()
        let rows = try withDatabase(subject.path) { try $0.number("SELECT count(*) FROM journal") }
        #expect((20...30).contains(rows))
    }

    @Test func `rows without events go when the tables have them`() async throws {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        let store = subject.sqlite(pendingRowsMax: 10)
        _ = try await store.open()
        for number in 1...100 {
            let record = StoreRecord.queueLimit(queue: "q", maximum: number)
            try await store.commit(StoreBatch(wall: time(1), records: [record]), by: .first)
        }
        // A few commits change the same row, so rows of the journal count as well.
        #expect(try await rowCount(subject) <= 11)
        await store.close()
        let next = subject.sqlite()
        #expect(try await next.open().queues.map(\.maximum) == [100])
        #expect(try await next.check().isEmpty)
        await next.close()
    }

    @Test func `the data of a firing is not kept as long as the events of its commit`()
        async throws
    {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        let store = subject.sqlite()
        _ = try await store.open()
        let id = TriggerID(rawValue: 1)
        let trigger = StoredTrigger(id: id, name: "t", addedAt: time(1), body: [])
        var firing = StoredFiring(
            id: FiringID(id, 1),
            identity: "i",
            occurredAt: time(1),
            ordinal: 1,
            status: .accepted
        )
        let mark = "the body of a webhook"
        firing.data = mark
        var batch = StoreBatch(
            wall: time(1),
            records: [
                .trigger(.added(trigger, TriggerState(position: time(1)))),
                .trigger(.firing(firing)),
            ]
        )
        batch.events = [StoredEvent(sequence: 1, body: [1])]
        try await store.commit(batch, by: .first)
        firing.data = ""
        firing.status = .submitted(GraphID(rawValue: 0))
        var next = StoreBatch(wall: time(2), records: [.trigger(.firing(firing))])
        next.events = [StoredEvent(sequence: 2, body: [2])]
        try await store.commit(next, by: .first)
        await store.close()
        let rows = try withDatabase(subject.path) { database in
            let mark = mark.utf8.map { String($0, radix: 16) }.joined()
            return try database.number(
                "SELECT count(*) FROM journal WHERE instr(records, x'\(mark)') > 0"
            )
        }
        #expect(rows == 0)
        let last = subject.sqlite()
        #expect(try await last.open().triggers.first?.firings == [firing])
        #expect(try await last.events(after: 0, limit: 9) == batch.events + next.events)
        #expect(try await last.check().isEmpty)
        await last.close()
    }

    @Test func `rows that only have events go with them`() async throws {
        var limits = Limits()
        limits.storedEvents = 20
        let subject = try StoreUnderTest(.sqlite, limits: limits)
        defer { subject.remove() }
        let store = subject.sqlite(pendingRowsMax: 10)
        _ = try await store.open()
        for number in 1...200 as ClosedRange<UInt64> {
            var batch = StoreBatch(wall: time(1))
            batch.events = [StoredEvent(sequence: number, body: [])]
            try await store.commit(batch, by: .first)
        }
        #expect(try await rowCount(subject) <= 40)
        #expect(try await store.events(after: 0, limit: .max).last?.sequence == 200)
        await store.close()
    }

    /// The rows of the journal in a copy of the files.
    private func rowCount(_ subject: StoreUnderTest) async throws -> Int {
        let copy = subject.folder.appendingPathComponent("copy.db").path
        for end in ["", "-wal"] {
            try? FileManager.default.removeItem(atPath: copy + end)
            try FileManager.default.copyItem(atPath: subject.path + end, toPath: copy + end)
        }
        return Int(try withDatabase(copy) { try $0.number("SELECT count(*) FROM journal") })
    }

    @Test func `many events of one commit are several rows, and are read page by page`()
        async throws
    {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        let store = subject.sqlite()
        _ = try await store.open()
        var batch = StoreBatch(wall: time(1), records: [.queueLimit(queue: "q", maximum: 1)])
        batch.events = (1...2_500 as ClosedRange<UInt64>).map { number in
            StoredEvent(sequence: number, body: [UInt8(truncatingIfNeeded: number)])
        }
        try await store.commit(batch, by: .first)
        #expect(try await rowCount(subject) == 3)
        var found: [StoredEvent] = []
        while let page = try await store.events(after: UInt64(found.count), limit: 300).nonEmpty {
            found += page
        }
        #expect(found == batch.events)
        #expect(try await store.events(after: .max, limit: 1).isEmpty)
        await store.close()
        let next = subject.sqlite()
        #expect(try await next.open().lastEvent == 2_500)
        #expect(try await next.events(after: 2_499, limit: 9) == [batch.events[2_499]])
        #expect(try await next.check().isEmpty)
        await next.close()
    }

    /// There is room for rows of the journal, and not for what the tables lack.
    @Test func `a projection without room is made later, and loses nothing`() async throws {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        let first = subject.sqlite()
        var workload = StoreWorkload(seed: 25, reign: StoreUnderTest.reign)
        workload.open()
        _ = try await first.open()
        await first.close()
        let pages = try Data(contentsOf: URL(fileURLWithPath: subject.path)).count / 4_096
        let store = subject.sqlite(pagesMax: pages + 12, pendingRowsMax: 25)
        workload.open()
        _ = try await store.open()
        var batch = workload.next()
        var isFull = false
        while !isFull {
            do {
                try await store.commit(batch, by: workload.image.epoch)
                try await expectLookups(store, workload)
                batch = workload.next()
            } catch let error as StoreError where error.code == .full {
                isFull = true
            }
        }
        await store.close()
        let next = subject.sqlite(pendingRowsMax: 25)
        let state = try await next.open()
        workload.open()
        try await next.commit(batch, by: state.epoch)
        await next.close()
        let last = subject.sqlite()
        #expect(workload.image.state.holdsWhat(try await last.open()))
        #expect(try await last.check().isEmpty)
        await last.close()
    }

    @Test(arguments: [40, 10_000])
    func `every event is found, whichever rows are gone`(stored: Int) async throws {
        var limits = Limits()
        limits.storedEvents = stored
        let subject = try StoreUnderTest(.sqlite, limits: limits)
        defer { subject.remove() }
        var workload = StoreWorkload(seed: 5, reign: StoreUnderTest.reign, limits: limits)
        workload.open()
        // So that rows without events are removed, and with few stored events most of the others.
        let store = subject.sqlite(pendingRowsMax: 25)
        _ = try await store.open()
        for _ in 0..<300 {
            try await store.commit(workload.next(), by: workload.image.epoch)
            let last = workload.image.lastEvent
            for after in last.advanced(by: -min(6, Int(last)))...last + 1 {
                let found = try await store.events(after: after, limit: 3)
                #expect(found == workload.image.events(after: after, limit: 3))
            }
        }
        for after in 0...workload.image.lastEvent {
            let found = try await store.events(after: after, limit: 3)
            #expect(found == workload.image.events(after: after, limit: 3))
        }
        await store.close()
    }

    @Test func `the events of a store without a journal are moved into it`() async throws {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        let store = subject.sqlite()
        _ = try await store.open()
        await store.close()
        // The format before the journal. Its first events have been dropped.
        let events = (100...2_345 as ClosedRange<UInt64>).map { number in
            StoredEvent(sequence: number, body: [UInt8(truncatingIfNeeded: number), 0])
        }
        try withDatabase(subject.path) { database in
            try database.execute(
                """
                DROP VIEW readable_ranges;
                DROP TABLE finished_ranges;
                DROP TABLE cut_logs;
                DROP TABLE journal;
                DROP TABLE projection;
                CREATE TABLE events (sequence INTEGER PRIMARY KEY, body BLOB NOT NULL,
                  sum INTEGER NOT NULL) STRICT;
                PRAGMA user_version = 5;
                """
            )
            let insert = try PreparedStatement(database, "INSERT INTO events VALUES (?,?,?)")
            for event in events {
                try insert.bind(Int64(event.sequence))
                try insert.bind(event.body)
                try insert.bindSum()
                try insert.execute()
            }
        }
        let next = subject.sqlite()
        let state = try await next.open()
        #expect(state.lastEvent == 2_345)
        #expect(try await next.events(after: 0, limit: .max) == events)
        var batch = StoreBatch(wall: time(1))
        batch.events = [StoredEvent(sequence: 2_346, body: [])]
        try await next.commit(batch, by: Epoch(rawValue: 2))
        #expect(try await next.events(after: 2_344, limit: .max).map(\.sequence) == [2_345, 2_346])
        #expect(try await next.check().isEmpty)
        await next.close()
    }
}

extension Array {
    fileprivate var nonEmpty: [Element]? { isEmpty ? nil : self }
}
