package import OperonCore
import OperonModel
import OperonPorts

/// What a transaction of the coordinator left, while a power cut may still undo it.
struct JournalBoundary {
    /// See `SimulatedJournal.stored`.
    let number: Int
    let image: StoreImage
    let ledger: SimulatorLedger.Kept
}

// A real store under the coordinator. The image says what it must have: every transaction is kept
// whole or lost whole, and none is lost that was answered.
extension Simulator {
    /// A swarm draw like that of `init(seed:violation:)`, whose coordinator keeps what it decides
    /// in this journal and dies at its crash points.
    package init(
        seed: UInt64,
        journal: any SimulatedJournal,
        violation: PlantedViolation? = nil
    ) {
        var scenario = Self.scenario(of: seed, hasStore: true)
        scenario.violation = violation
        scenario.checkedSteps = Self.journalCheckedSteps
        var deaths = SeededGenerator(seed: seed ^ 0x6465_6174_6873_0000)
        scenario.journalDeaths = Int.random(in: 3...12, using: &deaths)
        self.init(seed: seed, scenario: scenario)
        store = SimulatedStore(reign: scheduler.reign, limits: journal.limits)
        store?.journal = journal
    }

    /// A check after each step would take most of the time.
    private static let journalCheckedSteps = 32

    mutating func planJournalDeaths(from start: Timestamp) {
        for _ in 0..<scenario.journalDeaths {
            let time = moment(in: &journalFaults, from: start, seconds: 50)
            let (draw, isPowerCut) = (journalFaults.next(), journalFaults.fraction() < 0.4)
            at(time, .journalDies(draw: draw, isPowerCut: isPowerCut))
        }
    }

    mutating func planJournalDeath(_ draw: UInt64, isPowerCut: Bool) {
        guard let journal = store?.journal, !isHealed else { return }
        journal.planDeath(draw)
        store?.journalPowerCut = isPowerCut
    }

    /// Opens the journal for the first coordinator.
    mutating func startJournal() {
        guard let journal = store?.journal else { return }
        do {
            guard case .opened(let found) = try journal.open() else {
                return ledger.broken("the journal died before a death was planned")
            }
            _ = checked(found, journal)
        } catch {
            ledger.broken("not opened: \(error)")
        }
    }

    // MARK: - Writing

    /// Stores a batch. A process that died is dead when this returns.
    ///
    /// - Returns: whether the batch is stored, and whether the coordinator lives.
    mutating func write(_ batch: StoreBatch) throws -> (isStored: Bool, lives: Bool) {
        // In place: a copy of the store would make its image copy itself.
        guard let epoch = store?.image.epoch else { return (false, false) }
        try scheduler.epoch.checkWrite(to: epoch)
        guard let journal = store?.journal else {
            try store?.image.apply(batch)
            return (true, true)
        }
        let batch = furnished(batch)
        let before = journal.stored
        let lives = try journal.commit(batch, by: scheduler.epoch)
        guard lives || journal.stored > before else {
            die(isPowerCut: store?.journalPowerCut == true)
            return (false, false)
        }
        try store?.image.apply(batch)
        return (true, lives)
    }

    /// The batch with an event, which tells it from every other, and with outputs and logs.
    private func furnished(_ batch: StoreBatch) -> StoreBatch {
        guard let image = store?.image, !batch.isEmpty else { return batch }
        var batch = batch
        let sequence = image.lastEvent + 1
        let body = [UInt8(truncatingIfNeeded: sequence)]
        batch.events = [StoredEvent(sequence: sequence, body: body)]
        var granted: [OperationID: AttemptID] = [:]
        for record in batch.records {
            switch record {
            case .granted(let attempt, let id, _, _), .resumed(let attempt, let id):
                granted[id] = attempt
            case .finished(let id, _):
                guard let attempt = granted[id] ?? image.openAttempt(of: id)?.id else { continue }
                let bytes = Array("\(attempt)".utf8)
                let isSilent = id.index % 3 == 0
                batch.results.append(
                    StoredResult(
                        operation: id,
                        attempt: attempt,
                        output: isSilent ? .empty : Payload(bytes: bytes),
                        log: KeptLog(tail: isSilent ? [] : bytes),
                        startedAt: nil,
                        endedAt: batch.wall
                    )
                )
            default: continue
            }
        }
        return batch
    }

    /// Notes what a transaction left.
    mutating func noteBoundary() {
        guard let store, let journal = store.journal else { return }
        self.store?.boundaries.append(
            JournalBoundary(number: journal.stored, image: store.image, ledger: ledger.kept)
        )
    }

