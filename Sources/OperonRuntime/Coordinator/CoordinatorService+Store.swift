import Logging
package import OperonCore
package import OperonModel
package import OperonPorts
import OperonWire

// Stores records first and performs the effects that rest on them afterwards. `EffectGate` decides
// which effect waits for what; this file makes the transactions and the syncs, one of each at a
// time.
extension CoordinatorService {
    /// The state that a store returned from earlier runs of the coordinator.
    package struct Restored: Sendable {
        let store: any OperationStore
        let lastEvent: UInt64
        let catalog: GraphCatalog
        let workerNames: [Incarnation: String]
        let triggers: TriggerShell

        /// The operations of a graph from this number on; empty if the graph has no more.
        package func operations(of graph: GraphID, from first: Int) -> [OperationDescription] {
            guard catalog.contains(graph) else { return [] }
            let operations = catalog[graph].operations
            return (min(first, operations.count)..<operations.count).map { operations[$0] }
        }

        /// How many attempts operations of a graph had, without those that had none.
        package func attemptCounts(
            of graph: GraphID,
            _ scheduler: Scheduler
        ) -> [OperationID: Int] {
            guard catalog.contains(graph) else { return [:] }
            var counts: [OperationID: Int] = [:]
            for index in 0..<UInt32(catalog[graph].operations.count) {
                let id = OperationID(graph: graph, index: index)
                let count = scheduler.attemptCount(of: id)
                if count > 0 { counts[id] = count }
            }
            return counts
        }
    }

    struct Keeping: Sendable {
        let store: any OperationStore
        var gate = EffectGate()
        /// The number of the last event that was taken.
        var lastEvent: UInt64
        /// The number of the last synced event.
        var syncedEvent: UInt64
        /// The number of current readers of events.
        var readers = 0
        /// The last events that were taken and are not synced yet; none while nobody reads. Others
        /// are read from the store.
        var fresh: [ClusterEvent] = []
        var freshBytes = 0
        /// Graphs and additions whose step has not been taken yet.
        var submitted: [StoredContents] = []
        /// The last event of each step that has any.
        var marks: [(step: UInt64, event: UInt64)] = []
        /// Why nothing can be stored at present.
        var trouble: StoreError?
        var news = StoreNews()
        /// The states of all operations when a run went on, until it has taken them up. `nil`: it
        /// was cancelled before.
        var progress: [OperationProgress]?
        /// Whether a run has been cancelled since it went on.
        var isRunCancelled = false
        /// Each waiter is removed when it stops waiting, whatever the reason.
        var waiters: [UInt64: Waiter] = [:]
        var nextWaiter: UInt64 = 0
        var lastSync = Timestamp.zero
        /// Ends the pause before the next sync.
        var hurry = Latch()

        /// Whether messages or callers wait for what is committed and not synced. Callers that wait
        /// for a later step are no reason: this sync would not help them.
        var isSyncUrgent: Bool {
            gate.isSyncUrgent
                || waiters.values.contains { gate.synced < $0.step && $0.step <= gate.committed }
        }

        struct Waiter: Sendable {
            let step: UInt64
            let event: UInt64
            let latch: Latch
        }

        /// Keeps the event that was just taken.
        mutating func keepFresh(_ event: ClusterEvent) {
            freshBytes += event.byteCount
            if fresh.count >= EventFeed.eventsMax || freshBytes > EventFeed.bytesMax {
                fresh = []
                freshBytes = event.byteCount
            }
            fresh.append(event)
        }

        /// Takes the fresh events that are synced by now.
        mutating func takeSynced() -> EventSegment? {
            let first = lastEvent - UInt64(fresh.count) + 1
            guard !fresh.isEmpty, first <= syncedEvent else { return nil }
            let count = Int(syncedEvent - first) + 1
            var synced = Array(fresh[count...])
            swap(&synced, &fresh)
            synced.removeLast(fresh.count)
            let segment = EventSegment(first, synced)
            freshBytes -= segment.byteCount
            return segment
        }

        init(store: any OperationStore, lastEvent: UInt64) {
            self.store = store
            self.lastEvent = lastEvent
            syncedEvent = lastEvent
        }
    }

    // MARK: - Taking

