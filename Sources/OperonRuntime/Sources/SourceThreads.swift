import COperonProcess
import Glibc
package import OperonModel
import Synchronization

/// The threads that the sources of one process share: one waits for descriptors, one calls what may
/// block, such as the file system. A file system that does not answer therefore delays every source
/// that looks at files, but nothing else.
package final class SourceThreads: Sendable {
    let readiness: ReadinessThread
    let files: SerialThread

    package init() throws(TriggerSourceError) {
        do throws(SystemError) {
            readiness = try ReadinessThread()
            files = try SerialThread(name: "operon-sources")
        } catch {
            throw TriggerSourceError(error, "sources of triggers cannot be observed")
        }
    }

    /// Ends the threads. To be called after the sources have ended.
    package func stop() {
        readiness.stop()
        files.stop()
    }
}

extension TriggerSourceError {
    /// Explains a failed system call.
    init(_ error: SystemError, _ what: String) {
        self.init(errno: error.code, "\(what): \(error)")
    }

    init(errno: Int32, _ message: String) {
        let code: Code =
            switch errno {
            case EACCES, EPERM: .accessRefused
            case ENOENT, ENOTDIR, ESRCH: .absent
            case EMFILE, ENFILE, ENOMEM, ENOSPC, EAGAIN: .exhausted
            default: .system
            }
        self.init(code, message)
    }
}

/// Passes on a status if it differs from the one before.
struct StatusTeller {
    private var last: TriggerSourceStatus?
    private let tell: @Sendable (TriggerSourceStatus) -> Void

    init(_ tell: @escaping @Sendable (TriggerSourceStatus) -> Void) { self.tell = tell }

    mutating func callAsFunction(_ status: TriggerSourceStatus) {
        guard status != last else { return }
        last = status
        tell(status)
    }

    /// An occurrence that cannot be reported: says nothing about whether the source observes.
    func refused(_ error: TriggerSourceError) { tell(.refused(error)) }
}

/// One thread that waits for any number of descriptors, so that no cooperative thread does.
final class ReadinessThread: Sendable {
    private struct State {
        var lastID: UInt64 = 0
        var waiters: [UInt64: CheckedContinuation<Void, any Error>] = [:]
        var isStopped = false
    }

    /// The most events taken at once; the rest come with the next call.
    private static let eventsMax = 64
    /// No waiter has this number.
    private static let wakeupID: UInt64 = 0

    private let state = Mutex(State())
    private let epoll: Descriptor
    private let wakeup: Descriptor

    init() throws(SystemError) {
        let number = operon_process_epoll()
        guard number >= 0 else { throw .current("making an epoll") }
        epoll = Descriptor(owning: number)
        wakeup = try Descriptor.wakeup(blocking: false)
        guard operon_process_watch(epoll.number, wakeup.number, Self.wakeupID) == 0 else {
            throw .current("watching an eventfd")
        }
        try OwnThread.start("operon-ready") { [self] in work() }
    }

    /// Returns when there is something to read from a descriptor, or its end. One task at a time
    /// waits for a descriptor, and keeps it open meanwhile.
    ///
    /// - Throws: `CancellationError`; `SystemError` if the descriptor cannot be watched.
    func readable(_ number: Int32) async throws {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isWaiting = state.withLock { state in
                    // Cancellation sets the flag first and takes the lock afterwards, so none is
                    // missed.
                    guard !state.isStopped, !Task.isCancelled else { return false }
                    state.waiters[id] = continuation
                    return true
                }
                guard isWaiting else { return continuation.resume(throwing: CancellationError()) }
                guard operon_process_watch_once(epoll.number, number, id) != 0 else { return }
                let error = SystemError.current("watching a descriptor")
                take(id)?.resume(throwing: error)
            }
        } onCancel: {
            take(id)?.resume(throwing: CancellationError())
        }
    }

    /// Returns `true` when there is something to read, `false` after the pause.
    func readable(
        _ number: Int32,
        within pause: Duration,
        by time: TimeSource
    ) async throws -> Bool {
        try await readable(number) { try await time.sleep(time.now() + pause) }
    }

    /// Returns `true` when there is something to read, `false` if `other` returns before.
    func readable(
        _ number: Int32,
        or other: @escaping @Sendable () async throws -> Void
    ) async throws -> Bool {
        try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                try await self.readable(number)
                return true
            }
            group.addTask {
                try await other()
                return false
            }
            defer { group.cancelAll() }
            return try await group.next() ?? false
        }
    }

    /// Ends the thread; whoever waits is cancelled.
    func stop() {
        let waiters = state.withLock { state in
            state.isStopped = true
            defer { state.waiters = [:] }
            // The order does not matter: each waiter is a task of its own.
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.resume(throwing: CancellationError()) }
        wakeup.signal()
    }

    private func take(_ id: UInt64) -> CheckedContinuation<Void, any Error>? {
        state.withLock { $0.waiters.removeValue(forKey: id) }
    }

    private func work() {
        var events = [UInt64](repeating: 0, count: Self.eventsMax)
        while true {
            let count = unsafe operon_process_wait(
                epoll.number,
                &events,
                Int32(events.count),
                -1
            )
            for event in events.prefix(Int(count)) {
                // Harmless: the event of a waiter that was cancelled meanwhile.
                guard event != Self.wakeupID else { continue }
                take(event)?.resume()
            }
            if state.withLock({ $0.isStopped }) { return }
        }
    }
}
