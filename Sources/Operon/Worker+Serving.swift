#if Cluster
internal import Logging
internal import OperonAMQP
internal import OperonCore
internal import OperonGraphFile
internal import OperonModel
internal import OperonPorts
internal import OperonRuntime
internal import OperonTrust
internal import ServiceLifecycle
internal import UnixSignals

// The implementation of `run()`.
extension Worker {
    // MARK: - As it was made

    func check() throws(OperonError) {
        let limits = Limits()
        guard (1...limits.slots).contains(slots) else {
            throw OperonError(.invalid, "A worker has 1 to \(limits.slots) slots, not \(slots).")
        }
        if let name, !(1...limits.nameBytes).contains(name.utf8.count) {
            throw OperonError(.invalid, "A worker's name has 1 to \(limits.nameBytes) bytes.")
        }
        // A week, as for the programs: a duration without a bound would not fit a clock.
        guard (.zero ... .seconds(604_800)).contains(drainTimeout) else {
            throw OperonError(.invalid, "A drain timeout is 0 to 604,800 seconds.")
        }
        do throws(WorkerOfferError) {
            let machine = Machine(environment: OwnProcess.environment)
            _ = try machine.checkedOffer(resources: resources, labels: sortedLabels)
        } catch {
            throw OperonError(.invalid, "\(error)")
        }
        var names: Set<String> = []
        for kind in kinds {
            guard (try? limits.check(name: kind.name, of: "kind")) != nil else {
                let bounds = "1 to \(limits.nameBytes) bytes, and no control characters"
                throw OperonError(.invalid, "The name of a kind has \(bounds).")
            }
            guard !Work.reservedKinds.contains(kind.name) else {
                throw OperonError(.invalid, "The kind “\(kind.name)” is built in.")
            }
            guard names.insert(kind.name).inserted else {
                throw OperonError(.invalid, "Two kinds have the name “\(kind.name)”.")
            }
        }
    }

    private var sortedLabels: [WorkerLabel] { .sorted(labels) }

    private func registered(threads: OperationThreads) -> RegisteredKinds {
        RegisteredKinds(
            kinds.map(\.registered),
            threads: threads,
            program: child ?? ChildProgram.own()
        )
    }

    /// One thread per slot, and further threads for the parallel work of operations.
    private static func threads(slots: Int) throws(ProcessRunnerError) -> OperationThreads {
        try OperationThreads(limit: slots + OwnProcess.processorCount - 1)
    }

    // MARK: - As a child

    func serveAsChild() async throws -> Never {
        let stop = StopSignal()
        let signals = await UnixSignalsSequence(trapping: .sigterm)
        Task {
            for await _ in signals { stop.cancel() }
        }
        await ChildWorker.serve(registered(threads: try Self.threads(slots: 1)), stop: stop)
    }

    // MARK: - As a worker

    func serve() async throws {
        do {
            switch connection {
            case .broker(let url): try await serve(broker: url)
            case .inProcess(let hub):
                try await serve(on: nil) { hub.makeWorker(incarnation: $0) }
            }
        } catch let error as PortError {
            let code: OperonError.Code = error.code == .invalidAddress ? .invalid : .unreachable
            throw OperonError(code, error.message)
        } catch let error as ProcessRunnerError {
            throw OperonError(.system, error.message)
        }
    }

    private func serve(broker: String?) async throws {
        OwnProcess.conceal()
        let variable = OwnProcess.brokerVariable
        guard let url = broker ?? OwnProcess.secret(variable), !url.isEmpty else {
            throw OperonError(.invalid, "No broker is named, by the program or in \(variable).")
        }
        let token: JoinToken?
        do throws(TrustError) {
            var environment = OwnProcess.environment
            environment[TrustChoice.variable] = OwnProcess.secret(TrustChoice.variable)
            token = try TrustChoice.worker(trust, environment: environment) {
                logger.warning("\($0)")
            }
        } catch {
            throw OperonError(.invalid, error.message)
        }
        let connection = try BrokerConnection(url: url, prefix: prefix)
        defer { connection.close() }
        try await serve(on: connection.executor, token) { incarnation in
            connection.workerTransport(of: incarnation, logger: logger)
        }
    }

    private func serve(
        on executor: (any TaskExecutor)?,
        _ token: JoinToken? = nil,
        transport: (Incarnation) -> any WorkerTransport
    ) async throws {
        var configuration = WorkerHost.Configuration(
            slots: slots,
            environment: OwnProcess.environment
        ) { [logger] in logger.warning("\($0)") }
        configuration.name = name
        configuration.token = token
        configuration.kinds = registered(threads: try Self.threads(slots: slots))
        configuration.kinds.elements = ElementExpansion()
        configuration.queues = queues
        configuration.resources = resources
        configuration.labels = sortedLabels
        configuration.watchesSources = true
        configuration.drainTimeout = drainTimeout
        configuration.grace = grace
        configuration.observer = { [logger] notices in
            for notice in notices { Self.tell(notice, logger) }
        }
        let host = try WorkerHost(configuration, logger: logger, transport: transport)
        let (requests, request) = AsyncStream<WorkerHost.EndRequest>.makeStream()
        let signals =
            handlesSignals ? await UnixSignalsSequence(trapping: .sigterm, .sigint) : nil
        let forwarding = Task {
            guard let signals else { return }
            for await signal in signals { request.yield(.signal(signal.rawValue)) }
        }
        defer { forwarding.cancel() }
        logger.info("worker serves", metadata: ["slots": "\(slots)"])
        let signal = try await withGracefulShutdownHandler {
            try await host.serve(on: executor, until: requests)
        } onGracefulShutdown: {
            request.yield(.drain)
        }
        // Ends by the signal as if it had not been handled, so that the parent process sees the
        // cause.
        if let signal { OwnProcess.end(by: signal) }
    }

    private static func tell(_ notice: WorkerAgent.Notice, _ logger: Logger) {
        switch notice {
        case .welcomed: logger.info("welcomed by the coordinator")
        case .leaseExpired(let dropped):
            logger.warning(
                "no word from the coordinator: gave up what had not started",
                metadata: ["operations": "\(dropped)"]
            )
        case .refused(.newIncarnation):
            logger.warning("a newer connection speaks for this worker")
        case .refused(.nameTaken): logger.warning("another worker has this name")
        case .refused(.tooManyWorkers):
            logger.warning("the coordinator takes no further worker at present")
        case .draining(let returned, let running):
            logger.info(
                "draining",
                metadata: ["returned": "\(returned)", "running": "\(running)"]
            )
        case .orphaned:
            logger.warning("the coordinator did not come back: its operations were ended")
        case .dispatchIgnored: break  // Repaired by the next beat.
        }
    }
}
#endif
