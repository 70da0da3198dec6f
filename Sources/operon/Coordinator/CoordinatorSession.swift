import ArgumentParser
import Logging
import OperonAMQP
import OperonArguments
import OperonCore
import OperonGraphFile
import OperonHTTP
import OperonMetrics
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTerminal
import Synchronization
import UnixSignals

/// One run of a coordinator with a store: the store, the scheduler, the transport, the API, and
/// shutdown.
final class CoordinatorSession: Sendable {
    enum Place {
        case broker(url: String, prefix: String, CoordinatorTrustArguments)
        case thisProcess(OwnWorker)
    }

    /// A worker in the same process.
    struct OwnWorker {
        let slots: Int
        let resources: ResourceAmounts
        let labels: [WorkerLabel]
        /// Where it makes control groups; `nil`: nowhere.
        let controlGroups: ControlGroupPlace?
        /// Where it finds the values of secrets.
        let secrets: SecretPlaces
        /// How long its operations may take at shutdown.
        let drain: Duration
    }

    private let environment: [String: String]
    private let server: HTTPServerConfiguration
    private let path: String
    private let retention: Retention
    private let auditTime: Duration?
    private let pagePort: PagePort
    private let watchesMachine: Bool
    /// Whether the commands of this user find the coordinator by themselves.
    private let isAtOwnSocket: Bool
    private let say: @Sendable (String) -> Void
    private let logger: Logger
    /// The tokens, once the store is held.
    private let book = Mutex<TokenBook?>(nil)
    private let metrics = PrometheusMetrics(help: CoordinatorMeters.help)

    /// - Parameter hasPage: Whether the own socket has the page for browsers beside it.
    /// - Throws: `Failure` for arguments that cannot be used.
    init(
        _ arguments: CoordinatorArguments,
        hasPage: Bool = false,
        environment: [String: String]
    ) throws(Failure) {
        self.environment = environment
        var server = try arguments.server(environment: environment)
        server.hasPage = hasPage && arguments.listen == nil
        path = try arguments.storePath(environment: environment)
        pagePort = PagePort(besideStore: path)
        server.pagePort = pagePort.last
        self.server = server
        retention = arguments.retention
        auditTime = arguments.auditTime
        watchesMachine = arguments.watchMachine
        isAtOwnSocket = arguments.listen == nil
        (logger, say) = arguments.log.make("operon")
    }

    /// Serves until a signal arrives or a necessary part fails.
    func run(on place: Place) async throws {
        OwnProcess.boundFreeMemory()
        let service = if case .broker = place { "operon-coordinator" } else { "operon" }
        let warn: @Sendable (String) -> Void = { [logger] in logger.warning("\($0)") }
        try await ProgramSpans.recorded(as: service, environment, warn: warn) { spans in
            try await serve(on: place, spans)
        }
    }

    private func serve(on place: Place, _ spans: (any SpanSink)?) async throws {
        switch place {
        case .broker(let url, let prefix, let arguments):
            let trust = try arguments.keys(environment: environment, say: say)
            let broker = try BrokerConnection(url: url, prefix: prefix)
            defer { broker.close() }
            var sources = makeSources()
            sources.watchesMachine = watchesMachine
            sources.messages = { [logger] queue throws(TriggerSourceError) in
                try broker.messageSource(queue: queue, isJSON: Self.isJSON, logger: logger)
            }
            var configuration = makeConfiguration(OwnSources(sources), spans)
            configuration.trust = trust
            configuration.observer = { [attendance = broker.configuration.attendance] notices, _ in
                attendance.note(notices)
            }
            try await serve(configuration, drain: .zero) { epoch in
                say("stores graphs in \(path), uses the broker \(broker.configuration.address)")
                let transport = broker.coordinatorTransport(epoch: epoch, logger: logger)
                return CoordinatorHost.Link(transport, on: broker.executor)
            }
        case .thisProcess(let own):
            var worker = WorkerHost.Configuration(slots: own.slots, environment: environment) {
                [logger] in logger.warning("\($0)")
            }
            worker.resources = own.resources
            worker.labels = own.labels
            worker.watchesSources = true
            worker.controlGroups = own.controlGroups
            worker.secrets = own.secrets
            worker.kinds.elements = ElementExpansion()
            worker.stateDirectory = path + ".worker"
            worker.spans = spans
            let configuration = makeConfiguration(OwnSources(makeSources()), spans)
            try await serve(configuration, drain: own.drain) { _ in
                let link = try CoordinatorHost.Link.inProcess(worker, logger: logger)
                let count = own.slots == 1 ? "1 operation" : "\(own.slots) operations"
                say("stores graphs in \(path), runs \(count) at once")
                return link
            }
        }
    }

