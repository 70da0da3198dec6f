internal import OperonModel
internal import OperonPorts
internal import OperonRuntime
internal import Synchronization

/// Operations that share an order, a suspension, and a limit on how many of them run at once.
///
/// The name of a queue identifies it in its cluster: its limit and its suspension hold for all
/// programs that use it, and for all workers together. Objects of this class with the same name are
/// the same queue. Releasing the object does not stop the operations that it added.
///
/// ```swift
/// let queue = OperationQueue(name: "images", maxConcurrentOperationCount: 4)
/// let download = try await queue.addOperation(Download(url))
/// let resized = try await queue.addOperation(Resize(width: 200), after: [download])
/// print(try await resized.value)
/// ```
public final class OperationQueue: Sendable {
    /// The name of the queue in its cluster: 1 to 256 bytes.
    public let name: String
    /// The cluster that runs its operations.
    public let cluster: Cluster
    /// The default for operations that set no quality of service.
    public let qualityOfService: QualityOfService
    /// Whether each operation added through this object waits for the previous one, whatever its
    /// outcome.
    public let isSerial: Bool
    /// The name was generated for this object, and its settings end with it.
    private let isUnnamed: Bool
    let state: Mutex<State>

    struct State {
        /// Whether settings of the queue were sent to the coordinator.
        var hasSettings = false
        /// Settings that must be sent to the coordinator before anything is added.
        var settings: Settings?
        var telling: Telling?
        var totalCount = 0
        var finishedCount = 0
        var observers: [UInt64: AsyncStream<OperationQueueProgress>.Continuation] = [:]
        var lastObserver: UInt64 = 0
        /// The barrier that later operations wait for.
        var barrier: AnyOperationHandle?
        /// Operations added since the barrier that may be unfinished: the next barrier waits for
        /// them.
        var sinceBarrier: [AnyOperationHandle] = []
        var sinceBarrierMax = 64
        /// The operation that was added last, if the queue is serial.
        var last: AnyOperationHandle?
    }

    struct Settings {
        var maxConcurrentOperationCount: Int?
        var isSuspended: Bool
        var queuePriority: QueuePriority?
    }

    /// -1, as in Foundation: as many operations at once as there are slots.
    public static let defaultMaxConcurrentOperationCount = -1

    /// Creates an object for the queue of this name. If there is no such queue, the first use
    /// creates it.
    ///
    /// - Parameters:
    ///   - name: 1 to 256 bytes; `nil`: a generated name that nobody else has. The settings of such
    ///     a queue are removed when this object is released and all its operations have finished.
    ///   - cluster: The cluster that runs its operations.
    ///   - maxConcurrentOperationCount: How many operations may run at once in the whole cluster.
    ///     0: none; ``defaultMaxConcurrentOperationCount``: as many as there are slots; `nil`:
    ///     unchanged. With any other negative number, the first call that uses the queue throws.
    ///   - isSuspended: Whether to suspend the queue before anything is added; `false`: unchanged.
    ///   - queuePriority: The default for operations that set no priority; `nil`: unchanged.
    ///   - qualityOfService: The default for operations of this object that set none.
    public convenience init(
        name: String? = nil,
        cluster: Cluster = .inProcess,
        maxConcurrentOperationCount: Int? = nil,
        isSuspended: Bool = false,
        queuePriority: QueuePriority? = nil,
        qualityOfService: QualityOfService = .default
    ) {
        self.init(
            name,
            cluster,
            maxConcurrentOperationCount,
            isSuspended: isSuspended,
            queuePriority,
            qualityOfService,
            isSerial: false
        )
    }

    /// Creates a queue that runs one operation at a time in the whole cluster, strictly in the
    /// order in which this object adds them, whatever their priorities. An operation is sent to a
    /// worker only when the previous one has ended. An operation whose worker is lost keeps its
    /// position. A cancelled one gives its position up; if it had not started, its successor no
    /// longer waits for earlier operations that are being retried.
    public static func serial(
        name: String? = nil,
        cluster: Cluster = .inProcess,
        qualityOfService: QualityOfService = .default
    ) -> OperationQueue {
        OperationQueue(
            name,
            cluster,
            1,
            isSuspended: false,
            nil,
            qualityOfService,
            isSerial: true
        )
    }

