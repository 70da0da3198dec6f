import OperonCore
import OperonModel
import OperonPorts

/// What the simulated coordinator keeps, and what of it a death leaves.
struct SimulatedStore {
    /// What is committed: a process that dies leaves it.
    var image: StoreImage
    /// What is on the disk: a power cut leaves it.
    var durable: StoreImage
    var durableLedger = SimulatorLedger.Kept()
    /// Everything that was decided: a scheduler that is rebuilt from it must be the one that lives.
    var decided: StoreImage
    var gate = EffectGate()
    var committing: StoreBatch?
    var syncing: (step: UInt64, image: StoreImage, ledger: SimulatorLedger.Kept)?
    /// What the journal had stored when the sync began.
    var syncingNumber = 0
    /// Graphs that the scheduler forgot, and that are dropped once this step is on the disk.
    var dropping: (graphs: [GraphID], step: UInt64)?
    /// Graphs that it is just asked to forget.
    var forgetting: [GraphID] = []
    /// How many coordinators have run on it.
    var generation = 0
    var isAlive = true
    /// Where it dies next.
    var crash: Crash?
    var eventCount = 0
    /// A real store, whose content the image must be; `nil`: the image is the store.
    var journal: (any SimulatedJournal)?
    /// Whether the machine dies with the process at the next crash point of the journal.
    var journalPowerCut = false
    /// What each transaction left, from the last one that is synced. Only with a journal.
    var boundaries: [JournalBoundary] = []

    struct Crash {
        let point: CrashMoment
        let isPowerCut: Bool
    }

    init(reign: Reign, limits: Limits = Limits()) {
        image = StoreImage(reign: reign, limits: limits)
        // The rule before this one sends its ghosts.
        image.raiseEpoch()
        image.raiseEpoch()
        durable = image
        decided = image
    }
}

/// Every boundary in the order of effects.
enum CrashMoment: CaseIterable {
    case beforeRecords
    case beforeMessages
    case betweenMessages
    case afterMessages
    case afterSync
}

// The coordinator's shell: what the scheduler asks for goes through the gate, and the process may
// die at every boundary.
extension Simulator {
    /// Takes what one event asked for; performs what may be performed at once.
    mutating func keep(_ effects: consuming Scheduler.Effects, _ contents: [StoredContents]) {
        guard store != nil else {
            noteClocks()
            ledger.record(effects, of: scheduler)
            perform(effects)
            return
        }
        var batch = StoreBatch(wall: moment.wall, records: effects.records)
        batch.graphs = contents
        do {
            try store?.decided.apply(batch)
        } catch {
            ledger.broken("\(error)")
        }
        let gone = (store?.forgetting ?? []).filter { scheduler.isGone($0) }
        store?.decided.drop(gone)
        compareWithRestored()
        if scenario.violation == .tellsBeforeCommit {
            send(effects.messages)
            effects.messages = []
        }
        if let free = store?.gate.append(effects, batch) {
            noteClocks()
            ledger.record(free, of: scheduler)
            perform(free)
        }
        startCommit()
    }

    /// Records may be older than a setting of the wall clock if the coordinator stood still
    /// meanwhile.
    private mutating func noteClocks() {
        let wasSetMeanwhile = clockSetAt >= coordinatorFrozenSince
        ledger.clocks = SimulatorLedger.Clocks(
            now: moment,
            setAt: wasSetMeanwhile ? max(clockSetAt, coordinatorThawedAt) : clockSetAt
        )
    }

    /// A scheduler that is rebuilt from everything that was decided is the one that decided it.
    private mutating func compareWithRestored() {
        store?.eventCount += 1
        let events = UInt64(Self.comparedEvents * scenario.checkedSteps)
        // In place, here and below: a copy of the store counts references to all that it holds.
        guard let count = store?.eventCount, (UInt64(count) &+ seed).isMultiple(of: events),
            let state = store?.decided.state
        else { return }
        switch restored(from: state) {
        case .success(let restored):
            if let broken = restored.violatedInvariant() { ledger.broken("restored: \(broken)") }
            if let difference = scheduler.durableDifference(from: restored) {
                ledger.broken("not as it was: \(difference)")
            }
        case .failure(let error): ledger.broken("not restored: \(error)")
        }
    }

    /// One event in so many.
    private static var comparedEvents: Int { 5 }

