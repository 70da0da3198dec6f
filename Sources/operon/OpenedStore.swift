import OperonArguments
import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime
import OperonSQLite

/// A store on a disk, and the coordinator state that was restored from it.
struct OpenedStore {
    private let store: SQLiteStore
    let scheduler: Scheduler
    let restored: CoordinatorService.Restored
    /// A warning about the store file for a person; `nil`: none.
    let warning: String?

    /// How long a worker keeps working for a reign with a store on disk: an operator has a day to
    /// restart the coordinator.
    private static let orphanAfter = Duration.seconds(24 * 3_600)

    /// - Throws: `Failure` with a sentence if another process holds the store (exit code 8) or if
    ///   it cannot be used (2).
    static func open(path: String) async throws -> OpenedStore {
        var random = SystemRandomNumberGenerator()
        var configuration = Scheduler.Configuration()
        configuration.seed = random.next()
        configuration.orphanAfter = orphanAfter
        let store = SQLiteStore(path: path)
        do {
            let (scheduler, restored) = try await CoordinatorService.restore(
                from: store,
                configuration: configuration
            )
            let isOpen = FileRights(path)?.isReadableByAll == true
            return OpenedStore(
                store: store,
                scheduler: scheduler,
                restored: restored,
                warning: isOpen ? "all users can read the store \(path): chmod o= \(path)" : nil
            )
        } catch let error as StoreError {
            throw Failure(error.code == .held ? ExitStatus.held : ExitStatus.usage, error.message)
        }
    }

    func close() async { await store.close() }
}
