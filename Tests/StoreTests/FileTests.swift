import Foundation
import OperonCore
import OperonModel
import OperonPorts
import OperonTestKit
import Testing

@testable import OperonSQLite

/// What becomes of the file of a store: made whole, refused when it is not, never made anew.
@Suite struct FileTests {
    /// A closed store with something of everything, and what it holds.
    private func filled(_ subject: StoreUnderTest, batches: Int = 60) async throws -> StoreWorkload
    {
        let store = subject.sqlite()
        var workload = StoreWorkload(seed: 5, reign: StoreUnderTest.reign)
        workload.open()
        _ = try await store.open()
        for _ in 0..<batches { try await store.commit(workload.next(), by: workload.image.epoch) }
        await store.close()
        return workload
    }

    private func bytes(_ path: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
    }

    private func write(_ bytes: some Collection<UInt8>, to path: String) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: path))
    }

    @Test func `who leads has the file, and raises no epoch before it is opened`() async throws {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        let first = subject.sqlite()
        let second = subject.sqlite()
        try await first.acquire()
        let refused = try await storeError { try await second.acquire() }
        #expect(refused.code == .held)
        await first.release()
        try await second.acquire()
        #expect(try await second.open().epoch == Epoch(rawValue: 1))
        await second.release()
        await second.release()
        #expect(try await first.open().epoch == Epoch(rawValue: 2))
        await first.close()
    }

    @Test func `only its owner may read a store, its log too`() async throws {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        let store = subject.sqlite()
        _ = try await store.open()
        #expect(subject.files == ["store.db", "store.db-wal"])
        for file in subject.files {
            let path = subject.folder.appendingPathComponent(file).path
            let facts = try FileManager.default.attributesOfItem(atPath: path)
            #expect(facts[.posixPermissions] as? Int == 0o600, "\(file)")
        }
        await store.close()
        #expect(subject.files == ["store.db"])
    }

    @Test(arguments: [0o666, 0o620, 0o602])
    func `a store that others may write is refused`(mode: Int) async throws {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        _ = try await filled(subject, batches: 1)
        let manager = FileManager.default
        try manager.setAttributes([.posixPermissions: mode], ofItemAtPath: subject.path)

        let error = try await storeError { _ = try await subject.sqlite().open() }

        #expect(error.code == .failed)
        #expect(error.message.contains("chmod go-w \(subject.path)"))
        #expect(subject.files == ["store.db"])
        try manager.setAttributes([.posixPermissions: 0o600], ofItemAtPath: subject.path)
        let store = subject.sqlite()
        _ = try await store.open()
        await store.close()
    }

    @Test func `a file that is no store is refused and left as it is`() async throws {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        for content in ["", "not a database", String(repeating: "x", count: 10_000)] {
            try write(Array(content.utf8), to: subject.path)
            let error = try await storeError { _ = try await subject.sqlite().open() }
            #expect(error.code == .damaged, "\(error)")
            #expect(error.message.contains(subject.path) && error.message.contains("left as it is"))
            #expect(try bytes(subject.path) == Array(content.utf8))
            #expect(subject.files == ["store.db"])
        }
    }

    @Test func `a database of another program is refused`() async throws {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        _ = try await filled(subject, batches: 1)
        var content = try bytes(subject.path)
        // SQLite's header: the id of the application at 68.
        content[68] ^= 1
        try write(content, to: subject.path)
        let error = try await storeError { _ = try await subject.sqlite().open() }
        #expect(error.code == .damaged && error.message.contains("another program"))
    }

    @Test func `a store of a later version is refused`() async throws {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        _ = try await filled(subject, batches: 1)
        var content = try bytes(subject.path)
        // SQLite's header: the version of the tables ends at 63.
        content[63] += 1
        try write(content, to: subject.path)
        let error = try await storeError { _ = try await subject.sqlite().open() }
        #expect(error.code == .newer && error.message.contains("later version"))
        // Nothing was changed by looking, but the counter of changes of the log's mode.
        #expect(try bytes(subject.path).count == content.count)
    }

    @Test func `a folder that is not there is named`() async throws {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        let places = [
            subject.path + "-missing/store.db": "No such file or directory",
            subject.folder.path: "is no file",
            // Nobody, not even root, makes files there.
            "/proc/store.db": "cannot be made",
        ]
        for (path, words) in places.sorted(by: { $0.key < $1.key }) {
            let error = try await storeError {
                _ = try await SQLiteStore(path: path, newReign: StoreUnderTest.reign).open()
            }
            #expect(error.code == .failed)
            #expect(error.message.contains(words) && error.message.contains(path))
        }
        #expect(subject.files.isEmpty)
    }

    @Test func `a truncated store is refused, whatever its length`() async throws {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        _ = try await filled(subject)
        let content = try bytes(subject.path)
        var generator = SeededGenerator(seed: 11)
        let pages = stride(from: 4_096, to: content.count, by: 4_096)
        let others = (0..<40).map { _ in Int(generator.next() % UInt64(content.count)) }
        for length in Array(pages) + others {
            try write(content[..<length], to: subject.path)
            let error = try await storeError { _ = try await subject.sqlite().open() }
            #expect(error.code == .damaged, "length \(length): \(error)")
            #expect(
                try FileManager.default.attributesOfItem(atPath: subject.path)[.size] as? Int
                    == length
            )
        }
    }

    @Test func `a changed byte is refused or changes nothing`() async throws {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        let workload = try await filled(subject)
        let content = try bytes(subject.path)
        var generator = SeededGenerator(seed: 12)
        var refused = 0
        var equal = 0
        let header = (0..<100).map { $0 }
        let anywhere = (0..<600).map { _ in Int(generator.next() % UInt64(content.count)) }
        for place in header + anywhere {
            var changed = content
            changed[place] ^= UInt8(1 << (generator.next() % 8))
            try write(changed, to: subject.path)
            try? FileManager.default.removeItem(atPath: subject.path + "-wal")
            let store = subject.sqlite()
            do {
                let state = try await store.open()
                #expect(state.holdsWhat(workload.image.state), "byte \(place)")
                await expectTruthOrRefusal(store, workload, "byte \(place)")
                equal += 1
            } catch let error as StoreError {
                #expect(
                    [.damaged, .newer, .failed].contains(error.code),
                    "byte \(place): \(error)"
                )
                refused += 1
            }
            await store.close()
        }
        // Else nothing was tried.
        #expect(refused > 100 && equal > 10, "\(refused) refused, \(equal) equal")
    }

    /// What is looked up is what was written, or damage.
    private func expectTruthOrRefusal(
        _ store: SQLiteStore,
        _ workload: StoreWorkload,
        _ comment: Comment
    ) async {
        for id in workload.operations {
            if let output = try? await store.output(of: id) {
                #expect(output == workload.image.output(of: id), comment)
            }
            // A log under another key is not found: nothing but a person needs it.
            if let log = try? await store.log(of: id), !log.isEmpty {
                #expect(log == workload.image.log(of: id), comment)
            }
        }
    }

    @Test func `a damaged log loses its end whole, never half`() async throws {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        let first = subject.sqlite()
        var workload = StoreWorkload(seed: 6, reign: StoreUnderTest.reign)
        workload.open()
        var states = [try await first.open()]
        for _ in 0..<40 {
            try await first.commit(workload.next(), by: workload.image.epoch)
            states.append(workload.image.state)
        }
        let file = try bytes(subject.path)
        let log = try bytes(subject.path + "-wal")
        await first.close()
        var generator = SeededGenerator(seed: 13)
        for _ in 0..<150 {
            var changed = log
            if generator.next() % 2 == 0 {
                changed.removeLast(Int(generator.next() % UInt64(log.count)))
            } else {
                changed[Int(generator.next() % UInt64(log.count))] ^= 0x10
            }
            try write(file, to: subject.path)
            try write(changed, to: subject.path + "-wal")
            let store = subject.sqlite()
            let state = try await store.open()
            #expect(states.contains { $0.holdsWhat(state) })
            await store.close()
        }
    }

    @Test func `when it is full nothing is kept, and it goes on when there is room`() async throws {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        var workload = try await filled(subject, batches: 10)
        let pages = try bytes(subject.path).count / 4_096
        workload.open()
        var store = subject.sqlite(pagesMax: pages + 20)
        _ = try await store.open()
        var refused: StoreBatch?
        while refused == nil {
            let before = workload
            let batch = workload.next()
            do {
                try await store.commit(batch, by: workload.image.epoch)
            } catch let error as StoreError {
                #expect(error.code == .full && error.isTransient, "\(error)")
                let again = try await storeError {
                    try await store.commit(batch, by: workload.image.epoch)
                }
                #expect(again.code == .full)
                try await expectLookups(store, before)
                refused = batch
            }
        }
        await store.close()

        store = subject.sqlite()
        workload.open()
        _ = try await store.open()
        try await store.commit(try #require(refused), by: workload.image.epoch)
        try await expectLookups(store, workload)
        await store.close()
        workload.open()
        let last = subject.sqlite()
        expectEqual(try await last.open(), workload.image.state)
        await last.close()
    }

    @Test func `a store of an earlier format is brought up to date, and keeps what it has`()
        async throws
    {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        let store = subject.sqlite()
        var workload = StoreWorkload(seed: 11, reign: StoreUnderTest.reign, isOldFormat: true)
        workload.open()
        _ = try await store.open()
        for _ in 0..<40 { try await store.commit(workload.next(), by: workload.image.epoch) }
        await store.close()
        #expect(!workload.image.state.workers.isEmpty)
        // The format that knew no names of workers, no rates, no triggers, no journal and no
        // ranges.
        try withDatabase(subject.path) { database in
            try database.execute(
                """
                DROP VIEW readable_ranges;
                DROP TABLE finished_ranges;
                DROP TABLE cut_logs;
                DROP VIEW readable_attempts;
                DROP TABLE workers;
                DROP TABLE rates;
                DROP VIEW readable_firings;
                DROP TABLE triggers;
                DROP TABLE trigger_states;
                DROP TABLE firings;
                DROP TABLE journal;
                DROP TABLE projection;
                CREATE TABLE events (sequence INTEGER PRIMARY KEY, body BLOB NOT NULL,
                  sum INTEGER NOT NULL) STRICT;
                CREATE VIEW readable_attempts AS SELECT 1 AS operation;
                PRAGMA user_version = 2;
                """
            )
        }
        // The second time it is looked at as one of the latest format.
        for _ in 0..<2 {
            let next = subject.sqlite()
            workload.open()
            var expected = workload.image.state
            expected.workers = []
            expected.rates = []
            expected.triggers = []
            expected.lastEvent = 0
            expectEqual(try await next.open(), expected)
            #expect(try await next.check().isEmpty)
            await next.close()
        }
    }

    // MARK: - Backup, vacuum, check

    @Test func `a backup of a running store is a store with a reign of its own`() async throws {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        let store = subject.sqlite()
        var workload = StoreWorkload(seed: 8, reign: StoreUnderTest.reign)
        workload.open()
        _ = try await store.open()
        for _ in 0..<50 { try await store.commit(workload.next(), by: workload.image.epoch) }
        let target = subject.folder.appendingPathComponent("backup.db").path
        async let copying: Void = store.backup(to: target)
        for _ in 0..<50 { try await store.commit(workload.next(), by: workload.image.epoch) }
        try await copying
        let second = try await storeError { try await store.backup(to: target) }
        #expect(second.message.contains("exists already"))
        await store.close()

        #expect(subject.files == ["backup.db", "store.db"])
        let copy = SQLiteStore(path: target, newReign: StoreUnderTest.reign)
        let state = try await copy.open()
        #expect(state.reign != StoreUnderTest.reign && state.epoch == Epoch(rawValue: 2))
        #expect(try await copy.check().isEmpty)
        // What was committed while it was copied is in it whole, up to some batch.
        var replay = StoreWorkload(seed: 8, reign: StoreUnderTest.reign)
        replay.open()
        var states: [StoredState] = []
        for _ in 0..<100 {
            _ = replay.next()
            states.append(replay.image.state)
        }
        #expect(states.dropFirst(49).contains { $0.holdsWhat(state) })
        await copy.close()
    }

    @Test func `a copy that is read away is whole, alone, and leaves nothing`() async throws {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        // What a life before did not finish.
        let left = subject.path + ".operon-backup-draft"
        try write([1, 2, 3], to: left)
        // A name that a person gives a copy of his own.
        let own = subject.path + ".copy"
        try write([1, 2, 3], to: own)
        let store = subject.sqlite()
        var workload = StoreWorkload(seed: 9, reign: StoreUnderTest.reign)
        workload.open()
        _ = try await store.open()
        #expect(!FileManager.default.fileExists(atPath: left))
        #expect(FileManager.default.fileExists(atPath: own))
        try FileManager.default.removeItem(atPath: own)
        for _ in 0..<50 { try await store.commit(workload.next(), by: workload.image.epoch) }
        let kept = workload.image.state
        var bytes: [UInt8] = []
        do {
            let copy = try #require(await store.backup())
            let second = try await storeError { _ = try await store.backup() }
            #expect(second.code == .busy)
            for _ in 0..<50 { try await store.commit(workload.next(), by: workload.image.epoch) }
            for try await piece in copy.pieces { bytes += piece }
            #expect(bytes.count == copy.byteCount)
        }
        // The next one may follow, whether or not it is read.
        _ = try await store.backup()
        await store.close()
        #expect(subject.files == ["store.db"])

        let target = subject.folder.appendingPathComponent("copy.db").path
        try write(bytes, to: target)
        let next = SQLiteStore(path: target, newReign: StoreUnderTest.reign)
        let state = try await next.open()
        #expect(state.reign != StoreUnderTest.reign)
        #expect(kept.holdsWhat(state))
        #expect(try await next.check().isEmpty)
        await next.close()
    }

    @Test func `a copy whose task is cancelled leaves nothing, and the store goes on`()
        async throws
    {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        let store = subject.sqlite()
        var workload = StoreWorkload(seed: 10, reign: StoreUnderTest.reign)
        workload.open()
        _ = try await store.open()
        for _ in 0..<50 { try await store.commit(workload.next(), by: workload.image.epoch) }
        let target = subject.folder.appendingPathComponent("backup.db").path

        let copying = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await store.backup(to: target)
        }
        await #expect(throws: CancellationError.self) { try await copying.value }

        #expect(subject.files.allSatisfy { $0.hasPrefix("store.db") }, "\(subject.files)")
        try await store.commit(workload.next(), by: workload.image.epoch)
        try await store.backup(to: target)
        await store.close()
        #expect(subject.files == ["backup.db", "store.db"])
    }

    @Test func `a store that is closed while it is copied is free for the next`() async throws {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        let store = subject.sqlite()
        _ = try await store.open()
        await store.close()
        let target = subject.folder.appendingPathComponent("backup.db").path

        let connection = try Connection(path: subject.path, options: SQLiteStore.Options())
        _ = try connection.begin()
        let copy = try connection.beginBackup(to: target)
        #expect(subject.files.contains { $0.hasPrefix("backup.db") })
        try connection.close()
        #expect(subject.files == ["store.db"])
        // The task that copies finds out later.
        connection.abandonBackup(copy)

        let next = subject.sqlite()
        _ = try await next.open()
        await next.close()
    }

    @Test func `vacuuming gives back what pruning freed`() async throws {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        let store = subject.sqlite()
        _ = try await store.open()
        let graph = GraphID(rawValue: 0)
        var batch = StoreBatch(wall: time(1), records: [.graphAdded(graph), finished(graph)])
        batch.graphs = [contents(graph)]
        batch.graphs[0].body = [UInt8](repeating: 1, count: 3 << 20)
        try await store.commit(batch, by: .first)
        #expect(try await store.prune(finishedBefore: nil, keeping: 0, by: .first) == 1)
        try await store.vacuum()
        #expect(try await store.check().isEmpty)
        try await store.sync()
        await store.close()
        #expect(try bytes(subject.path).count < 1 << 20)
        let next = subject.sqlite()
        #expect(try await next.open().graphs.first?.isTombstone == true)
        await next.close()
    }

    /// Somebody who writes the sums, too.
    @Test func `a store whose numbers end is refused before one is counted on`() async throws {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        let store = subject.sqlite()
        _ = try await store.open()
        await store.close()
        try withDatabase(subject.path) { database in
            let insert = try PreparedStatement(
                database,
                "INSERT OR REPLACE INTO projection VALUES (?,?,?,?)"
            )
            try insert.bind(1 as Int64)
            try insert.bind(-1 as Int64)
            try insert.bind(1 as Int64)
            try insert.bindSum()
            try insert.execute()
        }
        let error = try await storeError { _ = try await subject.sqlite().open() }
        #expect(error.code == .damaged)
    }

    @Test func `a check finds what loading does not look at`() async throws {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        let graph = GraphID(rawValue: 0)
        let store = subject.sqlite()
        _ = try await store.open()
        var batch = StoreBatch(wall: time(1), records: [.graphAdded(graph)])
        batch.graphs = [contents(graph)]
        batch.events = [StoredEvent(sequence: 1, body: [])]
        let id = OperationID(graph: graph, index: 0)
        let attempt = AttemptID(epoch: Epoch(rawValue: 1), number: 1)
        batch.records += [
            .granted(attempt, id, ordinal: 1, to: Incarnation(rawValue: 1)), finished(graph),
        ]
        let mark = Array("here is the output".utf8)
        batch.results = [
            StoredResult(
                operation: id,
                attempt: attempt,
                output: Payload(bytes: mark),
                log: .empty,
                startedAt: nil,
                endedAt: time(2)
            )
        ]
        try await store.commit(batch, by: .first)
        #expect(try await store.check().isEmpty)
        await store.close()
        var content = try bytes(subject.path)
        let place = try #require(
            content.indices.first { content[$0...].starts(with: mark) }
        )
        content[place] ^= 1
        try write(content, to: subject.path)
        let next = subject.sqlite()
        _ = try await next.open()
        #expect(try await next.check() == ["1 rows of outputs are not as written."])
        let error = try await storeError { _ = try await next.output(of: id) }
        #expect(error.code == .damaged)
        await next.close()
    }
}