    /// Takes the effects of one call of the scheduler; returns those that may be performed at once.
    func keep(_ effects: Scheduler.Effects, at now: Moment) -> Scheduler.Effects? {
        guard var keeping else { return effects }
        // Gives up the second reference, so that nothing is copied.
        self.keeping = nil
        var batch = StoreBatch(wall: now.wall, records: effects.records)
        batch.records += triggering.attached.map { .trigger($0) }
        triggering.attached = []
        batch.graphs = keeping.submitted
        keeping.submitted = []
        // One by one: retrying a graph may produce a million at once.
        func keepEvent(_ event: ClusterEvent) {
            do throws(WireError) {
                let body = try StoreFormat.encode(event)
                keeping.lastEvent += 1
                batch.events.append(StoredEvent(sequence: keeping.lastEvent, body: body))
                guard keeping.readers > 0 else { return }
                keeping.keepFresh(event)
            } catch {
                logger.error("event not kept", metadata: ["reason": "\(error)"])
            }
        }
        for event in triggering.events { keepEvent(event) }
        triggering.events = []
        let upToDate = scheduler.upToDate(in: effects.records)
        effects.forEachRecord { record, client in
            guard var event = ClusterEvent(record, by: client, at: now.wall) else { return }
            if case .finished(let operation, .succeeded) = record {
                event.isUpToDate = upToDate.contains(operation)
            }
            keepEvent(event)
        }
        var results: [AttemptID: AttemptResult] = [:]
        for notice in effects.notices {
            switch notice {
            case .result(_, let attempt, let result): results[attempt] = result
            case .attemptEnded(let operation, let attempt, _, let start, let end):
                guard let result = results.removeValue(forKey: attempt) else { continue }
                var stored = StoredResult(
                    operation: operation,
                    attempt: attempt,
                    output: result.output,
                    log: result.log,
                    startedAt: start.map { now.wall + ($0 - now.monotonic) },
                    endedAt: now.wall + (end - now.monotonic)
                )
                stored.isUpToDate = result.isUpToDate
                batch.results.append(stored)
            case .graphFinished(let graph):
                var event = ClusterEvent(.graphFinished, at: now.wall)
                event.graph = graph
                keepEvent(event)
            case .workerJoined(let worker, _, _):
                batch.workers.append(StoredWorker(worker.incarnation, name: worker.name))
                keepEvent(ClusterEvent(.workerJoined, worker, at: now.wall))
            case .workerLost(let worker): keepEvent(ClusterEvent(.workerLost, worker, at: now.wall))
            case .workerDraining(let worker, let client):
                var event = ClusterEvent(.workerDraining, worker, at: now.wall)
                event.by = client
                keepEvent(event)
            default: continue
            }
        }
        let hasEvents = !batch.events.isEmpty
        let free = keeping.gate.append(effects, batch)
        if hasEvents { keeping.marks.append((keeping.gate.last, keeping.lastEvent)) }
        let hasWaiting = keeping.gate.hasWaiting
        self.keeping = keeping
        if hasWaiting { commitSignal.raise() }
        return free
    }

    // MARK: - Committing

    nonisolated func commitAll() async {
        for await _ in commitSignal.raised {
            while let (store, batch, epoch) = await nextBatch() {
                do {
                    passed(.beforeCommit)
                    let start = SystemClock.now()
                    try await commit(batch, by: epoch, to: store)
                    meters?.commitTime.record(since: start)
                    passed(.afterCommit)
                } catch is CancellationError {
                    // The coordinator ends while the store is in trouble. Nobody was told about
                    // unstored changes.
                    return
                } catch {
                    // The contents of the disk are unknown now, or a later coordinator changes
                    // them: only a restart can read them.
                    await fail(error)
                    return
                }
                await committed()
            }
        }
    }

    private func nextBatch() -> ((any OperationStore), StoreBatch, Epoch)? {
        guard fatal == nil, let store = keeping?.store else { return nil }
        return (keeping?.gate.nextBatch()).map { (store, $0, scheduler.epoch) }
    }

    /// Retries a transaction that left nothing behind until it succeeds. No later transaction
    /// starts meanwhile, and the workers' send windows hold back what they report.
    private nonisolated func commit(
        _ batch: StoreBatch,
        by epoch: Epoch,
        to store: any OperationStore
    ) async throws {
        guard !batch.isEmpty else { return }
        var pause = Duration.milliseconds(50)
        while true {
            do {
                try await store.commit(batch, by: epoch)
                await report(nil)
                return
            } catch let error as StoreError where error.isTransient {
                await report(error)
                if violation == .skipsRefusedBatches { return }
                // No notification comes when a disk has room again, so this polls.
                try await machineTime.sleep(for: pause)
                pause = min(pause * 2, .seconds(1))
            }
        }
    }