    /// - Returns: whether the coordinator lives.
    mutating func project() -> Bool {
        guard let store, let journal = store.journal else { return true }
        do {
            if try journal.project() { return true }
            die(isPowerCut: store.journalPowerCut)
        } catch {
            ledger.broken("\(error)")
        }
        return false
    }

    /// Waits for the disk. What was stored up to this boundary must not be lost from now on.
    ///
    /// - Returns: whether the coordinator lives.
    mutating func sync(upTo number: Int) -> Bool {
        guard let store, let journal = store.journal else { return true }
        do {
            guard try journal.sync() else {
                die(isPowerCut: store.journalPowerCut)
                return false
            }
        } catch {
            ledger.broken("\(error)")
            return false
        }
        self.store?.boundaries.removeAll { $0.number < number }
        return true
    }

    /// - Returns: whether the coordinator lives.
    mutating func drop(_ graphs: [GraphID]) -> Bool {
        for graph in graphs {
            guard let store, let journal = store.journal else {
                self.store?.image.drop([graph])
                ledger.kept.grown.drop(graph)
                continue
            }
            do {
                guard try journal.drop(graph, by: scheduler.epoch) else {
                    die(isPowerCut: store.journalPowerCut)
                    return false
                }
            } catch {
                ledger.broken("\(error)")
                return false
            }
            self.store?.image.drop([graph])
            ledger.kept.grown.drop(graph)
            noteBoundary()
        }
        return true
    }

    // MARK: - Dying

    /// What the death of the process, or of its machine, left of the journal.
    mutating func loseJournal(_ journal: any SimulatedJournal, isPowerCut: Bool) throws {
        try journal.die(powerCut: isPowerCut ? journalFaults.next() : nil)
        guard let store, let last = store.boundaries.last else { return }
        guard let left = store.boundaries.last(where: { $0.number == journal.stored }) else {
            ledger.broken("a transaction that was answered is lost")
            return
        }
        guard left.number < last.number else { return }
        self.store?.image = left.image
        ledger.rollBack(to: left.ledger)
    }

    /// Opens the store for the next coordinator.
    ///
    /// - Returns: its state; `nil`: the coordinator died, or what it found is wrong.
    mutating func openStore() -> StoredState? {
        guard let journal = store?.journal else {
            store?.image.raiseEpoch()
            return store?.image.state
        }
        do {
            switch try journal.open() {
            case .died(let epochIsRaised):
                if epochIsRaised { store?.image.raiseEpoch() }
                try journal.die(powerCut: nil)
                return nil
            case .opened(let found):
                store?.image.raiseEpoch()
                return checked(found, journal)
            }
        } catch {
            ledger.broken("not opened: \(error)")
            return nil
        }
    }

    /// The state, if the store has exactly what the image has.
    private mutating func checked(
        _ found: StoredState,
        _ journal: any SimulatedJournal
    ) -> StoredState? {
        guard let image = store?.image else { return nil }
        do {
            let difference = found.difference(from: image.state)
            if let broken = try difference ?? journal.difference(from: image) {
                ledger.broken("recovered: \(broken)")
                return nil
            }
        } catch {
            ledger.broken("recovered: \(error)")
            return nil
        }
        store?.boundaries = []
        noteBoundary()
        return found
    }

    /// After the last event, what the next process would find.
    mutating func checkJournal() -> String? {
        guard let journal = store?.journal else { return nil }
        do { try loseJournal(journal, isPowerCut: false) } catch { return "\(error)" }
        _ = openStore()
        return ledger.violation
    }
}

extension StoredState {
    /// What is not the same; `nil`: nothing.
    fileprivate func difference(from other: StoredState) -> String? {
        func named<Value: Equatable>(_ what: String, _ one: Value, _ two: Value) -> String? {
            one == two ? nil : "\(what): \(one), not \(two)"
        }
        for (one, two) in zip(graphs, other.graphs) {
            for (found, expected) in zip(one.operations, two.operations) {
                if let broken = named("operation", found, expected) { return broken }
            }
            if let broken = named("graph", one, two) { return broken }
        }
        return named("reign", reign, other.reign) ?? named("epoch", epoch, other.epoch)
            ?? named("last event", lastEvent, other.lastEvent)
            ?? named("graphs", graphs.count, other.graphs.count)
            ?? named("queues", queues, other.queues) ?? named("keys", keys, other.keys)
            ?? named("rates", rates, other.rates) ?? named("triggers", triggers, other.triggers)
            ?? named("attempts in flight", inFlight, other.inFlight)
            ?? named("workers", workers, other.workers)
    }
}