    private func restored(from state: StoredState) -> Result<Scheduler, RestoreError> {
        do {
            return .success(
                try pieces.restored(state, scheduler.configuration, at: moment)
            )
        } catch {
            return .failure(error)
        }
    }

    // MARK: - Committing

    private mutating func startCommit() {
        guard let generation = store?.generation, store?.committing == nil,
            let batch = store?.gate.nextBatch()
        else { return }
        store?.committing = batch
        let length = batch.isEmpty ? 0 : Int64(disk.next() % 3_000)
        at(now + .microseconds(length), .committed(generation: generation))
    }

    mutating func committed(generation: Int) {
        guard let batch = store?.committing, store?.generation == generation else { return }
        if dies(.beforeRecords) { return }
        if !batch.isEmpty, !isHealed, disk.fraction() < scenario.commitFailure {
            ledger.met(.commitFailed)
            at(now + .milliseconds(50), .committed(generation: generation))
            return
        }
        let lives: Bool
        do {
            let fate = try write(batch)
            guard fate.isStored else { return }
            lives = fate.lives
        } catch {
            return ledger.broken("\(error)")
        }
        store?.committing = nil
        let steps = store?.gate.didCommit() ?? []
        noteClocks()
        for step in steps { ledger.record(step, of: scheduler) }
        if !batch.isEmpty { noteBoundary() }
        guard lives else { return die(isPowerCut: store?.journalPowerCut == true) }
        if dies(.beforeMessages) { return }
        for step in steps {
            perform(step)
            guard store?.generation == generation else { return }
        }
        if scenario.violation == .acknowledgesBeforeSync {
            send(store?.gate.didSync(upTo: .max) ?? [])
        }
        if dies(.afterMessages) { return }
        guard project() else { return }
        startSync()
        startCommit()
    }

    private mutating func startSync() {
        guard store?.gate.wantsSync == true || scenario.violation == .acknowledgesBeforeSync,
            store?.syncing == nil, let generation = store?.generation,
            let committed = store?.gate.committed, let image = store?.image
        else { return }
        store?.syncing = (committed, image, ledger.kept)
        let number = store?.journal?.stored ?? 0
        store?.syncingNumber = number
        let length = Int64(disk.next() % 20_000)
        at(now + .microseconds(length), .synced(generation: generation))
    }

    mutating func synced(generation: Int) {
        guard store?.generation == generation, let number = store?.syncingNumber,
            let syncing = store?.syncing.take()
        else { return }
        guard sync(upTo: number) else { return }
        store?.durable = syncing.image
        store?.durableLedger = syncing.ledger
        if dies(.afterSync) { return }
        send(store?.gate.didSync(upTo: syncing.step) ?? [])
        dropForgotten()
        if store?.gate.wantsSync == true { startSync() }
    }

    /// Whether nothing waits to be kept.
    var isKept: Bool {
        store == nil
            || store?.isAlive == true && store?.committing == nil && store?.syncing == nil
                && store?.gate.hasWaiting == false
    }

    // MARK: - Forgetting

    /// What has finished is kept no longer: the scheduler forgets it, then the store drops it.
    mutating func prune() {
        guard let store, store.isAlive, store.dropping == nil else { return }
        let keeping = Int(steering.next() % 3)
        let old = store.image.prunable(beyond: StoreRetention.Bounds(graphs: keeping))
        guard !old.isEmpty else { return }
        self.store?.forgetting = old
        drive(.graphsForgotten(old))
        self.store?.forgetting = []
        let gone = old.filter { scheduler.isGone($0) }
        guard !gone.isEmpty else { return }
        ledger.met(.graphForgotten)
        let last = self.store?.gate.last ?? 0
        self.store?.dropping = (gone, last)
        dropForgotten()
    }

    private mutating func dropForgotten() {
        guard let (graphs, step) = store?.dropping, let synced = store?.gate.synced, synced >= step
        else { return }
        store?.dropping = nil
        _ = drop(graphs)
    }

    // MARK: - Dying

