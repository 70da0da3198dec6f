import Glibc
package import OperonCore
import Synchronization

/// Looks at the files that a command produces and consumes.
package enum FileLook {
    /// What came of a look at a file system that may not answer.
    enum Answer<Value: Sendable>: Sendable {
        case found(Value)
        /// The attempt was asked to stop before.
        case stopped
        /// The time was over before.
        case timedOut
    }

    /// Why a look takes so long.
    static let hangs = "the file system of the files that it produces or consumes does not answer"

    /// Runs a look on a thread, and waits for it at most this long; `nil`: for ever. A look that is
    /// given up goes on, if it has begun, and its result is dropped.
    ///
    /// - Parameters:
    ///   - stop: A request ends the wait.
    ///   - earlier: The request that is known already, and does not end it.
    static func answer<Value: Sendable>(
        on thread: SerialThread,
        _ stop: StopSignal,
        after earlier: StopSignal.Request? = nil,
        within limit: Duration?,
        _ look: @escaping @Sendable () -> Value
    ) async -> Answer<Value> {
        var timer: Task<Void, Never>?
        let answer = await withCheckedContinuation { continuation in
            let first = FirstAnswer<Value>(continuation)
            let requested = stop.attach { _ in first.give(.stopped) }
            if requested != earlier { first.give(.stopped) }
            thread.submit { if first.isAwaited { first.give(.found(look())) } }
            timer = limit.map { limit in
                Task {
                    try? await Task.sleep(for: limit)
                    first.give(.timedOut)
                }
            }
        }
        timer?.cancel()
        stop.detach()
        return answer
    }

    /// Of several answers, passes on the first.
    private final class FirstAnswer<Value: Sendable>: Sendable {
        private let waiter: Mutex<CheckedContinuation<Answer<Value>, Never>?>

        init(_ waiter: CheckedContinuation<Answer<Value>, Never>) {
            self.waiter = Mutex(waiter)
        }

        var isAwaited: Bool { waiter.withLock { $0 != nil } }

        func give(_ answer: Answer<Value>) {
            let waiting = waiter.withLock { waiter in
                defer { waiter = nil }
                return waiter
            }
            waiting?.resume(returning: answer)
        }
    }

    /// Looks at these paths in their order, and blocks. Links are followed, as the process would
    /// follow them.
    ///
    /// - Parameter directory: where a relative path begins; `nil`: where this process started.
    package static func look(at paths: [String], in directory: String?) -> [ObservedFile] {
        paths.map { ObservedFile($0, finding(whole($0, in: directory))) }
    }

    private static func whole(_ path: String, in directory: String?) -> String {
        let isAbsolute = path.utf8.first == UInt8(ascii: "/")
        return isAbsolute ? path : directory.map { "\($0)/\(path)" } ?? path
    }

    /// A file that was to be removed.
    struct Removal: Hashable, Sendable {
        let path: String
        /// Why it is still there; `nil`: it is not.
        let problem: String?
    }

    /// Removes regular files, and links to such, in their order, and blocks.
    ///
    /// - Parameter isWanted: Asked before each removal.
    static func remove(
        _ paths: [String],
        in directory: String?,
        while isWanted: () -> Bool
    ) -> [Removal] {
        paths.map { path in
            guard isWanted() else { return Removal(path: path, problem: hangs) }
            return Removal(path: path, problem: problem(removing: whole(path, in: directory)))
        }
    }

    private static func problem(removing path: String) -> String? {
        var status = stat()
        guard unsafe fstatat(AT_FDCWD, path, &status, 0) == 0 else {
            return errno == ENOENT ? nil : SystemError.text(errno)
        }
        guard status.st_mode & S_IFMT == S_IFREG else { return "it is not a regular file" }
        return unsafe unlink(path) == 0 ? nil : SystemError.text(errno)
    }

    /// What is said of removals, in lines for the log of the attempt.
    static func notes(on answer: Answer<[Removal]>) -> [String] {
        guard case .found(let removals) = answer else {
            return ["its files may be unfinished, and were left: \(hangs)"]
        }
        func named(_ removals: [Removal], _ what: String) -> [String] {
            guard let first = removals.first else { return [] }
            let more = removals.count > 1 ? " (and \(removals.count - 1) more of its files)" : ""
            let why = first.problem.map { ": \($0)" } ?? ""
            return ["the file “\(first.path)”\(more) \(what)\(why)"]
        }
        return named(removals.filter { $0.problem == nil }, "was removed, because it is unfinished")
            + named(removals.filter { $0.problem != nil }, "may be unfinished, and was left")
    }

    private static func finding(_ path: String) -> ObservedFile.Finding {
        var status = stat()
        guard unsafe fstatat(AT_FDCWD, path, &status, 0) == 0 else {
            let code = errno
            // What is no directory has no files.
            guard code != ENOENT, code != ENOTDIR else { return .missing }
            return .unknown(why: SystemError.text(code))
        }
        return .exists(
            modified: ModificationTime(
                seconds: Int64(status.st_mtim.tv_sec),
                nanoseconds: Int64(status.st_mtim.tv_nsec)
            )
        )
    }
}
