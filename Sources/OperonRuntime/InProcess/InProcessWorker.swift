package import Logging
package import OperonCore
package import OperonModel

/// The worker in the coordinator's own process.
package struct InProcessWorker: Sendable {
    package let incarnation: Incarnation
    package let service: WorkerService
    private let processes: ProcessRunner
    private let kinds: RegisteredKinds

    /// - Parameters:
    ///   - slots: The number of operations that it runs at once, 1 to 4,096.
    ///   - stateDirectory: Where it keeps its identity, so that its next run reports this one dead,
    ///     and ends what this one leaves running; `nil`: nowhere.
    ///   - environment: The variables of which its processes inherit a part.
    ///   - change: Changes the default configuration.
    /// - Throws: `StateDirectoryError` if another process has that directory, or it cannot be used;
    ///   `ProcessRunnerError` if nothing can be run.
    package init(
        on hub: InProcessHub,
        slots: Int,
        kinds: RegisteredKinds = .none,
        stateDirectory: String?,
        environment: [String: String],
        logger: Logger,
        change: (inout WorkerAgent.Configuration) -> Void = { _ in }
    ) throws {
        var random = SystemRandomNumberGenerator()
        let incarnation = Incarnation(rawValue: random.next() | 1)
        self.incarnation = incarnation
        self.kinds = kinds
        let state = try stateDirectory.map { path throws(StateDirectoryError) in
            try StateDirectory(path: path, incarnation: incarnation)
        }
        var processConfiguration = ProcessRunner.Configuration(environment: environment)
        processConfiguration.stateDirectory = state
        processConfiguration.report = { logger.warning("\($0)") }
        processes = try ProcessRunner(processConfiguration)
        var configuration = WorkerAgent.Configuration(
            name: "local",
            incarnation: incarnation,
            host: OwnProcess.hostName,
            processID: OwnProcess.id,
            slots: slots,
            kinds: kinds.names
        )
        configuration.runsAnyKind = kinds.areLookedUp
        configuration.workerID = state?.worker ?? ""
        configuration.predecessor = state?.predecessor
        change(&configuration)
        service = WorkerService(
            agent: WorkerAgent(configuration: configuration),
            transport: hub.makeWorker(incarnation: incarnation),
            processes: processes,
            kinds: kinds,
            logger: logger
        )
    }

    /// Ends everything that it still runs, and the threads of its kinds.
    package func shutDown() async {
        await processes.shutdown()
        kinds.threads?.stop()
    }
}
