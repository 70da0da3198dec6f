import Foundation
import OperonCore
import OperonModel
import OperonPorts
import OperonTestKit
import Synchronization

@testable import OperonSQLite

/// A store in SQLite under the simulator. A death leaves a copy of its files as they are at that
/// moment; a power cut also cuts SQLite's log off somewhere behind the last sync.
final class JournalDisk: SimulatedJournal {
    private(set) var coverage = JournalCoverage()
    private(set) var stored = 0
    private let folder: URL
    private let options: SQLiteStore.Options
    private let death = PlannedDeath()
    private var connection: Connection?
    /// The number of the process, and so of its files.
    private var process = 0
    /// What the log has after each transaction since the start of the process.
    private var ends: [LogEnd] = []
    /// The last of them that is on the disk.
    private var syncedEnd = 0
    private var isTorn = false

    private struct LogEnd {
        let bytes: Int
        let stored: Int
    }

    static let reign = Reign(rawValue: 7)
    static let ends = ["", "-wal"]

    init(seed: UInt64, mutation: JournalMutation? = nil) throws {
        var generator = SeededGenerator(seed: seed ^ 0x6469_736b_0000_0001)
        var options = SQLiteStore.Options()
        options.limits.storedEvents = [5, 20, 100, 100_000][Int(generator.next() % 4)]
        options.pendingRowsMax = [1, 4, 15, 60][Int(generator.next() % 4)]
        options.recordsAtOnce = [2, 5, 10_000, 10_000][Int(generator.next() % 4)]
        options.probe.mutation = mutation
        options.probe.passed = { [death] point in try death.passed(point) }
        self.options = options
        // In memory where there is such a folder, because nothing here waits for a real disk.
        let memory = URL(fileURLWithPath: "/dev/shm", isDirectory: true)
        let parent =
            FileManager.default.isWritableFile(atPath: memory.path)
            ? memory : FileManager.default.temporaryDirectory
        folder = parent.appendingPathComponent("operon-journal-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Self.empty.get().write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    }

    /// A store that one coordinator has opened, as the simulator expects it.
    private static let empty = Result {
        let path = FileManager.default.temporaryDirectory
            .appendingPathComponent("operon-journal-\(UUID().uuidString)").path
        defer { StoreFile.remove(path) }
        try StoreFile.makeIfMissing(path, reign: reign)
        let connection = try Connection(path: path, options: SQLiteStore.Options())
        _ = try connection.begin()
        try connection.close()
        return try Data(contentsOf: URL(fileURLWithPath: path))
    }

    /// To be called at the end of a test.
    func remove() {
        try? connection?.close()
        connection = nil
        try? FileManager.default.removeItem(at: folder)
    }

    var limits: Limits { options.limits }

    private var path: String { folder.appendingPathComponent("\(process).db").path }

    func planDeath(_ draw: UInt64) {
        let points = JournalPoint.allCases
        death.plan(points[Int(draw % UInt64(points.count))])
    }

    func cancelDeath() { death.plan(nil) }

    // MARK: - The life of a process

    func open() throws -> SimulatedStart {
        death.begin(from: path, to: nextPath)
        (ends, syncedEnd) = ([], 0)
        do {
            let connection = try Connection(path: path, options: options)
            self.connection = connection
            let state = try connection.begin()
            if death.takePassed(.inReplay) { coverage.hit(.replayed) }
            if isTorn { try connection.emptyLog() }
            isTorn = false
            noteEnd()
            return .opened(state)
        } catch {
            guard let point = death.point else { throw error }
            coverage.hit(.diedAtStart)
            return .died(epochIsRaised: point == .beforeSync || point == .afterSync)
        }
    }

    func commit(_ batch: StoreBatch, by epoch: Epoch) throws -> Bool {
        let lives = try survives { try $0.write { try $0.commit(batch, by: epoch) } }
        if !batch.isEmpty, lives || death.point == .afterCommit { noteEnd(stores: true) }
        return lives
    }

    func project() throws -> Bool {
        // It has no error of its own: it is tried again.
        let lives = try survives { $0.projectIfDue() }
        if lives || death.point == .afterProjection { noteEnd() }
        return lives
    }

    func sync() throws -> Bool {
        _ = death.takePassed(.afterSync)
        let lives = try survives { try $0.sync() }
        if death.takePassed(.afterSync) { syncedEnd = ends.count - 1 }
        return lives
    }

    func drop(_ graph: GraphID, by epoch: Epoch) throws -> Bool {
        let lives = try survives { try $0.write { try $0.bury(graph, by: epoch) } }
        if lives || death.point == .afterProjection { noteEnd(stores: lives) }
        guard lives else { return false }
        return try survives { connection in
            var next: UInt32? = 0
            while let first = next {
                next = try connection.write { try $0.sweep(graph, from: first, by: epoch) }
                noteEnd()
            }
        }
    }

    /// Returns whether the process lives after this call.
    private func survives(_ body: (Connection) throws -> Void) throws -> Bool {
        guard let connection else { throw StoreError(.failed, "The journal is not open.") }
        do {
            try body(connection)
        } catch {
            guard death.point != nil else { throw error }
        }
        return death.point == nil
    }

    /// Notes what SQLite's log has at the end of a transaction.
    private func noteEnd(stores: Bool = false) {
        if stores { stored += 1 }
        ends.append(LogEnd(bytes: Self.size(of: path + "-wal"), stored: stored))
    }

    // MARK: - Death

    func die(powerCut draw: UInt64?) throws {
        if let point = death.point {
            coverage.hit(point)
        } else {
            try death.copyFiles()
        }
        if draw != nil { coverage.hit(.powerCut) }
        // What it does now goes to files that nobody reads.
        try? connection?.close()
        connection = nil
        for end in Self.ends { StoreFile.remove(path + end) }
        process += 1
        if let draw, !ends.isEmpty { try cutLog(draw) }
    }

    /// A part of what was not synced is on the disk: some whole transactions, and perhaps the
    /// beginning of the next.
    private func cutLog(_ draw: UInt64) throws {
        let last = syncedEnd + Int(draw % UInt64(ends.count - syncedEnd))
        var bytes = ends[last].bytes
        if ends[last].stored < stored { coverage.hit(.commitsLost) }
        if last < ends.count - 1, draw >> 32 % 2 == 0, ends[last + 1].bytes > bytes {
            bytes += (ends[last + 1].bytes - bytes) / 2
            isTorn = true
            coverage.hit(.logTorn)
        }
        stored = ends[last].stored
        let log = path + "-wal"
        guard Self.size(of: log) > bytes else { return }
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: log))
        try file.truncate(atOffset: UInt64(bytes))
        try file.close()
    }

