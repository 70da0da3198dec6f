import Logging
import OperonArguments
import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime
import OperonSQLite
import OperonSystem

extension CoordinatorHost {
    /// How long workers keep working for a coordinator with a store on a disk that is gone: an
    /// operator has a day to start it again.
    private static let orphanAfter = Duration.seconds(24 * 3_600)

    /// Opens a coordinator with a store on a disk, or with none.
    ///
    /// - Parameters:
    ///   - path: The file of the store; `nil`: nothing is stored.
    ///   - warn: Receives a sentence about the file for a person.
    /// - Throws: `Failure` with exit code 8 if another process holds the store, with 2 if it cannot
    ///   be used; any error of `link`.
    static func open(
        path: String?,
        _ configuration: Configuration,
        logger: Logger,
        warn: (String) -> Void,
        link: (Scheduler, CoordinatorService.Restored?) async throws -> Link
    ) async throws -> CoordinatorHost {
        guard let path else {
            return try await open(nil, configuration, logger: logger, link: link)
        }
        var configuration = configuration
        configuration.scheduler.orphanAfter = orphanAfter
        let store = SQLiteStore(path: path)
        do {
            return try await open(store, leadership: store, configuration, logger: logger) {
                if FileRights(path)?.isReadableByAll == true {
                    warn("all users can read the store \(path): chmod o= \(path)")
                }
                return try await link($0, $1)
            }
        } catch let error as StoreError {
            throw Failure(error.code == .held ? ExitStatus.held : ExitStatus.usage, error.message)
        }
    }
}
