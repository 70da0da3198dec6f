import Logging
import OperonCore
package import OperonModel
package import OperonPorts
import OperonWire

// Keeping: records first, then what rests on them. Which effect waits for what is decided by
// `EffectGate`; here transactions and syncs are made, one at a time each.
extension CoordinatorService {
    /// What a store gave back of the lives before.
    package struct Restored: Sendable {
        let store: any OperationStore
        let lastEvent: UInt64
        let contents: ContentsTable
        let register: GraphRegister
        let workerNames: [Incarnation: String]

        /// The operations of a graph from this number on; none, if it has no more.
        package func operations(of graph: GraphID, from first: Int) -> [OperationDescription] {
            guard contents.indices.contains(Int(graph.rawValue)) else { return [] }
            let operations = contents[Int(graph.rawValue)].operations
            return (min(first, operations.count)..<operations.count).map { operations[$0] }
        }
    }

    struct Keeping: Sendable {
        let store: any OperationStore
        var gate = EffectGate()
        /// Number of the last event that was taken.
        var lastEvent: UInt64
        /// Number of the last event that survives a power cut.
        var syncedEvent: UInt64
        /// Graphs that were submitted and whose step is not taken yet.
        var submitted: [StoredContents] = []
        /// The last event of each step that has any.
        var marks: [(step: UInt64, event: UInt64)] = []
        /// Why nothing can be kept at present.
        var trouble: StoreError?
        /// Each leaves when it stops waiting, whatever for.
        var waiters: [UInt64: Waiter] = [:]
        var nextWaiter: UInt64 = 0
        var lastSync = Timestamp.zero

        struct Waiter: Sendable {
            let step: UInt64
            let event: UInt64
            let latch: Latch
        }

        init(store: any OperationStore, lastEvent: UInt64) {
            self.store = store
            self.lastEvent = lastEvent
            syncedEvent = lastEvent
        }
    }

    // MARK: - Taking

