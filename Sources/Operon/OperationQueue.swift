internal import OperonModel
internal import OperonPorts
internal import OperonRuntime
internal import Synchronization

/// Operations that have limits in common: how many run at once, whether any start, and in which
/// order.
///
/// A queue is known in its cluster by its name: its limit and its suspension are the same for
/// every program that uses it, and hold over all workers. Objects of this class with one name are
/// one queue. The object may be let go: what was added runs on.
///
/// ```swift
/// let queue = OperationQueue(name: "images", maxConcurrentOperationCount: 4)
/// let download = try await queue.addOperation(Download(url))
/// let resized = try await queue.addOperation(Resize(width: 200), after: [download])
/// print(try await resized.value)
/// ```
public final class OperationQueue: Sendable {
    /// What it is known by: 1 to 256 bytes.
    public let name: String
    /// Where its operations run.
    public let cluster: Cluster
    /// For operations that say nothing themselves.
    public let qualityOfService: QualityOfService
    /// Whether each operation that this object adds waits for the one before, however that ends.
    public let isSerial: Bool
    /// No other object has its name.
    private let isUnnamed: Bool
    let state: Mutex<State>

    struct State {
        /// The coordinator was told settings of it.
        var hasSettings = false
        /// What the coordinator has to be told before anything is added.
        var settings: Settings?
        var telling: Telling?
        var totalCount = 0
        var finishedCount = 0
        var observers: [UInt64: AsyncStream<OperationQueueProgress>.Continuation] = [:]
        var lastObserver: UInt64 = 0
        /// What comes later waits for it.
        var barrier: AnyOperationHandle?
        /// What was added since the barrier and may not have ended: the next barrier waits for it.
        var sinceBarrier: [AnyOperationHandle] = []
        var sinceBarrierMax = 64
        /// Of a serial queue: what was added last.
        var last: AnyOperationHandle?
    }

    struct Settings {
        var maxConcurrentOperationCount: Int?
        var isSuspended: Bool
        var queuePriority: QueuePriority?
    }

    /// As many at once as there are slots for them: -1, as in Foundation.
    public static let defaultMaxConcurrentOperationCount = -1

    /// A queue of this name, which is made when it is first used, if there is none.
    ///
    /// - Parameters:
    ///   - name: 1 to 256 bytes; `nil`: one that nobody else has. The settings of such a queue end
    ///     with this object, as soon as what it added has ended.
    ///   - cluster: Where its operations run.
    ///   - maxConcurrentOperationCount: How many may run at once in the whole cluster; 0 holds all,
    ///     ``defaultMaxConcurrentOperationCount``: as many as there are slots; `nil`: as it is.
    ///     Another negative number is an error of the first call that uses the queue.
    ///   - isSuspended: Whether it is suspended before anything is added; `false`: left as it is.
    ///   - queuePriority: For operations that name none; `nil`: as it is.
    ///   - qualityOfService: For operations of this object that say nothing themselves.
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

