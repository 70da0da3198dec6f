import Logging
import Synchronization

/// Logs that a connection was lost, and that it is back.
final class ConnectionLog: Sendable {
    private let isLost = Mutex(false)

    /// - Parameter reason: empty for what stands in for a connection within one process: people
    ///   know of none.
    func lost(_ logger: Logger, _ reason: String) {
        guard !reason.isEmpty else { return }
        isLost.withLock { $0 = true }
        logger.warning("connection lost", metadata: ["reason": "\(reason)"])
    }

    /// As loud as the loss: who heard of that waits for this.
    func restored(_ logger: Logger) {
        let wasLost = isLost.withLock { isLost in
            defer { isLost = false }
            return isLost
        }
        if wasLost { logger.warning("connection restored") }
    }
}
