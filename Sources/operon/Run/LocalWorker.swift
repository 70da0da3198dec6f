import Logging
import OperonArguments
import OperonCore
import OperonRuntime

extension InProcessWorker {
    /// Creates a worker that knows only the built-in kinds.
    ///
    /// - Throws: `Failure` if another process holds its directory, or if the directory cannot be
    ///   used.
    static func stock(
        on hub: InProcessHub,
        slots: Int,
        stateDirectory: String?,
        environment: [String: String],
        logger: Logger,
        change: (inout WorkerAgent.Configuration) -> Void = { _ in }
    ) throws -> InProcessWorker {
        do {
            return try InProcessWorker(
                on: hub,
                slots: slots,
                stateDirectory: stateDirectory,
                environment: environment,
                logger: logger,
                change: change
            )
        } catch let error as StateDirectoryError {
            throw Failure(error.isHeld ? ExitStatus.held : ExitStatus.usage, error.message)
        }
    }
}
