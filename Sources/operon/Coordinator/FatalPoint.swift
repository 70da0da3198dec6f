import Glibc
import NIOConcurrencyHelpers
import OperonRuntime

/// Ends this process, as `kill -9` would, when it comes to a place for the n-th time: so that tests
/// hit every place between the steps of the order of effects. `OPERON_KILL_AT=afterCommit:3`; for
/// anything else it does nothing.
struct FatalPoint: Sendable {
    private let point: FailPoint?
    private let left: NIOLockedValueBox<Int>

    init(_ environment: [String: String]) {
        let parts = environment["OPERON_KILL_AT"]?.split(separator: ":") ?? []
        point = parts.first.flatMap { FailPoint(rawValue: String($0)) }
        left = NIOLockedValueBox(parts.last.flatMap { Int($0) } ?? 1)
    }

    var reached: @Sendable (FailPoint) -> Void {
        guard let point else { return { _ in } }
        return { [left] reached in
            guard reached == point else { return }
            let isTime = left.withLockedValue { left in
                left -= 1
                return left == 0
            }
            if isTime { kill(getpid(), SIGKILL) }
        }
    }
}