    /// In a process that runs operations, clients can do as much in any case.
    private func makeSources() -> OwnSources.Configuration {
        var sources = OwnSources.Configuration(watchesMachine: true, environment: environment)
        sources.report = { [logger] in logger.warning("\($0)") }
        return sources
    }

    /// Whether a graph can refer to the parts of these bytes.
    private static let isJSON: @Sendable ([UInt8]) -> Bool = { bytes in
        (try? GraphFileCodec().checkData(bytes)) != nil
    }

    private func makeConfiguration(
        _ sources: OwnSources,
        _ spans: (any SpanSink)?
    ) -> CoordinatorHost.Configuration {
        var configuration = CoordinatorHost.Configuration()
        configuration.spans = spans
        configuration.meters = CoordinatorMeters(factory: metrics)
        configuration.passed = PlannedCrash(environment).passed
        configuration.boundsOfSubmitter = { [self] name in
            book.withLock { $0 }?.bounds(of: name) ?? .none
        }
        configuration.triggers = TriggerSupport(
            codec: GraphFileCodec(),
            zones: TimeZoneDirectory(path: environment["TZDIR"] ?? TimeZoneDirectory.defaultPath),
            environment: environment,
            sources: sources
        )
        return configuration
    }

    private func serve(
        _ configuration: CoordinatorHost.Configuration,
        drain: Duration,
        link: (Epoch) throws -> CoordinatorHost.Link
    ) async throws {
        let host = try await CoordinatorHost.open(
            path: path,
            configuration,
            logger: logger,
            warn: say
        ) { scheduler, _ in
            try link(scheduler.epoch)
        }
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        let pulse = CoordinatorPulse()
        let http: HTTPServer
        do {
            // Only the coordinator that holds the store may open what is beside it.
            http = try makeServer(of: host.service, pulse)
        } catch {
            await host.close()
            throw error
        }
        let manager = ServiceManager(socket: environment["NOTIFY_SOCKET"])
        let watchdog = CoordinatorHost.Activity { [environment] _ in
            try await ServiceWatchdog(environment: environment)?.run { pulse.stagnation }
        }
        let server = CoordinatorHost.Activity { [self, say] _ in
            do throws(HTTPServerError) {
                try await http.run { address in
                    self.sayWhere(address, page: http.page)
                    Self.tell([.ready, .status("answers at \(address)")], manager, say)
                }
            } catch {
                // The same call may work the next time.
                let code = error.code == .ended ? ExitStatus.failed : ExitStatus.usage
                throw Failure(code, error.message)
            }
        }
        let end = CoordinatorHost.Activity { [say] host in
            var isStopping = false
            for await _ in signals {
                guard !isStopping else { return await host.stop(.now) }
                isStopping = true
                Self.sayStopping(within: drain, say)
                Self.tell([.stopping(within: drain + Self.stopPatience)], manager, say)
                http.stop()
                Task { await host.stop(.drain(within: drain)) }
            }
        }
        do {
            try await host.runAndClose(
                beside: [
                    .pruning(within: retention), .checking(pulse), .triggers, watchdog, server,
                    end, await reloading(http),
                ]
            )
        } catch let error as StoreError {
            throw Failure(error, hint: "Start it again to continue.")
        }
    }

