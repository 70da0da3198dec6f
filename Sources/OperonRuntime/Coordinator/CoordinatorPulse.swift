import OperonModel
import Synchronization

/// Checks whether a coordinator still responds, by asking it one question after another and
/// recording the time of each answer. Monitors ask this object, which answers at once even while
/// the coordinator is stuck.
package final class CoordinatorPulse: Sendable {
    /// The pause between an answer and the next question; also how old the answer that is shown may
    /// be.
    private static let interval = Duration.seconds(1)
    /// After this long without an answer the coordinator counts as stuck. Workers lose their leases
    /// after 6 s of silence, and a store on a slow disk may need some seconds for a large graph.
    package static let patience = Duration.seconds(10)

    private let time: TimeSource
    private let last: Mutex<Beat>

    private struct Beat {
        var at: Timestamp
        var unreadiness: String?
    }

    package init(time: TimeSource = .system) {
        self.time = time
        last = Mutex(Beat(at: time.now(), unreadiness: "The coordinator starts."))
    }

    /// Asks until the task is cancelled.
    /// - Parameter ask: Asks through the coordinator's actor why it cannot serve; `nil`: it can.
    package func run(_ ask: () async -> String?) async throws {
        while true {
            await beat(ask)
            try await Task.sleep(for: Self.interval)
        }
    }

    /// One question and its answer.
    package func beat(_ ask: () async -> String?) async {
        let unreadiness = await ask()
        let now = time.now()
        last.withLock { $0 = Beat(at: now, unreadiness: unreadiness) }
    }

    /// Reports that the coordinator has not answered for too long; `nil`: it has.
    package var stagnation: String? {
        let silence = time.now() - last.withLock { $0.at }
        guard silence > Self.patience else { return nil }
        return "The coordinator has not answered for \(silence.components.seconds) s."
    }

    /// Why the coordinator cannot serve at present; `nil`: it can.
    package var unreadiness: String? {
        stagnation ?? last.withLock { $0.unreadiness }
    }
}