    /// A queue that runs one operation at a time in the whole cluster, strictly in the order in
    /// which this object adds them, whatever their priorities: the next one leaves only when the
    /// one before has ended. One that is lost with its worker keeps its place; one that is
    /// cancelled gives it up: if it had not started, the one behind it no longer waits for what is
    /// before it, should that wait for another attempt.
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
        // Handles keep their queue until they have their outcomes, so all that this object added
        // has ended. A coordinator that is not told keeps the settings.
        guard isUnnamed, state.withLock({ $0.hasSettings }) else { return }
        Task { [name, weak cluster] in
            _ = try? await cluster?.sessionIfConnected?.backend.client.resetQueue(name)
        }
    }

    // MARK: - Settings

    /// How many may run at once in the whole cluster; ``defaultMaxConcurrentOperationCount``: as
    /// many as there are slots.
    ///
    /// - Throws: ``OperonError``, if the coordinator cannot be asked.
    public var maxConcurrentOperationCount: Int {
        get async throws {
            try await view()?.maxConcurrentOperationCount
                ?? Self.defaultMaxConcurrentOperationCount
        }
    }

    /// Lowering it stops nobody; raising it starts more at once.
    ///
    /// - Throws: ``OperonError`` with the code `invalid` for a negative number other than
    ///   ``defaultMaxConcurrentOperationCount``; or if the coordinator cannot be asked.
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

    /// Whether it starts nothing.
    ///
    /// - Throws: ``OperonError``, if the coordinator cannot be asked.
    public var isSuspended: Bool {
        get async throws { try await view()?.isSuspended ?? false }
    }

    /// Suspends it, or lets it go on.
    ///
    /// - Throws: ``OperonError``, if the coordinator cannot be asked.
    public func setSuspended(_ isSuspended: Bool) async throws {
        if isSuspended { try await suspend() } else { try await resume() }
    }

    /// Starts nothing more until ``resume()``, in the whole cluster. What runs goes on. Nothing
    /// starts any more when this returns.
    ///
    /// - Parameters:
    ///   - reason: For people.
    ///   - until: Goes on by itself then.
    /// - Throws: ``OperonError`` with the code `timedOut` if it is suspended, but after half a
    ///   minute a worker has not yet given back what it had not started; or if the coordinator
    ///   cannot be asked.
    public func suspend(reason: String = "", until: WallTime? = nil) async throws {
        try await prepare()
        try await makeKnown()
        var request = SuspendRequest()
        request.reason = reason
        request.until = until.map { TimeText($0) }
        request.wait = Self.suspensionPatience.seconds
        let sent = request
        let view = try await cluster.ask { [name] in try await $0.suspend(.queue(name), sent) }
        guard !view.isEffective else { return }
        throw OperonError(
            .timedOut,
            "Queue “\(name)” is suspended, but a worker has not yet given back what it has."
        )
    }

    /// How long workers may take to give back what they have not started.
    private static let suspensionPatience = Duration.seconds(30)

    /// Goes on.
    ///
    /// - Throws: ``OperonError``, if the coordinator cannot be asked.
    public func resume() async throws {
        try await prepare()
        try await makeKnown()
        _ = try await cluster.ask { [name] in try await $0.resume(.queue(name)) }
    }

    /// `nil`: the coordinator has none of this name yet.
    func view() async throws -> QueueView? {
        try await prepare()
        do {
            return try await cluster.ask { [name] in try await $0.queue(name) }
        } catch let error as OperonError where error.code == .notFound {
            return nil
        }
    }

    /// The coordinator knows a queue from its first operation or setting on.
    private func makeKnown() async throws {
        try await set(QueueChange())
    }

    private func set(_ change: QueueChange) async throws {
        state.withLock { $0.hasSettings = true }
        _ = try await cluster.ask { [name] in try await $0.setQueue(name, change) }
    }

    /// Tells the coordinator what this object was made with, once: whoever comes meanwhile waits
    /// for that, so that no suspension arrives behind what lifted it.
    func prepare() async throws {
        let telling: Telling? = state.withLock { state in
            guard let settings = state.settings else { return nil }
            if let telling = state.telling { return telling }
            let telling = Telling()
            state.telling = telling
            // Nobody's child: others wait for it as well.
            Task { await self.tell(settings, telling) }
            return telling
        }
        guard let telling else { return }
        await telling.isOver.wait()
        guard telling.isOver.isOpen else { throw CancellationError() }
        if let error = telling.error.withLock({ $0 }) { throw error }
    }

    /// The coordinator is being told.
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

    /// Cancels everything that is in the queue now, whoever added it: see
    /// ``AnyOperationHandle/cancel(reason:cascade:)``. What is added later is not concerned.
    ///
    /// - Throws: ``OperonError``, if the coordinator cannot be asked.
    public func cancelAllOperations(reason: String = "") async throws {
        // What is on its way belongs to it.
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
