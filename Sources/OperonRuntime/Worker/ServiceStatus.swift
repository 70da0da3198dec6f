package import OperonCore
package import OperonPorts
import Synchronization

/// Reports a worker's state to the service manager: once that it is ready, and its status in a
/// line.
///
/// A worker is ready when the broker has accepted its login, whether or not a coordinator is there:
/// then its address, certificate and rights are correct, and the rest is outside its control. If no
/// broker answers, it is reported ready after `patience` all the same, so that a machine can boot
/// without one; the status line says so.
package final class ServiceStatus: Sendable {
    package static let patience = Duration.seconds(30)

    private let manager: ServiceManager?
    private let patience: Duration
    private let fail: @Sendable (String) -> Void
    private let isReady = Mutex(false)

    /// - Parameter fail: Receives the reason if the manager could not be notified.
    package init(
        manager: ServiceManager?,
        patience: Duration = ServiceStatus.patience,
        fail: @escaping @Sendable (String) -> Void
    ) {
        self.manager = manager
        self.patience = patience
        self.fail = fail
    }

    /// Reports the worker ready if nothing else did so within its patience. Returns earlier if the
    /// task is cancelled.
    package func waitForReadiness() async {
        guard manager != nil else { return }
        do { try await Task.sleep(for: patience) } catch { return }
        if becomesReady() {
            tell(.ready, .status("not connected: the broker does not answer"))
        }
    }

    /// Reports a change of the connection.
    package func note(_ event: WorkerTransportEvent) {
        switch event {
        case .up: ready("connected, waiting for the coordinator")
        case .noCoordinator: ready("connected, no coordinator has been there yet")
        case .down(let reason): tell(.status("not connected: \(reason)"))
        case .blocked(true, let reason): tell(.status("the broker takes nothing: \(reason)"))
        case .blocked(false, _): tell(.status("connected"))
        case .message, .envelope, .returned: return
        }
    }

    package func note(_ notice: WorkerAgent.Notice) {
        switch notice {
        case .welcomed: tell(.status("serving the coordinator"))
        case .refused: tell(.status("the coordinator refuses this worker"))
        case .leaseExpired, .draining, .orphaned, .dispatchIgnored: return
        }
    }

    /// Reports that the worker will end within this time.
    package func stopping(within limit: Duration) {
        tell(.stopping(within: limit), .status("draining"))
    }

    private func ready(_ line: String) {
        if becomesReady() { tell(.ready, .status(line)) } else { tell(.status(line)) }
    }

    /// Returns `true` on the first call only.
    private func becomesReady() -> Bool {
        isReady.withLock { isReady in
            defer { isReady = true }
            return !isReady
        }
    }

    private func tell(_ news: ServiceManager.News...) {
        guard let manager else { return }
        do throws(PortError) { try manager.tell(news) } catch { fail(error.message) }
    }
}
