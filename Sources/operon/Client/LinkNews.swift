import Synchronization

/// Tracks whether the coordinator can be reached while a command listens to it. It reports once
/// when the connection is lost, and once when it is back.
final class LinkNews: Sendable {
    private struct State {
        var isAway = false
        /// Where sentences are printed; `nil`: they are kept until taken.
        var say: (@Sendable (String) -> Void)?
        var waiting: [String] = []
    }

    private let state: Mutex<State>

    init(say: @escaping @Sendable (String) -> Void) {
        state = Mutex(State(say: say))
    }

    func cut() { turn(isAway: true, "Lost the connection to the coordinator; trying again.") }

    func restored() { turn(isAway: false, "Reconnected to the coordinator.") }

    private func turn(isAway: Bool, _ sentence: String) {
        let say = state.withLock { state -> (@Sendable (String) -> Void)? in
            guard state.isAway != isAway else { return nil }
            state.isAway = isAway
            // Of a link that comes and goes while nobody takes them, the last change counts.
            if state.say == nil { state.waiting = [sentence] }
            return state.say
        }
        say?(sentence)
    }

    /// Keeps sentences from now on until they are taken, so that a screen shows them at the right
    /// place.
    func hold() { state.withLock { $0.say = nil } }

    func take() -> [String] {
        state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
    }
}