    private init(
        _ name: String?,
        _ cluster: Cluster,
        _ maxConcurrentOperationCount: Int?,
        isSuspended: Bool,
        _ queuePriority: QueuePriority?,
        _ qualityOfService: QualityOfService,
        isSerial: Bool
    ) {
        self.isSerial = isSerial
        var random = SystemRandomNumberGenerator()
        isUnnamed = name == nil
        self.name = name ?? "queue-\(Incarnation(rawValue: random.next()))"
        self.cluster = cluster
        self.qualityOfService = qualityOfService
        var state = State()
        if maxConcurrentOperationCount != nil || isSuspended || queuePriority != nil {
            state.settings = Settings(
                maxConcurrentOperationCount: maxConcurrentOperationCount,
                isSuspended: isSuspended,
                queuePriority: queuePriority
            )
        }
        self.state = Mutex(state)
    }

    deinit {
        guard isUnnamed, state.withLock({ $0.hasSettings }) else { return }
        // Handles keep their queue until they have outcomes. Operations that running operations
        // have added to the queue have no handle here, so the queue has to become empty first.
        Task { [name, cluster] in
            guard let backend = cluster.sessionIfConnected?.backend else { return }
            do {
                while try await backend.asked({
                    try await $0.waitUntilEmpty(queue: name, within: Self.emptyPatience)
                }).unfinished > 0 {}
                _ = try await backend.asked { try await $0.resetQueue(name) }
            } catch {
                // A coordinator that cannot be reached keeps the settings.
            }
        }
    }

    /// Seconds that one request to wait for the end of a queue may take.
    private static let emptyPatience = 30.0

    // MARK: - Settings

    /// How many operations may run at once in the whole cluster;
    /// ``defaultMaxConcurrentOperationCount``: as many as there are slots.
    ///
    /// - Throws: ``OperonError`` if the request to the coordinator fails.
    public var maxConcurrentOperationCount: Int {
        get async throws {
            try await view()?.maxConcurrentOperationCount
                ?? Self.defaultMaxConcurrentOperationCount
        }
    }

    /// Sets how many operations may run at once in the whole cluster. Lowering it stops no running
    /// operation; raising it starts more at once.
    ///
    /// - Throws: ``OperonError`` with the code `invalid` for a negative number other than
    ///   ``defaultMaxConcurrentOperationCount``, or if the request to the coordinator fails.
    public func setMaxConcurrentOperationCount(_ count: Int) async throws {
        try await prepare()
        try await set(try Self.change(limit: count))
    }

    private static func change(limit count: Int) throws -> QueueChange {
        var change = QueueChange()
        if count == defaultMaxConcurrentOperationCount {
            change.isUnlimited = true
        } else if count >= 0 {
            change.maxConcurrentOperationCount = count
        } else {
            throw OperonError(.invalid, "\(count) operations cannot run at once.")
        }
        return change
    }

    /// How often its operations may start in the whole cluster; `nil`: as often as there is room.
    ///
    /// - Throws: ``OperonError`` if the request to the coordinator fails.
    public var rate: StartRate? {
        get async throws {
            let view = try await view()
            return view?.rate.flatMap { StartRate($0, burst: view?.burst) }
        }
    }

    /// Sets how often its operations may start in the whole cluster; `nil` removes the rate.
    ///
    /// - Throws: ``OperonError`` with the code `invalid` for a rate out of its bounds, or if the
    ///   request to the coordinator fails.
    public func setRate(_ rate: StartRate?) async throws {
        do throws(Refusal) {
            try rate?.check("rate")
        } catch {
            throw OperonError(.invalid, error.description)
        }
        try await prepare()
        var change = QueueChange()
        change.rate = rate?.text
        change.burst = rate?.burst
        if rate == nil { change.hasNoRate = true }
        try await set(change)
    }

    /// Whether the queue is suspended and starts nothing.
    ///
    /// - Throws: ``OperonError`` if the request to the coordinator fails.
    public var isSuspended: Bool {
        get async throws { try await view()?.isSuspended ?? false }
    }

    /// Suspends or resumes the queue.
    ///
    /// - Throws: ``OperonError`` if the request to the coordinator fails.
    public func setSuspended(_ isSuspended: Bool) async throws {
        if isSuspended { try await suspend() } else { try await resume() }
    }

