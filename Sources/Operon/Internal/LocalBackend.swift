internal import Logging
internal import OperonCore
internal import OperonModel
internal import OperonPorts
internal import OperonRuntime
internal import Synchronization

#if Cluster
internal import OperonGraphFile
internal import OperonSQLite
#endif

/// A coordinator and a worker in this process.
final class LocalBackend: ClusterBackend {
    private let store: String?
    private let slots: Int
    private let retention: Retention
    let time: TimeSource
    /// Whether the clock is the caller's. With any other clock than the machine's, leases never
    /// expire.
    private let isMovedByHand: Bool
    let logger: Logger
    private let offer: Offer
    private let state = Mutex(State())
    private let kinds: KindRegistry

    /// What the worker offers besides what its machine has, or instead of it.
    struct Offer: Sendable {
        var resources: ResourceAmounts = []
        var labels: [String: String] = [:]
    }

    private struct State {
        var embedded: Cluster.EmbeddedCoordinator?
        var tasks: [Task<Void, Never>] = []
    }

    /// - Parameter time: The clock; `nil`: that of the machine.
    init(
        store: String?,
        slots: Int?,
        offer: Offer = Offer(),
        keep retention: Retention,
        time: TimeSource? = nil,
        logger: Logger
    ) {
        self.retention = retention
        self.time = time ?? .system
        isMovedByHand = time != nil
        self.store = store
        self.slots = slots ?? OwnProcess.processorCount
        self.offer = offer
        kinds = KindRegistry(
            offer: Machine(environment: OwnProcess.environment).offer(
                resources: offer.resources,
                labels: .sorted(offer.labels)
            )
        )
        self.logger = logger
    }

    var client: any CoordinatorClient {
        guard let embedded else {
            preconditionFailure("a session starts its backend before it asks")
        }
        return embedded.client
    }

    /// The coordinator, once it has started.
    var embedded: Cluster.EmbeddedCoordinator? { state.withLock { $0.embedded } }

    /// Zero: a coordinator in this process that does not answer has ended.
    var patience: Duration { .zero }

    func register(_ kind: OperationKind) { kinds.register(kind) }

    /// Nothing is sent from here, but graphs that could not be sent are refused all the same.
    /// Without graph files, inputs are checked by the grammar of JSON alone.
    func check(_ graph: GraphDescription) throws(Refusal) {
        #if Cluster
        try GraphFileCodec().check(graph)
        #else
        let check = WritingCheck(Limits()) {
            $0.contentType == Payload.json && JSONCheck.isJSON($0.bytes)
        }
        try check.check(graph)
        #endif
        for operation in graph.operations { try kinds.check(operation, operation.name) }
    }

    func check(_ operation: OperationDescription, named name: String) throws(Refusal) {
        try kinds.check(operation, name)
    }

    func start(_ sink: EndedSink) async throws {
        let (stream, continuation) = AsyncStream.makeStream(of: News.self)
        let host = try await open { notices, _ in
            let news = News(notices)
            if !news.isEmpty { continuation.yield(news) }
        }
        let service = host.service
        let (logger, retention) = (logger, retention)
        // Not children of the first caller's task.
        let serving = Task {
            do {
                try await host.runAndClose(beside: [.pruning(within: retention), .triggers])
            } catch {
                logger.error("the cluster ended", metadata: ["reason": "\(error)"])
            }
            continuation.finish()
        }
        let telling = Task {
            for await news in stream {
                // Reports nothing that a power cut could undo.
                guard await service.untilDurable() else { continue }
                sink.deliver(news.ended)
                for (operation, attempt) in news.started { sink.started(operation, attempt) }
            }
            sink.gone(nil, nil)
        }
        let client = LocalCoordinator(
            service: service,
            caller: OwnProcess.programName,
            version: Version.text
        )
        state.withLock { state in
            state.embedded = Cluster.EmbeddedCoordinator(host: host, client: client)
            state.tasks = [serving, telling]
        }
    }

    private static let limits: Limits = {
        var limits = Limits()
        // Closes graphs that a crashed run of the program left open: nobody uses them any more.
        limits.openGraphIdle = GraphRollover.ageMax
        return limits
    }()

    /// A century: longer than any test moves a clock.
    private static let longTime = Duration.seconds(100 * 365 * 86_400)

    private func open(
        _ observer: @escaping CoordinatorService.Observer
    ) async throws -> CoordinatorHost {
        let limits = Self.limits
        guard (1...limits.slots).contains(slots) else {
            throw OperonError(.invalid, "A process runs 1 to \(limits.slots) slots, not \(slots).")
        }
        do throws(Refusal) {
            try kinds.offer.check(limits)
        } catch {
            throw OperonError(.invalid, "\(error)")
        }
        var configuration = CoordinatorHost.Configuration()
        configuration.scheduler.limits = limits
        configuration.time = time
        configuration.observer = observer
        configuration.triggers = makeTriggers()
        if isMovedByHand {
            // No worker is lost while the clock jumps.
            configuration.scheduler.lease = Self.longTime
            configuration.scheduler.exclusiveLease = Self.longTime
        }
        // Code that ignores a stop must not keep the program.
        configuration.overtime = .seconds(15)
        do {
            let file = makeStore()
            return try await CoordinatorHost.open(
                file ?? MemoryStore(reign: .drawn()),
                leadership: file,
                configuration,
                logger: logger
            ) { _, _ in
                try .inProcess(makeWorker(), limits: limits, logger: logger)
            }
        } catch let error as StoreError {
            throw OperonError(error.code == .held ? .refused : .system, error.message)
        } catch let error as StateDirectoryError {
            throw OperonError(error.isHeld ? .refused : .system, error.message)
        } catch let error as ProcessRunnerError {
            throw OperonError(.system, error.message)
        }
    }