    private func report(_ trouble: StoreError?) {
        keeping?.trouble = trouble
        guard keeping?.news.shows(isInTrouble: trouble != nil, at: machineTime.now()) == true else {
            return
        }
        if let trouble {
            logger.error("the store takes no records", metadata: ["reason": "\(trouble)"])
        } else {
            logger.warning("the store takes records again")
        }
    }

    private func committed() {
        guard let steps = keeping?.gate.didCommit() else { return }
        perform(steps, [])
        guard let keeping, keeping.gate.wantsSync else { return }
        if keeping.store.syncInterval == nil {
            synced(upTo: keeping.gate.committed)
        } else {
            syncSignal.raise()
            hurrySync()
        }
    }

    // MARK: - Syncing

    nonisolated func syncAll() async {
        for await _ in syncSignal.raised {
            while let (store, step, pause, hurry) = await nextSync() {
                if pause > .zero {
                    await hurry.wait(within: pause, by: machineTime)
                    if Task.isCancelled { return }
                    continue
                }
                var took: Duration?
                do {
                    passed(.beforeSync)
                    let start = SystemClock.now()
                    try await store.sync()
                    meters?.syncTime.record(since: start)
                    took = SystemClock.now() - start
                    passed(.afterSync)
                } catch {
                    // A failed sync cannot be retried: the system no longer knows which data it
                    // concerned.
                    guard violation == .ignoresFailedSyncs else { return await fail(error) }
                }
                await synced(upTo: step, in: took)
            }
        }
    }

    /// The next sync, and the pause before it, which ends early when the latch opens.
    private func nextSync() -> ((any OperationStore), UInt64, Duration, Latch)? {
        guard fatal == nil, let keeping, keeping.gate.wantsSync else { return nil }
        let due = keeping.lastSync + (keeping.store.syncInterval ?? .zero)
        let pause = keeping.isSyncUrgent ? .zero : max(.zero, due - machineTime.now())
        let hurry = Latch()
        self.keeping?.hurry = hurry
        return (keeping.store, keeping.gate.committed, pause, hurry)
    }

    /// Ends the pause before the next sync if somebody waits for what is committed.
    private func hurrySync() {
        guard let keeping, keeping.isSyncUrgent else { return }
        keeping.hurry.open()
    }

    /// - Parameter time: How long the disk took; `nil`: it was not asked.
    private func synced(upTo step: UInt64, in time: Duration? = nil) {
        guard keeping != nil else { return }
        if let time, meters != nil { latency.synced(in: time) }
        keeping?.lastSync = machineTime.now()
        let messages = keeping?.gate.didSync(upTo: step) ?? []
        perform([], messages)
        settleWaiters()
    }

    private func settleWaiters() {
        guard var keeping else { return }
        // Gives up the second reference, so that nothing is copied.
        self.keeping = nil
        let shown = violation == .showsUnsyncedEvents ? keeping.gate.last : keeping.gate.synced
        while let mark = keeping.marks.first, mark.step <= shown {
            keeping.syncedEvent = mark.event
            keeping.marks.removeFirst()
        }
        if let segment = keeping.takeSynced() { feed.append(segment) }
        let ready = keeping.waiters.filter {
            $0.value.step <= keeping.gate.synced && $0.value.event <= keeping.syncedEvent
        }
        for id in ready.keys { keeping.waiters[id] = nil }
        self.keeping = keeping
        // Each waiter is a task of its own: the order does not matter.
        for waiter in ready.values { waiter.latch.open() }
        if !ready.isEmpty { passed(.answered) }
    }

    /// Releases everyone who waits for a store that will not write any more.
    func failKeeping(_ error: any Error) {
        for waiter in (keeping?.waiters ?? [:]).values { waiter.latch.open() }
        keeping?.waiters = [:]
    }

    // MARK: - Waiting

    /// Returns when everything that was decided before this call is synced.
    ///
    /// - Throws: `ClientError.unavailable` if that is impossible at present.
    package func durable() async throws(ClientError) {
        guard let keeping, keeping.gate.synced < keeping.gate.last else { return }
        if let trouble = keeping.trouble { throw ClientError(.unavailable, trouble.message) }
        try await kept()
    }

