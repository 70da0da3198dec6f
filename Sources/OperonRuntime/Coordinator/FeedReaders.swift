import OperonPorts
import Synchronization

/// The readers of one thing, and the task that makes what they are shown, once for all of them. The
/// task runs while there is a reader.
final class FeedReaders<View: Equatable & Sendable>: Sendable {
    private struct State {
        /// The order does not matter: each is another reader.
        var readers: [UInt64: SharedUpdates<View>.Continuation] = [:]
        var nextReader: UInt64 = 0
        var latest: SharedView<View>?
        var isOver = false
        var task: Task<Void, Never>?
    }

    private let state = Mutex(State())

    /// Adds a reader, who gets the latest view first. What a reader does not read in time is
    /// replaced by what is newer.
    ///
    /// - Parameter run: Publishes until there are no more readers or nothing more to show, then
    ///   calls `end`.
    /// - Returns: `nil` if the feed is over.
    func join(_ run: @escaping @Sendable () async -> Void) -> SharedUpdates<View>? {
        let (updates, continuation) = SharedUpdates<View>.makeStream(
            bufferingPolicy: .bufferingNewest(1)
        )
        let reader: UInt64? = state.withLock { state in
            guard !state.isOver else { return nil }
            state.nextReader += 1
            state.readers[state.nextReader] = continuation
            if let latest = state.latest { continuation.yield(latest) }
            if state.task == nil { state.task = Task { await run() } }
            return state.nextReader
        }
        guard let reader else { return nil }
        continuation.onTermination = { [weak self] _ in self?.leave(reader) }
        return updates
    }

    private func leave(_ reader: UInt64) {
        let task = state.withLock { state -> Task<Void, Never>? in
            state.readers[reader] = nil
            guard state.readers.isEmpty else { return nil }
            state.isOver = true
            return state.task
        }
        task?.cancel()
    }

    /// Shows all readers this view, unless it is the last one again.
    func publish(_ view: View) {
        state.withLock { state in
            guard state.latest?.view != view else { return }
            let latest = SharedView(view)
            state.latest = latest
            for reader in state.readers.values { reader.yield(latest) }
        }
    }

    /// Ends the streams of all readers.
    func end() {
        let readers = state.withLock { state in
            state.isOver = true
            defer { state.readers = [:] }
            return state.readers
        }
        for reader in readers.values { reader.finish() }
    }
}
