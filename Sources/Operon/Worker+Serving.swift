internal import Logging
internal import NIOCore
internal import NIOPosix
internal import OperonAMQP
internal import OperonCore
internal import OperonModel
internal import OperonPorts
internal import OperonRuntime
internal import ServiceLifecycle
internal import UnixSignals

// The implementation of `run()`.
extension Worker {
    /// A request to end.
    private enum Ask: Sendable {
        case shutdown
        case signal(UnixSignal)
    }

    // MARK: - As it was made

    func check() throws(OperonError) {
        let limits = Limits()
        guard (1...limits.slots).contains(slots) else {
            throw OperonError(.invalid, "A worker has 1 to \(limits.slots) slots, not \(slots).")
        }
        if let name, !(1...limits.nameBytes).contains(name.utf8.count) {
            throw OperonError(.invalid, "A worker's name has 1 to \(limits.nameBytes) bytes.")
        }
        guard drainTimeout >= .zero else {
            throw OperonError(.invalid, "A drain timeout is not negative.")
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
                let incarnation = Self.newIncarnation()
                try await serve(hub.makeWorker(incarnation: incarnation), incarnation, on: nil)
            }
        } catch let error as PortError {
            let code: OperonError.Code = error.code == .invalidAddress ? .invalid : .unreachable
            throw OperonError(code, error.message)
        } catch let error as ProcessRunnerError {
            throw OperonError(.system, error.message)
        }
    }

    private static func newIncarnation() -> Incarnation {
        var random = SystemRandomNumberGenerator()
        return Incarnation(rawValue: random.next() | 1)
    }

    private func serve(broker: String?) async throws {
        OwnProcess.conceal()
        let variable = OwnProcess.brokerVariable
        guard let url = broker ?? OwnProcess.secret(variable), !url.isEmpty else {
            throw OperonError(.invalid, "No broker is named, by the program or in \(variable).")
        }
        let incarnation = Self.newIncarnation()
        var random = SystemRandomNumberGenerator()
        let configuration = try AMQPConfiguration(url: url, prefix: prefix)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        defer { group.shutdownGracefully { _ in } }
        let transport = AMQPWorkerTransport(
            configuration: configuration,
            incarnation: incarnation,
            seed: random.next(),
            logger: logger,
            group: group
        )
        try await serve(transport, incarnation, on: LoopExecutor(group.next()))
    }

    private func serve(
        _ transport: any WorkerTransport,
        _ incarnation: Incarnation,
        on executor: (any TaskExecutor)?
    ) async throws {
        // The guard process must be started before any thread.
        var processConfiguration = ProcessRunner.Configuration(environment: OwnProcess.environment)
        processConfiguration.report = { [logger] in logger.warning("\($0)") }
        let processes = try ProcessRunner(processConfiguration)
        let threads = try Self.threads(slots: slots)
        let kinds = registered(threads: threads)
        var configuration = WorkerAgent.Configuration(
            name: name ?? "\(OwnProcess.hostName)-\(OwnProcess.id)",
            incarnation: incarnation,
            host: OwnProcess.hostName,
            processID: OwnProcess.id,
            slots: slots,
            kinds: kinds.names
        )
        configuration.queues = queues
        let logger = logger
        let service = WorkerService(
            agent: WorkerAgent(configuration: configuration),
            transport: transport,
            processes: processes,
            kinds: kinds,
            logger: logger,
            observer: { notices in
                for notice in notices { Self.tell(notice, logger) }
            }
        )
        let result: Result<UnixSignal?, any Error>
        do {
            result = .success(
                try await serve(service, farewell: configuration.farewell, on: executor)
            )
        } catch {
            result = .failure(error)
        }
        await processes.shutdown()
        threads.stop()
        // Ends by the signal as if it had not been handled, so that the parent process sees the
        // cause.
        if let signal = try result.get() { OwnProcess.end(by: signal.rawValue) }
    }

    /// Serves until the worker has drained, or until a second signal, which it returns.
    private func serve(
        _ service: WorkerService,
        farewell: Duration,
        on executor: (any TaskExecutor)?
    ) async throws -> UnixSignal? {
        let (asks, asked) = AsyncStream<Ask>.makeStream()
        let signals =
            handlesSignals ? await UnixSignalsSequence(trapping: .sigterm, .sigint) : nil
        logger.info("worker serves", metadata: ["slots": "\(slots)"])
        // Code that does not stop must not keep the process alive.
        let overtime = drainTimeout + grace + farewell
        let signal = try await withGracefulShutdownHandler {
            try await withThrowingTaskGroup(of: UnixSignal?.self) { group in
                group.addTask(executorPreference: executor) {
                    try await service.run()
                    return nil
                }
                if let signals {
                    group.addTask {
                        for await signal in signals { asked.yield(.signal(signal)) }
                        return await Self.never()
                    }
                }
                group.addTask {
                    await drain(service, at: asks, overtime: overtime)
                }
                defer { group.cancelAll() }
                let signal = try await group.next() ?? nil
                // Wait for killed processes to be collected.
                if signal != nil { _ = try await group.next() }
                return signal
            }
        } onGracefulShutdown: {
            asked.yield(.shutdown)
        }
        if Task.isCancelled { throw CancellationError() }
        return signal
    }

    /// Returns the second signal, which ended the worker before it had drained.
    private func drain(
        _ service: WorkerService,
        at asks: AsyncStream<Ask>,
        overtime: Duration
    ) async -> UnixSignal? {
        var isDraining = false
        return await withTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            for await ask in asks {
                switch ask {
                case .signal(let signal) where isDraining:
                    service.stop()
                    return signal
                case .shutdown, .signal:
                    guard !isDraining else { continue }
                    isDraining = true
                    service.drain(timeout: drainTimeout)
                    group.addTask {
                        do { try await Task.sleep(for: overtime) } catch { return }
                        service.stop()
                    }
                }
            }
            return await Self.never()
        }
    }

    /// Returns when the task is cancelled; nobody uses the result then.
    private static func never() async -> UnixSignal? {
        await Latch().wait()
        return nil
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
