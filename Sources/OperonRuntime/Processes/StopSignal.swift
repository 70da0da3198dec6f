import Synchronization

/// Asks one run of a process to stop, at any time: before it starts, while it runs, or after it has
/// ended.
package final class StopSignal: Sendable {
    /// The urgency. A stronger request overrides a weaker one, but not the reverse.
    enum Request: UInt8, Comparable {
        case cancel
        case kill

        static func < (left: Request, right: Request) -> Bool { left.rawValue < right.rawValue }
    }

    private struct State {
        var request: Request?
        var deliver: (@Sendable (Request) -> Void)?
    }

    private let state = Mutex(State())

    package init() {}

    /// SIGTERM to the process group now, SIGKILL after the command's grace. Returns at once.
    package func cancel() { ask(.cancel) }

    /// SIGKILL to the process group now. Returns at once.
    package func kill() { ask(.kill) }

    /// Whether a cancel or a kill was requested.
    package var isRequested: Bool { requested != nil }

    /// The strongest request so far.
    var requested: Request? { state.withLock { $0.request } }

    private func ask(_ request: Request) {
        let deliver: (@Sendable (Request) -> Void)? = state.withLock { state in
            if let before = state.request, before >= request { return nil }
            state.request = request
            return state.deliver
        }
        deliver?(request)
    }

    /// From here on requests go to `deliver`; returns the request made before, if any.
    func attach(_ deliver: @escaping @Sendable (Request) -> Void) -> Request? {
        state.withLock { state in
            state.deliver = deliver
            return state.request
        }
    }

    /// The process has ended, so later requests have no effect.
    func detach() { state.withLock { $0.deliver = nil } }
}
