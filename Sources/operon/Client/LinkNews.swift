import NIOConcurrencyHelpers

/// Whether the coordinator can be reached while somebody listens to it: told once when it cannot,
/// and once when it can again.
final class LinkNews: Sendable {
    private struct State {
        var isAway = false
        /// Where sentences go; `nil`: they wait.
        var say: (@Sendable (String) -> Void)?
        var waiting: [String] = []
    }

    private let state: NIOLockedValueBox<State>

    init(say: @escaping @Sendable (String) -> Void) {
        state = NIOLockedValueBox(State(say: say))
    }

    func cut() { turn(isAway: true, "The coordinator does not answer; trying again.") }

    func restored() { turn(isAway: false, "The coordinator is back.") }

    private func turn(isAway: Bool, _ sentence: String) {
        let say = state.withLockedValue { state -> (@Sendable (String) -> Void)? in
            guard state.isAway != isAway else { return nil }
            state.isAway = isAway
            if state.say == nil { state.waiting.append(sentence) }
            return state.say
        }
        say?(sentence)
    }

    /// From now on sentences wait until they are taken: a screen shows them where they fit.
    func hold() { state.withLockedValue { $0.say = nil } }

    func take() -> [String] {
        state.withLockedValue { state in
            defer { state.waiting = [] }
            return state.waiting
        }
    }
}