    #if Cluster
    /// The database, which only one process may open.
    private func makeStore() -> (any OperationStore & Leadership)? {
        store.map { SQLiteStore(path: $0) }
    }

    private func makeTriggers() -> TriggerSupport? {
        TriggerSupport(
            codec: GraphFileCodec(),
            zones: TimeZoneDirectory(
                path: OwnProcess.environment["TZDIR"] ?? TimeZoneDirectory.defaultPath
            ),
            environment: OwnProcess.environment,
            sources: OwnSources(
                OwnSources.Configuration(
                    watchesMachine: true,
                    environment: OwnProcess.environment
                )
            )
        )
    }

    /// What makes operations of an output, for `forEach` in a graph file.
    private func makeElements() -> (any OutputElementReader)? { ElementExpansion() }
    #else
    private func makeStore() -> (any OperationStore & Leadership)? { nil }
    private func makeTriggers() -> TriggerSupport? { nil }
    private func makeElements() -> (any OutputElementReader)? { nil }
    #endif

    private func makeWorker() throws -> WorkerHost.Configuration {
        var worker = WorkerHost.Configuration(
            slots: slots,
            environment: OwnProcess.environment
        ) { [logger] in logger.warning("\($0)") }
        worker.kinds = RegisteredKinds(threads: try Self.threads(slots: slots)) { [kinds] name in
            kinds.registered(name)
        }
        worker.kinds.elements = makeElements()
        worker.kinds.time = time
        worker.resources = offer.resources
        worker.labels = .sorted(offer.labels)
        worker.watchesSources = true
        worker.stateDirectory = store.map { $0 + ".worker" }
        // A message costs next to nothing here.
        worker.agent = { $0.startReportDelay = .milliseconds(10) }
        return worker
    }

    /// One thread per slot, and further threads for the parallel work of operations. Throws untyped
    /// errors, as the other calls in its caller do.
    private static func threads(slots: Int) throws -> OperationThreads {
        try OperationThreads(limit: slots + OwnProcess.processorCount - 1)
    }

    func position() async throws -> UInt64? { nil }

    /// Not needed: everything is reported.
    func follow(graph: GraphID, after position: UInt64?) {}

    func close(within time: Duration, behind others: () async -> Void) async {
        let (embedded, tasks) = state.withLock { ($0.embedded, $0.tasks) }
        guard let embedded else { return }
        await embedded.host.stop(.drain(within: time), behind: others)
        for task in tasks { await task.value }
    }
}

/// The notices that matter to handles.
private struct News: Sendable {
    /// Finished operations with their outputs.
    private(set) var ended: [EndedOperation] = []
    /// External operations that started to execute.
    private(set) var started: [(OperationID, AttemptID)] = []

    init(_ notices: [Scheduler.Notice]) {
        var output = Payload.empty
        var left: OperationID?
        for notice in notices {
            switch notice {
            case .result(let id, _, let result):
                left = id
                output = result.output
            case .finished(let id, let outcome):
                let known = left == id ? output : outcome == .succeeded ? nil : .empty
                ended.append(EndedOperation(id: id, outcome: outcome, output: known))
            case .rangeFinished(let range, let outcome):
                ended += range.map { EndedOperation(id: $0, outcome: outcome, output: .empty) }
            case .granted(let id, let attempt, worker: .nobody): started.append((id, attempt))
            default: continue
            }
        }
    }

    var isEmpty: Bool { ended.isEmpty && started.isEmpty }
}

/// What a worker in this process can run: its kinds, which are added as they become known, and what
/// it offers.
final class KindRegistry: Sendable {
    let offer: WorkerOffer
    /// Never iterated.
    private let kinds = Mutex<[String: RegisteredKind]>([:])

    func register(_ kind: OperationKind) {
        kinds.withLock { kinds in
            if kinds[kind.name] == nil { kinds[kind.name] = kind.registered(in: self) }
        }
    }

    func registered(_ name: String) -> RegisteredKind? { kinds.withLock { $0[name] } }

    init(offer: WorkerOffer) { self.offer = offer }

    /// Refuses an operation that this worker could never run: no other one can join. Amounts and
    /// names that are wrong are left for the coordinator to refuse.
    func check(_ operation: OperationDescription, _ name: String) throws(Refusal) {
        let demand = ResourceDemand(operation)
        guard !demand.isEmpty, !operation.work.isExternal else { return }
        guard demand.isValid(Limits()), !demand.isMet(by: offer) else { return }
        let lacking = demand.lacking(nearestOf: [offer]) ?? ""
        throw .invalid(
            field: "resources or workers of “\(name)”",
            why: "this process can never run it: \(lacking)"
        )
    }
}

extension [WorkerLabel] {
    /// Labels by name, sorted by name.
    static func sorted(_ labels: [String: String]) -> [WorkerLabel] {
        labels.sorted { $0.key < $1.key }.map { WorkerLabel($0.key, $0.value) }
    }
}