    mutating func dies(_ point: CrashMoment) -> Bool {
        guard let crash = store?.crash, crash.point == point, !isHealed else { return false }
        // Some leave before.
        if point == .betweenMessages, disk.fraction() < 0.5 { return false }
        store?.crash = nil
        ledger.met(.coordinatorKilled)
        switch point {
        case .beforeRecords: ledger.met(.killedBeforeRecords)
        case .beforeMessages: ledger.met(.killedBeforeMessages)
        case .betweenMessages: ledger.met(.killedBetweenMessages)
        case .afterMessages: ledger.met(.killedAfterMessages)
        case .afterSync: ledger.met(.killedAfterSync)
        }
        die(isPowerCut: crash.isPowerCut)
        return true
    }

    mutating func die(isPowerCut: Bool) {
        if isPowerCut { ledger.met(.powerCut) }
        if let journal = store?.journal {
            do {
                try loseJournal(journal, isPowerCut: isPowerCut)
            } catch {
                ledger.broken("\(error)")
            }
        } else if isPowerCut, let store {
            self.store?.image = store.durable
            ledger.rollBack(to: store.durableLedger)
        }
        guard var store else { return }
        store.generation += 1
        store.isAlive = false
        store.committing = nil
        store.syncing = nil
        store.gate = EffectGate()
        store.dropping = nil
        ledger.died()
        self.store = store
        coordinatorIsUp = false
        coordinatorConnection += 1
        coordinatorWake = nil
        nextDate = nil
        let pause: Int64 = disk.next() % 2 == 0 ? 200 : 12_000 * scenario.process.scale
        let length = Int64(disk.next() % UInt64(pause))
        at(now + .milliseconds(length), .coordinatorStarted(generation: store.generation))
    }

    /// The next run of the coordinator: what the store has, under a new epoch.
    mutating func startCoordinator(generation: Int) {
        guard store?.generation == generation, store?.isAlive == false else { return }
        let state = openStore()
        guard var store, ledger.violation == nil else { return }
        // On the disk before anything else happens, and with it whatever was written before.
        store.durable = store.image
        store.durableLedger = ledger.kept
        self.store = store
        guard let state, isHealed || disk.fraction() >= 0.2 else {
            ledger.met(.recoveryInterrupted)
            if state != nil, let journal = store.journal {
                do {
                    try loseJournal(journal, isPowerCut: false)
                } catch {
                    ledger.broken("\(error)")
                }
            }
            self.store?.generation += 1
            at(now + .milliseconds(300), .coordinatorStarted(generation: generation + 1))
            return
        }
        switch restored(from: state) {
        case .failure(let error): ledger.broken("not restored: \(error)")
        case .success(let restored):
            if let broken = restored.violatedInvariant() { ledger.broken("restored: \(broken)") }
            scheduler = restored
            drains = [:]
            isLeaving = false
            self.store?.isAlive = true
            coordinatorAliveSince = now
            self.store?.decided = store.image
            outputServer = OutputServer(limits: Self.smallPieces(restored.configuration.limits))
            noteRestored(state)
            resolver.restore(state)
            // Nobody was told that it was taken: it is submitted again.
            if restored.graphCount == 0 { at(now + .milliseconds(10), .submit) }
            // It looks at once at what has become due meanwhile.
            coordinatorWake = now
            at(now, .coordinatorWake)
            at(now, .coordinatorUp)
        }
    }

    /// Counts what the coordinator started with that was different when the graph was submitted.
    private mutating func noteRestored(_ state: StoredState) {
        if state.inFlight.contains(where: { $0.worker == .nobody }) {
            ledger.met(.restoredOutside)
        }
        if state.graphs.contains(where: \.isTombstone) { ledger.met(.restoredTombstone) }
        for graph in state.graphs where graph.finishedAt == nil {
            if graph.contents.count > 1 { ledger.met(.restoredAddition) }
            if !graph.dependencyChanges.isEmpty { ledger.met(.restoredDependencies) }
            if graph.contents.contains(where: { !$0.needs.isEmpty }) {
                ledger.met(.restoredAcrossGraphs)
            }
            if graph.operations.contains(where: { $0.round > 0 }) { ledger.met(.restoredRound) }
            if graph.operations.contains(where: { $0.suspension?.until != nil }) {
                ledger.met(.restoredSuspension)
            }
        }
        if state.queues.contains(where: { !$0.commanded.isEmpty }) {
            ledger.met(.restoredCommands)
        }
    }

    mutating func reviveCoordinator() {
        guard let store, !store.isAlive else { return }
        startCoordinator(generation: store.generation)
    }
}
