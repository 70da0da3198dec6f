package import OperonModel
import Synchronization

/// Decides which faults of a kind are logged. Whoever can send messages can send very many bad
/// ones, so there is a line for the first one, and then at most one each second for all that came.
package final class FaultLog<Fault: Hashable & Sendable>: Sendable {
    private struct State {
        var since: [Fault: Int] = [:]
        var loggedAt: [Fault: Timestamp] = [:]
    }

    private let state = Mutex(State())
    private let pause = Duration.seconds(1)

    package init() {}

    /// Returns how many faults of this kind are to be logged now, in one line; `nil`: none.
    ///
    /// - Parameter fault: The kind, which takes memory for good: there must be few.
    package func count(_ fault: Fault, at now: Timestamp) -> Int? {
        state.withLock { state in
            state.since[fault, default: 0] += 1
            if let last = state.loggedAt[fault], now - last < pause { return nil }
            state.loggedAt[fault] = now
            return state.since.removeValue(forKey: fault)
        }
    }
}
