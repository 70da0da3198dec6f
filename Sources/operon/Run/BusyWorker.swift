import OperonCore
import OperonModel
import OperonRuntime
import Synchronization

/// The first worker that was found to belong to another reign.
final class BusyWorker: Sendable {
    private let first = Mutex<String?>(nil)
    private let found = Latch()

    func note(_ notices: [Scheduler.Notice]) {
        for case .workerBusy(let worker, _) in notices {
            first.withLock { $0 = $0 ?? worker.name }
            found.open()
        }
    }

    /// The name of the worker, as soon as one is known; `nil` after the limit.
    func name(within limit: Duration) async -> String? {
        await found.wait(within: limit)
        return first.withLock { $0 }
    }
}