    /// Takes what one call of the scheduler asked for; returns what may be done at once.
    func keep(_ effects: Scheduler.Effects, at now: Moment) -> Scheduler.Effects? {
        guard var keeping else { return effects }
        // Gives up the second reference, so that nothing is copied.
        self.keeping = nil
        var batch = StoreBatch(wall: now.wall, records: effects.records)
        batch.graphs = keeping.submitted
        keeping.submitted = []
        collect(effects.notices, at: now, into: &batch)
        forEachHappening(of: effects, at: now.wall) { happening in
            do throws(WireError) {
                let body = try StoreFormat.encode(happening)
                keeping.lastEvent += 1
                batch.events.append(StoredEvent(sequence: keeping.lastEvent, body: body))
            } catch {
                logger.error("event not kept", metadata: ["reason": "\(error)"])
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

    /// Outputs and logs of attempts that ended, and what workers that came are called.
    private func collect(
        _ notices: [Scheduler.Notice],
        at now: Moment,
        into batch: inout StoreBatch
    ) {
        var results: [AttemptID: AttemptResult] = [:]
        for notice in notices {
            switch notice {
            case .result(_, let attempt, let result): results[attempt] = result
            case .workerJoined(let worker, _, _):
                batch.workers.append(StoredWorker(worker.incarnation, name: worker.name))
            case .attemptEnded(let operation, let attempt, _, let start, let end):
                guard let result = results.removeValue(forKey: attempt) else { continue }
                batch.results.append(
                    StoredResult(
                        operation: operation,
                        attempt: attempt,
                        output: result.output,
                        logTail: result.logTail,
                        startedAt: start.map { now.wall + ($0 - now.monotonic) },
                        endedAt: now.wall + (end - now.monotonic)
                    )
                )
            default: continue
            }
        }
    }

    /// One by one: of a graph that is cancelled there are a million at once.
    private func forEachHappening(
        of effects: Scheduler.Effects,
        at now: WallTime,
        _ body: (Happening) -> Void
    ) {
        for record in effects.records {
            if let happening = Happening(record, at: now) { body(happening) }
        }
        for notice in effects.notices {
            switch notice {
            case .graphFinished(let graph):
                var happening = Happening(.graphFinished, at: now)
                happening.graph = graph
                body(happening)
            case .workerJoined(let worker, _, _): body(Happening(.workerJoined, worker, at: now))
            case .workerLost(let worker): body(Happening(.workerLost, worker, at: now))
            case .workerDraining(let worker): body(Happening(.workerDraining, worker, at: now))
            default: continue
            }
        }
    }

    // MARK: - Committing

    nonisolated func commitAll() async {
        for await _ in commitSignal.raised {
            while let (store, batch) = await nextBatch() {
                do {
                    reached(.beforeCommit)
                    let start = SystemClock.now()
                    try await commit(batch, to: store)
                    meters?.commitTime.record(since: start)
                    reached(.afterCommit)
                } catch is CancellationError {
                    // It ends while the store is in trouble. What is not kept was told to nobody.
                    return
                } catch {
                    // What is on the disk now is unknown: only a new start can tell.
                    await fail(error)
                    return
                }
                await committed()
            }
        }
    }

    private func nextBatch() -> ((any OperationStore), StoreBatch)? {
        guard fatal == nil, let store = keeping?.store else { return nil }
        return (keeping?.gate.nextBatch()).map { (store, $0) }
    }

    /// A transaction that left nothing behind is tried again until it succeeds: nothing later is
    /// done meanwhile, and the windows of the workers hold what they report.
    private nonisolated func commit(
        _ batch: StoreBatch,
        to store: any OperationStore
    ) async throws {
        guard !batch.isEmpty else { return }
        var pause = Duration.milliseconds(50)
        while true {
            do {
                try await store.commit(batch)
                await report(nil)
                return
            } catch let error as StoreError where error.isTransient {
                await report(error)
                // Nothing says when a disk has space again.
                try await Task.sleep(for: pause)
                pause = min(pause * 2, .seconds(1))
            }
        }
    }

    private func report(_ trouble: StoreError?) {
        guard keeping?.trouble != trouble else { return }
        keeping?.trouble = trouble
        if let trouble {
            logger.error("nothing can be kept", metadata: ["reason": "\(trouble)"])
        } else {
            logger.notice("the store takes records again")
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
        }
    }

    // MARK: - Syncing

    nonisolated func syncAll() async {
        for await _ in syncSignal.raised {
            while let (store, step, pause) = await nextSync() {
                if pause > .zero {
                    do { try await Task.sleep(for: pause) } catch { return }
                    continue
                }
                do {
                    reached(.beforeSync)
                    let start = SystemClock.now()
                    try await store.sync()
                    meters?.syncTime.record(since: start)
                    reached(.afterSync)
                } catch {
                    // A sync that failed cannot be asked again: the system forgot what it was for.
                    await fail(error)
                    return
                }
                await synced(upTo: step)
            }
        }
    }

    private func nextSync() -> ((any OperationStore), UInt64, Duration)? {
        guard fatal == nil, let keeping, keeping.gate.wantsSync else { return nil }
        let isUrgent =
            keeping.gate.isSyncUrgent
            || keeping.waiters.values.contains { $0.step > keeping.gate.synced }
        let due = keeping.lastSync + (keeping.store.syncInterval ?? .zero)
        let pause = isUrgent ? .zero : max(.zero, due - SystemClock.now())
        return (keeping.store, keeping.gate.committed, pause)
    }

    private func synced(upTo step: UInt64) {
        guard keeping != nil else { return }
        keeping?.lastSync = SystemClock.now()
        let messages = keeping?.gate.didSync(upTo: step) ?? []
        perform([], messages)
        settleWaiters()
    }

    private func settleWaiters() {
        guard var keeping else { return }
        while let mark = keeping.marks.first, mark.step <= keeping.gate.synced {
            keeping.syncedEvent = mark.event
            keeping.marks.removeFirst()
        }
        let ready = keeping.waiters.filter {
            $0.value.step <= keeping.gate.synced && $0.value.event <= keeping.syncedEvent
        }
        for id in ready.keys { keeping.waiters[id] = nil }
        self.keeping = keeping
        // Each is another task: their order does not matter.
        for waiter in ready.values { waiter.latch.open() }
        if !ready.isEmpty { reached(.answered) }
    }

    /// Nobody shall wait for a store that keeps nothing any more.
    func failKeeping(_ error: any Error) {
        for waiter in (keeping?.waiters ?? [:]).values { waiter.latch.open() }
        keeping?.waiters = [:]
    }

    // MARK: - Waiting

    /// Returns when everything that was decided before survives a power cut.
    ///
    /// - Throws: `ClientError.unavailable` if that cannot be.
    package func durable() async throws(ClientError) {
        guard let keeping, keeping.gate.synced < keeping.gate.last else { return }
        if let trouble = keeping.trouble { throw ClientError(.unavailable, trouble.message) }
        try await kept()
    }

    /// The same for what was changed by the call that waits: it is done as soon as the store has
    /// room again, so its caller is not told before that it was not.
    ///
    /// - Throws: `ClientError.unavailable` if the coordinator ends before.
    package func kept() async throws(ClientError) {
        guard await untilDurable() else {
            throw ClientError(.unavailable, "The coordinator ends: nothing can be kept any more.")
        }
    }

    /// The same, however long the store is in trouble.
    ///
    /// - Returns: Whether it does; not, if the coordinator ends before.
    package func untilDurable() async -> Bool {
        guard let keeping, keeping.gate.synced < keeping.gate.last else { return true }
        // Nothing is synced any more.
        guard fatal == nil, !hasEnded else { return false }
        let step = keeping.gate.last
        await wait(Keeping.Waiter(step: step, event: 0, latch: Latch())) { await $0.wait() }
        return self.keeping.map { $0.gate.synced >= step } ?? false
    }

    /// Whoever is cancelled, or has waited for long enough, is not kept in the table: a coordinator
    /// in which nothing happens would never take it out.
    private func wait(_ waiter: Keeping.Waiter, _ wait: (Latch) async -> Void) async {
        guard keeping != nil else { return }
        keeping?.nextWaiter += 1
        let id = keeping?.nextWaiter ?? 0
        keeping?.waiters[id] = waiter
        if waiter.step > 0 { syncSignal.raise() }
        await wait(waiter.latch)
        keeping?.waiters[id] = nil
    }

    /// Those who wait for the disk, or for an event.
    package var waiterCount: Int { keeping?.waiters.count ?? 0 }

    /// Returns when something that was decided this long ago is not on the disk, which is full, or
    /// does not answer. Never, without a store.
    ///
    /// - Throws: `CancellationError`.
    package func waitUntilStoreIsStuck(for patience: Duration) async throws {
        while true {
            let step = keeping?.gate.last
            try await Task.sleep(for: patience)
            if let step, let keeping, keeping.gate.synced < step { return }
        }
    }

    /// Operations whose end is not stored yet, by an attempt of theirs.
    package var unstoredResultCount: Int { keeping?.gate.waitingResultCount ?? 0 }

    func durable(within limit: Duration) async {
        guard let keeping, keeping.gate.synced < keeping.gate.last, fatal == nil else { return }
        let waiter = Keeping.Waiter(step: keeping.gate.last, event: 0, latch: Latch())
        await wait(waiter) { await $0.wait(within: limit) }
    }

    /// Returns when an event behind this one is on the disk, or when the service has ended; the
    /// number of the last one.
    func waitForEvents(after sequence: UInt64) async -> UInt64 {
        guard let keeping, keeping.syncedEvent <= sequence, !hasEnded else {
            return keeping?.syncedEvent ?? 0
        }
        let next = sequence == .max ? sequence : sequence + 1
        await wait(Keeping.Waiter(step: 0, event: next, latch: Latch())) { await $0.wait() }
        return self.keeping?.syncedEvent ?? 0
    }
}

extension Happening {
    fileprivate init(_ kind: Kind, _ worker: WorkerIdentity, at: WallTime) {
        self.init(kind, at: at)
        self.worker = worker.incarnation
        workerName = worker.name
    }
}

extension CoordinatorService {
    /// Why nothing can be taken at present; `nil`: it can.
    package var trouble: String? {
        if let trouble = keeping?.trouble { return trouble.message }
        return hasEnded || fatal != nil ? "The coordinator ends." : nil
    }

    /// Drops finished graphs but for what later dependencies may ask of them.
    package func prune(beyond retention: Retention) async throws {
        guard let store, retention.isBounded else { return }
        ended = Ended()
        let bounds = StoreRetention.Bounds(retention, at: time.wall())
        do {
            let old = try await store.prunable(beyond: bounds)
            guard !old.isEmpty else { return }
            // From here on nothing is decided of them; what was decided before is committed before
            // they are dropped. If this process dies in between, they are there again, whole.
            let dropped = forget(old)
            try await durable()
            try await store.drop(dropped)
            try await forgetWorkers(in: store)
            logger.info("finished graphs dropped", metadata: ["count": "\(dropped.count)"])
        } catch let error as StoreError where error.isTransient {
            logger.warning("nothing dropped", metadata: ["reason": "\(error)"])
        } catch let error as ClientError {
            logger.warning("nothing dropped", metadata: ["reason": "\(error)"])
        }
    }

    /// Names of workers that are gone, and of which no attempt is kept any more.
    private func forgetWorkers(in store: any OperationStore) async throws {
        guard workerNames.count > workerNamesMax else { return }
        let here = scheduler.workerStatus(at: time.now())
            .filter { $0.isAlive || $0.ownsAttempts }.map(\.identity.incarnation)
        let gone = Set(workerNames.keys).subtracting(here)
            .sorted { $0.rawValue < $1.rawValue }
        // Benign: one that comes back meanwhile is shown by its id until it comes again.
        for worker in try await store.forget(workers: gone) { workerNames[worker] = nil }
        // All attempts are read for it: not again before there are twice as many.
        workerNamesMax = max(limits.storedWorkers, 2 * workerNames.count)
    }

    /// Those of which nothing but the outcomes is kept any more.
    private func forget(_ graphs: [GraphID]) -> [GraphID] {
        let before = graphs.reduce(0) { $0 + scheduler.operationCount(of: $1) }
        handle([.graphsForgotten(graphs)])
        let gone = graphs.filter { scheduler.isGone($0) }
        for graph in gone { contents.drop(graph, scheduler.remains(of: graph)) }
        register.forget(gone)
        if before >= HeapMemory.largeGraph { HeapMemory.giveBackSoon() }
        return gone
    }

    /// What has ended since it was looked last what may be dropped.
    struct Ended: Sendable {
        var graphs = 0
        var operations = 0
        /// Of inputs, outputs and logs.
        var bytes = 0
    }

    /// Drops what is beyond these bounds: at once, after a time, and earlier when much has ended.
    /// Returns when its task is cancelled.
    ///
    /// - Throws: what the store cannot go on after.
    package func keepPruned(within retention: Retention) async throws {
        guard retention.isBounded else { return }
        let graphs = retention.graphs.map { max(1, min($0 / 10, Self.endedGraphs)) }
        let operations = retention.operations.map { max(1, min($0 / 10, Self.endedOperations)) }
        let bytes = retention.bytes.map { max(1, $0 / 4) }
        pruneAfter = Ended(
            graphs: graphs ?? .max,
            operations: operations ?? .max,
            bytes: bytes ?? .max
        )
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [time, pruneSignal] in
                while !Task.isCancelled {
                    pruneSignal.raise()
                    do { try await time.sleep(time.now() + Self.pruneInterval) } catch { return }
                }
            }
            for await _ in pruneSignal.raised { try await prune(beyond: retention) }
            group.cancelAll()
        }
    }

    /// From one look at what is old to the next: what is kept by time is kept for days.
    private static let pruneInterval = Duration.seconds(600)
    /// Operations that may end before it is looked again, if their number is bounded: a look costs
    /// what a few hundred of them do.
    private static let endedOperations = 10_000
    /// The same, if the number of graphs is bounded.
    private static let endedGraphs = 1_000

    /// The store knows of it by now.
    func noteEnded(_ graph: GraphID) {
        ended.graphs += 1
        ended.operations += scheduler.operationCount(of: graph)
        if pruneAfter.bytes < .max { ended.bytes += contents[Int(graph.rawValue)].inputBytes }
        guard
            ended.graphs >= pruneAfter.graphs || ended.operations >= pruneAfter.operations
                || ended.bytes >= pruneAfter.bytes
        else { return }
        pruneSignal.raise()
    }
}