    /// Asks the store, which has everything by then that was decided before this call; `nil`: there
    /// is no store.
    ///
    /// - Parameter isChanged: Whether the calling request has changed something, and so waits
    ///   however long the store is in trouble.
    func stored<Value: Sendable>(
        isChanged: Bool = false,
        _ ask: @Sendable (any OperationStore) async throws -> Value
    ) async throws(ClientError) -> Value? {
        guard let store else { return nil }
        if isChanged { try await kept() } else { try await durable() }
        do {
            return try await ask(store)
        } catch {
            throw ClientError(.unavailable, "\(error)")
        }
    }

    /// Waits in the same way for a change that the calling request made. The change takes effect as
    /// soon as the store has room again, so a store in trouble is no reason to report a failure.
    ///
    /// - Throws: `ClientError.unavailable` if the coordinator ends first.
    package func kept() async throws(ClientError) {
        guard await untilDurable() else {
            throw ClientError(.unavailable, "The coordinator is shutting down.")
        }
    }

    /// Waits in the same way, however long the store is in trouble.
    ///
    /// - Returns: Whether everything is synced; `false` if the coordinator ends first.
    package func untilDurable() async -> Bool {
        guard let keeping, keeping.gate.synced < keeping.gate.last else { return true }
        if violation == .answersBeforeSync { return true }
        // Nothing is synced any more.
        guard fatal == nil, !hasEnded else { return false }
        let step = keeping.gate.last
        await wait(Keeping.Waiter(step: step, event: 0, latch: Latch())) { await $0.wait() }
        return self.keeping.map { $0.gate.synced >= step } ?? false
    }

    /// A waiter that is cancelled, or whose time is over, is removed from the table here: an idle
    /// coordinator would never remove it.
    private func wait(_ waiter: Keeping.Waiter, _ wait: (Latch) async -> Void) async {
        guard keeping != nil else { return }
        keeping?.nextWaiter += 1
        let id = keeping?.nextWaiter ?? 0
        keeping?.waiters[id] = waiter
        if waiter.step > 0 {
            syncSignal.raise()
            hurrySync()
        }
        await wait(waiter.latch)
        keeping?.waiters[id] = nil
    }

    /// The number of callers that wait for a sync or for an event.
    package var waiterCount: Int { keeping?.waiters.count ?? 0 }

    /// Why nothing can be accepted at present; `nil`: it can.
    package var trouble: String? {
        if let trouble = keeping?.trouble { return trouble.message }
        return hasEnded || fatal != nil ? "The coordinator is shutting down." : nil
    }

    /// Returns when something that was decided this long ago is still not synced, because the disk
    /// does not respond. Never returns without a store.
    ///
    /// - Parameter refused: The same time for a store that says that its disk is full.
    /// - Throws: `CancellationError`.
    package func waitUntilStoreIsStuck(
        for patience: Duration,
        refused shortPatience: Duration
    ) async throws {
        while true {
            let step = keeping?.gate.last
            let synced = keeping?.gate.synced
            try await machineTime.sleep(for: shortPatience)
            if let step, let keeping, keeping.trouble?.code == .full,
                keeping.gate.synced < step, keeping.gate.synced == synced
            {
                return
            }
            try await machineTime.sleep(for: patience - shortPatience)
            if let step, let keeping, keeping.gate.synced < step { return }
        }
    }

    /// The number of operations that an attempt has ended and whose end is not stored yet.
    package var unstoredResultCount: Int { keeping?.gate.waitingResultCount ?? 0 }

    func durable(within limit: Duration) async {
        guard let keeping, keeping.gate.synced < keeping.gate.last, fatal == nil else { return }
        let waiter = Keeping.Waiter(step: keeping.gate.last, event: 0, latch: Latch())
        await wait(waiter) { await $0.wait(within: limit, by: machineTime) }
    }

    /// Returns when an event after this one is synced, or when the service has ended.
    ///
    /// - Returns: The number of the last synced event.
    func waitForEvents(after sequence: UInt64) async -> UInt64 {
        guard let keeping, keeping.syncedEvent <= sequence, !hasEnded else {
            return keeping?.syncedEvent ?? 0
        }
        let next = sequence == .max ? sequence : sequence + 1
        await wait(Keeping.Waiter(step: 0, event: next, latch: Latch())) { await $0.wait() }
        return self.keeping?.syncedEvent ?? 0
    }
}

extension ClusterEvent {
    fileprivate init(_ kind: Kind, _ worker: WorkerIdentity, at: WallTime) {
        self.init(kind, at: at)
        self.worker = worker.incarnation
        workerName = worker.name
    }
}