    /// Suspends the queue in the whole cluster until ``resume()``. Running operations go on. After
    /// this returns, no further operation starts.
    ///
    /// - Parameters:
    ///   - reason: Text for people, of at most 4,096 bytes.
    ///   - until: When the queue resumes by itself.
    /// - Throws: ``OperonError`` with the code `timedOut` if the queue is suspended, but a worker
    ///   has not given back its unstarted operations within half a minute; or if the request to the
    ///   coordinator fails.
    public func suspend(reason: String = "", until: WallTime? = nil) async throws {
        try await prepare()
        try await makeKnown()
        var request = SuspendRequest()
        request.reason = reason
        request.until = until.map { TimeText($0) }
        request.wait = Self.suspensionPatience.seconds
        let sent = request
        _ = try await cluster.ask { [name] in try await $0.suspend(.queue(name), sent) }
    }

    /// How long workers may take to give back unstarted operations.
    private static let suspensionPatience = Duration.seconds(30)

    /// Resumes the queue.
    ///
    /// - Throws: ``OperonError`` if the request to the coordinator fails.
    public func resume() async throws {
        try await prepare()
        try await makeKnown()
        _ = try await cluster.ask { [name] in try await $0.resume(.queue(name)) }
    }

    /// `nil`: the coordinator has no queue of this name yet.
    func view() async throws -> QueueView? {
        try await prepare()
        do {
            return try await cluster.ask { [name] in try await $0.queue(name) }
        } catch let error as OperonError where error.code == .notFound {
            return nil
        }
    }

    /// Creates the queue: the coordinator knows it only after its first operation or setting.
    private func makeKnown() async throws {
        try await set(QueueChange())
    }

    private func set(_ change: QueueChange) async throws {
        state.withLock { $0.hasSettings = true }
        _ = try await cluster.ask { [name] in try await $0.setQueue(name, change) }
    }

    /// Sends the settings that this object was created with, once. Other calls wait for that, so
    /// that a suspension cannot arrive after the call that lifted it.
    func prepare() async throws {
        let telling: Telling? = state.withLock { state in
            guard let settings = state.settings else { return nil }
            if let telling = state.telling { return telling }
            let telling = Telling()
            state.telling = telling
            // Not a child of the caller's task: others wait for it as well.
            Task { await self.tell(settings, telling) }
            return telling
        }
        guard let telling else { return }
        await telling.isOver.wait()
        guard telling.isOver.isOpen else { throw CancellationError() }
        if let error = telling.error.withLock({ $0 }) { throw error }
    }

    /// The sending of the settings.
    final class Telling: Sendable {
        let isOver = Latch()
        let error = Mutex<(any Error)?>(nil)
    }

    private func tell(_ settings: Settings, _ telling: Telling) async {
        do {
            try await tell(settings)
            state.withLock { $0.settings = nil }
        } catch {
            telling.error.withLock { $0 = error }
        }
        // If it failed, the next call tries again.
        state.withLock { $0.telling = nil }
        telling.isOver.open()
    }

    private func tell(_ settings: Settings) async throws {
        var change = QueueChange()
        if let count = settings.maxConcurrentOperationCount {
            change = try Self.change(limit: count)
        }
        change.priority = settings.queuePriority
        try await set(change)
        guard settings.isSuspended else { return }
        _ = try await cluster.ask { [name] in
            try await $0.suspend(.queue(name), SuspendRequest())
        }
    }

    // MARK: - Cancelling

    /// Cancels all operations that are in the queue now, including those that other programs added:
    /// see ``AnyOperationHandle/cancel(reason:cascade:)``. Operations added later are unaffected.
    ///
    /// - Parameter reason: Text for people, of at most 4,096 bytes.
    /// - Throws: ``OperonError`` if the request to the coordinator fails.
    public func cancelAllOperations(reason: String = "") async throws {
        // Operations that are being added belong to the queue.
        try await cluster.session().enqueue([], in: self).wait()
        var request = CancelRequest()
        request.reason = reason
        let sent = request
        do {
            _ = try await cluster.ask { [name] in try await $0.cancel(.queue(name), sent) }
        } catch let error as OperonError where error.code == .notFound {
            return
        }
    }
}
