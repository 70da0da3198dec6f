import OperonArguments
import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime
import OperonSQLite

/// A store on a disk, and the coordinator that was rebuilt from it.
struct OpenedStore {
    private let store: SQLiteStore
    let scheduler: Scheduler
    let restored: CoordinatorService.Restored
    /// What a person should know of its file; `nil`: nothing.
    let warning: String?

    /// How long a worker stays true to a reign that is on a disk: there is a day to start it again.
    private static let orphanAfter = Duration.seconds(24 * 3_600)

    /// - Throws: `Failure` with a sentence for a store that is held by another process (8) or
    ///   cannot be used (2).
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