    private var nextPath: String { folder.appendingPathComponent("\(process + 1).db").path }

    private static func size(of path: String) -> Int {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        return (attributes?[.size] as? Int) ?? 0
    }

    // MARK: - What it has

    func difference(from image: StoreImage) throws -> String? {
        guard let connection else { return "the journal is not open" }
        return try connection.read { tables in
            if let problem = try tables.problems().first { return problem }
            let events = try tables.events(after: 0, limit: .max)
            guard events == image.events(after: 0, limit: .max) else { return "other events" }
            for graph in image.state.graphs where !graph.isTombstone {
                let count = graph.contents.reduce(0) { $0 + $1.operationCount }
                let all = 0..<UInt32(count)
                if try tables.attempts(of: graph.id, in: all)
                    != image.attempts(of: graph.id, in: all)
                {
                    return "other attempts of graph \(graph.id)"
                }
                for index in all {
                    let id = OperationID(graph: graph.id, index: index)
                    if try tables.output(of: id) != image.output(of: id) {
                        return "another output of \(id)"
                    }
                    if try tables.log(of: id) != image.log(of: id) {
                        return "another log of \(id)"
                    }
                    if try tables.attempts(of: id) != image.attempts(of: id) {
                        return "other attempts of \(id)"
                    }
                }
            }
            return nil
        }
    }
}

/// What the seeds met: what no seed has met was not tested.
struct JournalCoverage: Hashable {
    enum Event: String, CaseIterable {
        case diedAtStart
        case powerCut
        /// A power cut took commits back that nobody was told.
        case commitsLost
        /// A power cut left a part of a transaction.
        case logTorn
        /// The tables lacked rows of the journal at a start.
        case replayed
    }

    private(set) var deaths: [JournalPoint: Int] = [:]
    private(set) var events: [Event: Int] = [:]

    mutating func hit(_ point: JournalPoint) { deaths[point, default: 0] += 1 }
    mutating func hit(_ event: Event) { events[event, default: 0] += 1 }

    mutating func add(_ other: JournalCoverage) {
        deaths.merge(other.deaths) { $0 + $1 }
        events.merge(other.events) { $0 + $1 }
    }
}

extension Connection {
    /// Copies SQLite's log into the file and begins a new one. The end of a torn log is inside it,
    /// so its size would not say where the next transaction ends.
    fileprivate func emptyLog() throws {
        try write { tables in
            let checkpoint = try tables.statement("PRAGMA wal_checkpoint(TRUNCATE)")
            defer { checkpoint.reset() }
            _ = try checkpoint.step()
        }
    }
}

/// Kills the process of a store at a crash point: copies its files, and ends the call.
private final class PlannedDeath: Sendable {
    private struct State {
        var plan: JournalPoint?
        /// Where the process died; `nil`: it lives.
        var point: JournalPoint?
        var passed: Set<JournalPoint> = []
        var source = ""
        var target = ""
    }

    private struct Death: Error {}

    private let state = Mutex(State())

    var point: JournalPoint? { state.withLock { $0.point } }

    func plan(_ point: JournalPoint?) { state.withLock { $0.plan = point } }

    /// A process starts on the files at `source`, and leaves a copy at `target`.
    func begin(from source: String, to target: String) {
        state.withLock { state in
            (state.source, state.target, state.point) = (source, target, nil)
            state.passed = []
        }
    }

    func takePassed(_ point: JournalPoint) -> Bool {
        state.withLock { $0.passed.remove(point) != nil }
    }

    func passed(_ point: JournalPoint) throws {
        let dies = state.withLock { state in
            guard state.point == nil else { return false }
            state.passed.insert(point)
            guard state.plan == point else { return false }
            (state.plan, state.point) = (nil, point)
            return true
        }
        guard dies else { return }
        try copyFiles()
        throw Death()
    }

    func copyFiles() throws {
        let (source, target) = state.withLock { ($0.source, $0.target) }
        for end in JournalDisk.ends
        where FileManager.default.fileExists(atPath: source + end) {
            try FileManager.default.copyItem(atPath: source + end, toPath: target + end)
        }
    }
}
