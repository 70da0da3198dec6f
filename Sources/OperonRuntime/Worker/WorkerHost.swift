package import Logging
package import OperonCore
package import OperonModel
package import OperonPorts
package import OperonTrust

/// A worker with everything that belongs to it: its identity, its processes, its kinds and its
/// transport.
package struct WorkerHost: Sendable {
    package struct Configuration: Sendable {
        /// `nil`: the name of the machine and the process id.
        package var name: String?
        /// The number of operations that it runs at once, 1 to 4,096.
        package var slots: Int
        /// The kinds that it runs in addition to commands and waits.
        package var kinds = RegisteredKinds.none
        /// The queues that it serves; empty: all.
        package var queues: [String] = []
        /// What it offers instead of what its machine has, or besides it.
        package var resources: ResourceAmounts = []
        /// Its labels besides `arch`, `host`, `name` and `os`, or instead of them.
        package var labels: [WorkerLabel] = []
        /// Whether it watches sources of triggers on its machine. Clients can then learn which
        /// files and processes there are, and run programs as its user, as they can with commands.
        package var watchesSources = false
        /// Where it makes the control groups that hold commands to their resources; `nil`: nowhere.
        package var controlGroups: ControlGroupPlace?
        /// Where it finds the values of secrets; empty: it runs no command that has one.
        package var secrets = SecretPlaces()
        /// The users as which it runs commands, by queue; that of `nil` is for all other queues.
        /// Empty: they run as the worker's user. With users, it watches no sources of triggers.
        package var users: [(queue: String?, user: String)] = []
        /// Whether commands can get no more rights by executing a program, such as `sudo`.
        package var hasNoNewPrivileges = false
        /// Where it keeps its identity, so that its next run reports this one dead, and ends what
        /// this one leaves running; `nil`: nowhere.
        package var stateDirectory: String?
        /// Whom it trusts, and what it may do; `nil`: messages are sent in clear.
        package var token: JoinToken?
        /// The variables of which its processes inherit a part.
        package var environment: [String: String]
        /// Takes the spans of attempts; `nil`: those of programs that link Operon go to the
        /// program's tracer.
        package var spans: (any SpanSink)?
        /// How long running operations have to finish when it drains.
        package var drainTimeout = Duration.seconds(30)
        /// How long code that was asked to stop at the end of the drain time may take, before
        /// `serve` leaves it behind; `nil`: until it stops. Processes are killed, so they stop.
        package var grace: Duration?
        /// Receives sentences for the administrator.
        package var report: @Sendable (String) -> Void
        /// Changes the defaults of the agent.
        package var agent: @Sendable (inout WorkerAgent.Configuration) -> Void = { _ in }
        package var linkObserver: WorkerService.LinkObserver = { _ in }
        package var observer: WorkerService.Observer = { _ in }

        /// What watches sources does it as the worker's user.
        fileprivate var watches: Bool { watchesSources && users.isEmpty }

        package init(
            slots: Int,
            environment: [String: String],
            report: @escaping @Sendable (String) -> Void
        ) {
            self.slots = slots
            self.environment = environment
            self.report = report
        }
    }

    /// A request to end.
    package enum EndRequest: Hashable, Sendable {
        case drain
        /// A signal drains the first time, and ends everything at once the second time.
        case signal(Int32)
    }

    package let incarnation: Incarnation
    /// By which a coordinator knows it, and can refuse it; `nil`: messages are sent in clear.
    package let publicKey: [UInt8]?
    package let name: String
    package let service: WorkerService
    private let processes: ProcessRunner
    private let kinds: RegisteredKinds
    private let drainTimeout: Duration
    /// How long after the drain time the worker ends without what still runs.
    private let overtime: Duration?

    /// - Throws: `WorkerOfferError` if no coordinator would take what it offers;
    ///   `StateDirectoryError` if another process has that directory, or it cannot be used;
    ///   `ControlGroupError` if it cannot make control groups; `SecretPlaceError` if secrets cannot
    ///   be used or others may read them; `OperationUserError` if it cannot run commands as other
    ///   users; `ProcessRunnerError` if nothing can be run.
    package init(
        _ configuration: Configuration,
        logger: Logger,
        transport: (Incarnation) -> any WorkerTransport
    ) throws {
        let membership = configuration.stateDirectory.map { WorkerTrustStore(stateDirectory: $0) }
        let trust = try Self.trust(configuration, membership)
        let incarnation = trust?.incarnation ?? .drawn()
        self.incarnation = incarnation
        publicKey = trust?.publicKey
        kinds = configuration.kinds
        drainTimeout = configuration.drainTimeout
        let machine = Machine(environment: configuration.environment)
        let name = configuration.name ?? OwnProcess.workerName
        self.name = name
        let offer: WorkerOffer
        let state: StateDirectory?
        var groups: ControlGroups?
        do {
            try configuration.secrets.check()
            let users = try OperationUsers(configuration.users, serving: configuration.queues)
            offer = try machine.checkedOffer(
                resources: configuration.resources,
                labels: [WorkerLabel("name", name)] + configuration.labels
            )
            state = try configuration.stateDirectory.map { path throws(StateDirectoryError) in
                try StateDirectory(path: path, incarnation: incarnation)
            }
            if let warning = state?.warning { configuration.report(warning) }
            if let trust, let token = configuration.token { try membership?.begin(trust, token) }
            groups = try Self.controlGroups(configuration, incarnation)
            var ofProcesses = Self.processes(configuration, name)
            ofProcesses.stateDirectory = state
            ofProcesses.controlGroups = groups
            ofProcesses.users = users
            processes = try ProcessRunner(ofProcesses)
        } catch {
            groups?.close()
            kinds.threads?.stop()
            throw error
        }
        let agent = Self.agent(
            configuration,
            WorkerIdentity(name: name, incarnation: incarnation, connection: 0),
            kinds,
            offer,
            machine,
            state
        ) { $0.offer.enforces = groups != nil }
        overtime = configuration.grace.map { $0 + agent.farewell }
        service = WorkerService(
            agent: WorkerAgent(configuration: agent),
            transport: transport(incarnation),
            seals: trust.map { Self.seals($0, membership, configuration.report) },
            processes: processes,
            kinds: kinds,
            sources: Self.sources(configuration),
            spans: configuration.spans,
            logger: logger,
            linkObserver: configuration.linkObserver,
            observer: configuration.observer
        )
    }

    private static func agent(
        _ configuration: Configuration,
        _ identity: WorkerIdentity,
        _ kinds: RegisteredKinds,
        _ offer: WorkerOffer,
        _ machine: Machine,
        _ state: StateDirectory?,
        change: (inout WorkerAgent.Configuration) -> Void
    ) -> WorkerAgent.Configuration {
        var agent = WorkerAgent.Configuration(
            name: identity.name,
            incarnation: identity.incarnation,
            host: OwnProcess.hostName,
            processID: OwnProcess.id,
            slots: configuration.slots,
            kinds: kinds.names
        )
        agent.queues = configuration.queues
        agent.runsAnyKind = kinds.areLookedUp
        agent.offer = offer
        agent.offer.watches = configuration.watches
        agent.offer.secrets = !configuration.secrets.isEmpty
        agent.processors = machine.processors
        agent.gpus = machine.gpus(agent.offer.resources[ResourceAmount.gpusName] ?? 0)
        agent.workerID = state?.worker ?? ""
        agent.predecessor = state?.predecessor
        agent.drainTimeout = configuration.drainTimeout
        change(&agent)
        configuration.agent(&agent)
        return agent
    }

    private static func trust(
        _ configuration: Configuration,
        _ store: WorkerTrustStore?
    ) throws(TrustError) -> WorkerTrust? {
        guard let token = configuration.token else { return nil }
        do throws(TrustError) {
            return try store?.identity(token) ?? WorkerTrust(token)
        } catch {
            configuration.kinds.threads?.stop()
            throw error
        }
    }

    private static func seals(
        _ trust: WorkerTrust,
        _ store: WorkerTrustStore?,
        _ report: @escaping @Sendable (String) -> Void
    ) -> WorkerSealBox {
        WorkerSealBox(trust) { membership in
            do throws(TrustError) {
                try store?.keep(membership)
            } catch {
                report("the worker will need its join token again: \(error)")
            }
        }
    }

    private static func sources(_ configuration: Configuration) -> OwnSources? {
        guard configuration.watches else { return nil }
        var sources = OwnSources.Configuration(
            watchesMachine: true,
            environment: configuration.environment
        )
        sources.report = configuration.report
        return OwnSources(sources)
    }

    private static func processes(
        _ configuration: Configuration,
        _ name: String
    ) -> ProcessRunner.Configuration {
        var processes = ProcessRunner.Configuration(environment: configuration.environment)
        processes.report = configuration.report
        processes.secrets = configuration.secrets
        processes.workerName = name
        processes.hasNoNewPrivileges = configuration.hasNoNewPrivileges
        return processes
    }

    private static func controlGroups(
        _ configuration: Configuration,
        _ incarnation: Incarnation
    ) throws(ControlGroupError) -> ControlGroups? {
        guard let place = configuration.controlGroups else { return nil }
        let groups = try ControlGroups(place, incarnation: incarnation)
        for path in groups.leftBehind {
            configuration.report(
                "the control group \(path) of an earlier worker cannot be removed: some of its "
                    + "processes may be left"
            )
        }
        return groups
    }

    /// Serves until it has drained, or until a second signal, which it returns. Everything that it
    /// ran has ended then.
    ///
    /// - Parameters:
    ///   - executor: Runs the worker where its transport runs; `nil`: anywhere.
    ///   - draining: Called when the drain starts.
    /// - Throws: The error of a transport that fails for good; `CancellationError` if the task was
    ///   cancelled.
    package func serve(
        on executor: (any TaskExecutor)? = nil,
        until requests: some AsyncSequence<EndRequest, Never> & Sendable,
        draining: @escaping @Sendable () -> Void = {}
    ) async throws -> Int32? {
        let result: Result<Int32?, any Error>
        do {
            let signal = try await withThrowingTaskGroup(of: Int32?.self) { group in
                group.addTask(executorPreference: executor) {
                    try await service.run()
                    return nil
                }
                group.addTask { await drain(at: requests, draining) }
                defer { group.cancelAll() }
                let signal = try await group.next() ?? nil
                // Wait for killed processes to be collected.
                if signal != nil { _ = try await group.next() }
                return signal
            }
            if Task.isCancelled { throw CancellationError() }
            result = .success(signal)
        } catch {
            result = .failure(error)
        }
        await shutDown()
        return try result.get()
    }

    /// Returns the second signal, or `nil` when the task is cancelled.
    private func drain(
        at requests: some AsyncSequence<EndRequest, Never>,
        _ draining: @Sendable () -> Void
    ) async -> Int32? {
        var isDraining = false
        return await withTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            for await request in requests {
                if isDraining {
                    guard case .signal(let signal) = request else { continue }
                    service.stop()
                    return signal
                }
                isDraining = true
                draining()
                service.drain(timeout: drainTimeout)
                guard let overtime else { continue }
                group.addTask {
                    do { try await Task.sleep(for: drainTimeout + overtime) } catch { return }
                    service.stop()
                }
            }
            // Returns when the task is cancelled.
            await Latch().wait()
            return nil
        }
    }

    /// Ends everything that it still runs, and the threads of its kinds.
    package func shutDown() async {
        await processes.shutdown()
        kinds.threads?.stop()
    }
}