    /// Says where it listens, and how to go on.
    ///
    /// - Parameter page: The page beside the socket.
    private func sayWhere(_ address: ListenAddress, page: ListenAddress?) {
        let isSecure = server.tls != nil
        say("answers at \(address)")
        let place = address.clientText(isSecure: isSecure)
        let option = isAtOwnSocket ? "" : " --coordinator \(place)"
        say("to submit a graph from another terminal: operon submit FILE\(option)")
        if let port = page?.tcp?.port { pagePort.keep(port) }
        // A browser cannot reach a socket.
        guard let page = address.tcp == nil ? page : address else { return }
        say("to see \(page.clientText(isSecure: isSecure)) in a browser: operon page\(option)")
    }

    private static func sayStopping(within drain: Duration, _ say: (String) -> Void) {
        say("stopping; unfinished graphs continue at the next start")
        guard drain > .zero else { return }
        let time = TimeFormat.decimalSeconds(drain)
        say("running operations have \(time) s to finish; a second signal stops them at once")
    }

    /// How long operations that were asked to stop and the last messages may take at shutdown.
    private static let stopPatience = Duration.seconds(120)

    private func makeServer(
        of service: CoordinatorService,
        _ pulse: CoordinatorPulse
    ) throws(Failure) -> HTTPServer {
        let configuration = try makeServerConfiguration()
        let health = HTTPHealth {
            let trouble = pulse.stagnation
            return HealthAnswer(isGood: trouble == nil, text: trouble ?? "ok")
        } readyz: {
            let trouble = pulse.unreadiness
            return HealthAnswer(isGood: trouble == nil, text: trouble ?? "ok")
        } metrics: { [metrics] in
            let scraped = await service.refreshMeters()
            return metrics.text(with: scraped.families.map { PrometheusMetrics.Gauges($0) })
        }
        return HTTPServer(
            configuration,
            codec: GraphFileCodec(),
            health: health,
            logger: logger,
            wall: { SystemClock.wall() }
        ) { name in
            LocalCoordinator(service: service, caller: name, version: Version.text)
        }
    }

    /// With the audit and the created tokens, which are files beside the store.
    private func makeServerConfiguration() throws(Failure) -> HTTPServerConfiguration {
        var configuration = server
        do throws(HTTPServerError) {
            configuration.book = try TokenBook(
                file: server.tokens,
                filePath: server.tokensFile,
                createdPath: path + ".tokens",
                now: { SystemClock.wall() }
            )
        } catch {
            throw Failure(ExitStatus.usage, error.message)
        }
        book.withLock { $0 = configuration.book }
        do throws(AuditError) {
            let audit = try AuditLog(
                folder: path + ".audit",
                keep: auditTime,
                version: Version.text,
                wall: { SystemClock.wall() }
            )
            for remark in audit.remarks { logger.warning("\(remark)") }
            configuration.audit = audit
        } catch {
            throw Failure(ExitStatus.usage, "\(error).")
        }
        return configuration
    }

    /// Reads the tokens and the certificate again after SIGHUP, and when they have changed. Without
    /// such files, SIGHUP ends the program as usual.
    private func reloading(_ http: HTTPServer) async -> CoordinatorHost.Activity {
        guard http.canReload else { return CoordinatorHost.Activity { _ in } }
        let signals = await UnixSignalsSequence(trapping: .sighup)
        return CoordinatorHost.Activity { [say] _ in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    for await _ in signals { for line in await http.reload() { say(line) } }
                }
                group.addTask { try await http.reloadChangedFiles(say) }
                try await group.waitForAll()
            }
        }
    }

    private static func tell(
        _ news: [ServiceManager.News],
        _ manager: ServiceManager?,
        _ say: @Sendable (String) -> Void
    ) {
        do throws(PortError) {
            try manager?.tell(news)
        } catch {
            say("the service manager cannot be notified: \(error.message)")
        }
    }
}

extension PrometheusMetrics.Gauges {
    fileprivate init(_ family: ScrapedMeters.Family) {
        self.init(label: family.label, values: family.values)
    }
}
