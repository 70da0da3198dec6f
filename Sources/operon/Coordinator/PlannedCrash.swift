import Glibc
import OperonRuntime
import Synchronization

/// A crash point for tests: kills this process, like `kill -9`, when it reaches a given step for
/// the n-th time. Tests use it to crash between any two steps of the order of effects.
/// `OPERON_KILL_AT=afterCommit:3` sets it. Without a number it kills at the first time; an unknown
/// step has no effect.
final class PlannedCrash: Sendable {
    private let point: CrashPoint?
    private let left: Mutex<Int>

    init(_ environment: [String: String]) {
        let parts = environment["OPERON_KILL_AT"]?.split(separator: ":") ?? []
        point = parts.first.flatMap { CrashPoint(rawValue: String($0)) }
        left = Mutex(parts.last.flatMap { Int($0) } ?? 1)
    }

    var passed: @Sendable (CrashPoint) -> Void {
        guard let point else { return { _ in } }
        return { [self] passed in
            guard passed == point else { return }
            let isTime = left.withLock { left in
                left -= 1
                return left == 0
            }
            if isTime { kill(getpid(), SIGKILL) }
        }
    }
}
