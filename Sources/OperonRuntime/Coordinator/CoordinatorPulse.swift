import NIOConcurrencyHelpers
import OperonModel

/// Whether a coordinator still does its work: one question to it after the other, and when the last
/// one was answered. Whoever watches the coordinator asks here, and is answered at once even while
/// the coordinator is stuck.
package final class CoordinatorPulse: Sendable {
    /// Between an answer and the next question: how old the answer may be that is shown.
    private static let interval = Duration.seconds(1)
    /// Without an answer; then the coordinator counts as stuck. Workers lose their leases after 6 s
    /// of silence, and a store on a slow disk may take some seconds for a large graph.
    package static let patience = Duration.seconds(10)

    private let time: TimeSource
    private let last: NIOLockedValueBox<Beat>

    private struct Beat {
        var at: Timestamp
        var unreadiness: String?
    }

    package init(time: TimeSource = .system) {
        self.time = time
        last = NIOLockedValueBox(Beat(at: time.now(), unreadiness: "The coordinator starts."))
    }

    /// Asks until the task is cancelled.
    /// - Parameter ask: through the coordinator's actor: why it is of no use now; `nil`: it is.
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
        last.withLockedValue { $0 = Beat(at: now, unreadiness: unreadiness) }
    }

    /// That nothing was answered for too long; `nil`: all is well.
    package var stagnation: String? {
        let silence = time.now() - last.withLockedValue { $0.at }
        guard silence > Self.patience else { return nil }
        return "The coordinator has not answered for \(silence.components.seconds) s."
    }

    /// Why the coordinator is of no use now; `nil`: it is.
    package var unreadiness: String? {
        stagnation ?? last.withLockedValue { $0.unreadiness }
    }
}
