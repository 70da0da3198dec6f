import Logging
import OperonArguments
import OperonCore
import OperonModel
import OperonRuntime

/// The worker in the coordinator's own process.
struct LocalWorker: Sendable {
    let incarnation: Incarnation
    let service: WorkerService
    private let processes: ProcessRunner

    /// `stateDirectory`: where it keeps its identity, so that its next life says that it is dead,
    /// and ends what it left running; `nil`: nowhere.
    ///
    /// - Throws: `Failure` if another process has that directory, or it cannot be used.
    init(
        on hub: InProcessHub,
        slots: Int,
        stateDirectory: String?,
        environment: [String: String],
        logger: Logger,
        change: (inout WorkerAgent.Configuration) -> Void = { _ in }
    ) throws {
        var random = SystemRandomNumberGenerator()
        let incarnation = Incarnation(rawValue: random.next() | 1)
        self.incarnation = incarnation
        let state: StateDirectory?
        do throws(StateDirectoryError) {
            state = try stateDirectory.map { path throws(StateDirectoryError) in
                try StateDirectory(path: path, incarnation: incarnation)
            }
        } catch {
            throw Failure(error.isHeld ? ExitStatus.held : ExitStatus.usage, error.message)
        }
        var processConfiguration = ProcessRunner.Configuration(environment: environment)
        processConfiguration.stateDirectory = state
        processes = try ProcessRunner(processConfiguration)
        var configuration = WorkerAgent.Configuration(
            name: "local",
            incarnation: incarnation,
            host: Environment.hostName,
            processID: Environment.processID,
            slots: slots,
            kinds: Work.builtInKinds
        )
        configuration.workerID = state?.worker ?? ""
        configuration.predecessor = state?.predecessor
        change(&configuration)
        service = WorkerService(
            agent: WorkerAgent(configuration: configuration),
            transport: hub.makeWorker(incarnation: incarnation),
            processes: processes,
            logger: logger
        )
    }

    /// Ends whatever it still runs.
    func shutDown() async { await processes.shutdown() }
}
