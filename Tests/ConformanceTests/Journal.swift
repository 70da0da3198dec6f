import ConformanceKit
import Foundation
import Glibc

/// What the operations of one row have said of themselves, in the order in which they said it.
final class Journal: Sendable {
    /// One run of an operation, from its start to its end; one whose process was killed has none.
    struct Run: Sendable {
        let start: JournalLine
        let end: JournalLine?
    }

    let path: String
    private let watch: FileWatch

    init(path: String) throws {
        self.path = path
        guard FileManager.default.createFile(atPath: path, contents: nil) else {
            throw Failure("\(path) cannot be made")
        }
        watch = try FileWatch(path)
    }

    var lines: [JournalLine] {
        let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").compactMap { JournalLine($0) }
    }

    /// Returns when this holds of what is in it.
    ///
    /// - Throws: `Failure` after `limit`.
    func wait(
        for what: String,
        within limit: Duration,
        until isDone: @escaping @Sendable ([JournalLine]) -> Bool
    ) async throws {
        let deadline = ContinuousClock.now + limit
        while true {
            let count = watch.count
            if isDone(lines) { return }
            guard await watch.wait(past: count, until: deadline) else {
                throw Failure("within \(limit) the journal did not tell \(what), but: \(summary)")
            }
        }
    }

    private var summary: String {
        lines.map { "\($0.operation) \($0.event) in \($0.process)" }.joined(separator: ", ")
    }

    // MARK: - What it tells

    func hasStarted(_ operation: String) -> Bool {
        lines.contains { $0.operation == operation && $0.event == .started }
    }

    /// The runs of one operation. Where workers are killed there may be more than one, and the
    /// last one is what counts.
    func runs(of operation: String) -> [Run] { runs.filter { $0.start.operation == operation } }

    /// All runs, in the order of their starts.
    var runs: [Run] {
        var runs: [Run] = []
        var open: [String: Int] = [:]
        for line in lines {
            let key = "\(line.operation) \(line.process) \(line.thread)"
            if line.event == .started {
                open[key] = runs.count
                runs.append(Run(start: line, end: nil))
            } else if let index = open.removeValue(forKey: key) {
                runs[index] = Run(start: runs[index].start, end: line)
            }
        }
        return runs
    }

    /// The operations in the order of their first starts.
    var startOrder: [String] {
        var seen: Set<String> = []
        return lines.filter { $0.event == .started }.map(\.operation)
            .filter { seen.insert($0).inserted }
    }

    /// The operations in the order in which they ended well for the last time.
    var finishOrder: [String] {
        var seen: Set<String> = []
        let backwards = lines.reversed().filter { $0.event == .finished }.map(\.operation)
            .filter { seen.insert($0).inserted }
        return backwards.reversed()
    }

    /// Whether the last run of one began when the last run of the other was over.
    func runs(_ later: String, after earlier: String) -> Bool {
        guard let start = runs(of: later).last?.start, let end = runs(of: earlier).last?.end
        else { return false }
        return end.time <= start.time
    }

    /// The most that ran at once. A run whose process was killed ended at a moment that nobody
    /// noted; it is not counted.
    var peak: Int {
        var changes: [(time: UInt64, by: Int)] = []
        for run in runs {
            guard let end = run.end else { continue }
            changes.append((run.start.time, 1))
            changes.append((end.time, -1))
        }
        changes.sort { ($0.time, $0.by) < ($1.time, $1.by) }
        var current = 0
        var peak = 0
        for change in changes {
            current += change.by
            peak = max(peak, current)
        }
        return peak
    }
}

/// Why a row cannot go on.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// Counts what is written to a file, and wakes those that wait for more (inotify(7)).
final class FileWatch: @unchecked Sendable {
    private let descriptor: Int32
    // Everything below is touched under this lock alone.
    private let lock = NSLock()
    private var changes: UInt64 = 0
    private var waiters: [UInt64: CheckedContinuation<Bool, Never>] = [:]
    private var nextWaiter: UInt64 = 0

    /// Until the file is removed.
    init(_ path: String) throws {
        descriptor = inotify_init1(Int32(IN_CLOEXEC))
        guard descriptor >= 0, inotify_add_watch(descriptor, path, UInt32(IN_MODIFY)) >= 0 else {
            throw Failure("\(path) cannot be watched: error \(errno)")
        }
        let descriptor = descriptor
        Thread.detachNewThread { [weak self] in
            var buffer = [UInt8](repeating: 0, count: 4_096)
            while true {
                let count = read(descriptor, &buffer, buffer.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0, !Self.isRemoved(buffer[..<count]), let self else { break }
                self.changed()
            }
            close(descriptor)
        }
    }

    /// Whether the last of these events says that there is nothing to watch any more.
    private static func isRemoved(_ events: ArraySlice<UInt8>) -> Bool {
        var place = events.startIndex
        while place + MemoryLayout<inotify_event>.size <= events.endIndex {
            let event = events[place...].withUnsafeBytes {
                $0.loadUnaligned(as: inotify_event.self)
            }
            if event.mask & UInt32(IN_IGNORED) != 0 { return true }
            place += MemoryLayout<inotify_event>.size + Int(event.len)
        }
        return false
    }

    private func changed() {
        let waiters = lock.withLock {
            changes += 1
            defer { self.waiters = [:] }
            return self.waiters
        }
        for waiter in waiters.values { waiter.resume(returning: true) }
    }

    var count: UInt64 { lock.withLock { changes } }

    /// Returns `false` if nothing was written since that count, and is not by then.
    func wait(past count: UInt64, until deadline: ContinuousClock.Instant) async -> Bool {
        let id = lock.withLock {
            nextWaiter += 1
            return nextWaiter
        }
        let timer = Task {
            try await Task.sleep(until: deadline, clock: .continuous)
            lock.withLock { waiters.removeValue(forKey: id) }?.resume(returning: false)
        }
        defer { timer.cancel() }
        return await withCheckedContinuation { continuation in
            let answer: Bool? = lock.withLock {
                if changes != count { return true }
                if ContinuousClock.now >= deadline { return false }
                waiters[id] = continuation
                return nil
            }
            if let answer { continuation.resume(returning: answer) }
        }
    }
}
