package import OperonModel

// The protocol with workers: hellos, beats, events. Every attempt is stored before it is sent and
// belongs to one worker; events are numbered; beats are evaluated only after the events that they
// name; results are discarded only once acknowledged.
extension Scheduler {
    mutating func transportCameUp(at now: Moment, into effects: inout Effects) {
        isConnected = true
        connectedAt = now.monotonic
        probe = nil
        // While the connection was down no worker could be heard, so each gets a whole lease to be
        // heard in.
        for index in workers.indices where workers[index].isWatched {
            workers[index].leaseEnd = now.monotonic + configuration.lease
            if workers[index].isExpected { workers[index].heardAt = now.monotonic }
            armLease(of: index)
            if workers[index].isExpected, configuration.violation == .restartsWhatRuns {
                giveUp(index, at: now, into: &effects)
            }
        }
        effects.messages.append(
            Message(destination: .everyWorker, sequence: 0, body: .plain(.resync))
        )
    }

    mutating func receive(
        _ envelope: WorkerEnvelope,
        at now: Moment,
        resolving resolver: inout some RequestResolver,
        into effects: inout Effects
    ) {
        if envelope.reign == reign, envelope.epoch > epoch {
            hearOfSuccessor(envelope.epoch, from: envelope.sender, at: now, into: &effects)
            return
        }
        if case .hello(let hello) = envelope.body {
            greet(hello, of: envelope.reign, from: envelope.sender, at: now, into: &effects)
            return
        }
        if case .tick(let tick) = envelope.body {
            if envelope.reign == reign, envelope.epoch == epoch {
                receive(tick, at: now, into: &effects)
            }
            return
        }
        guard envelope.reign == reign,
            let index = workerNumbers[envelope.sender.incarnation],
            workers[index].isAlive
        else {
            // The sender was welcomed by a previous coordinator, or its lease ran out.
            resync(envelope.sender, into: &effects)
            return
        }
        guard
            envelope.sender.connection == workers[index].identity.connection
                || configuration.violation == .acceptsOldConnections,
            envelope.epoch == epoch || configuration.violation == .believesOldEpochs
        else {
            // benign: a message that an old connection still had in the broker, or that was meant
            // for a previous coordinator. A newer hello covers it.
            return
        }
        renewLease(of: index, at: now)
        switch envelope.body {
        case .hello, .tick: break  // Handled above.
        case .events(let batch):
            receive(batch, from: index, at: now, resolving: &resolver, into: &effects)
        case .beat(let beat): receive(beat, from: index, at: now, into: &effects)
        case .log(let chunk):
            // Ignore logs of attempts that have ended or belong to another worker.
            guard attemptPlace(of: chunk.held, ownedBy: index) != nil else { return }
            effects.notices.append(.log(chunk))
        case .progress(let report):
            guard attemptPlace(of: report.held, ownedBy: index) != nil else { return }
            effects.notices.append(.progress(report))
        case .fetch(let requests):
            order(requests, from: index, isRepeated: false, into: &effects)
        case .watched(let reports):
            effects.notices.append(.watched(envelope.sender.incarnation, reports))
        }
    }

    /// A worker reports a later coordinator of this reign. If that is true, this coordinator has
    /// been asleep, and must not act any more.
    ///
    /// The report of one worker is not enough while another worker follows this coordinator: the
    /// report may be wrong, or a lie. Nor is it enough within the first lease of a connection, when
    /// honest workers may not have been heard yet. Until the report is believed, that worker gets
    /// nothing new and keeps what it has, so that no other worker gets it.
    ///
    /// With no live worker even an unknown sender is believed: all workers of this coordinator may
    /// have been restarted while it was asleep, and they would no longer obey it.
    private mutating func hearOfSuccessor(
        _ later: Epoch,
        from sender: WorkerIdentity,
        at now: Moment,
        into effects: inout Effects
    ) {
        if let index = workerNumbers[sender.incarnation], workers[index].isWatched {
            renewLease(of: index, at: now)
            workers[index].successor = later
        }
        guard now.monotonic >= connectedAt + configuration.lease,
            workers.allSatisfy({ !$0.isAlive || $0.successor != nil })
        else { return }
        effects.notices.append(.superseded(by: later))
    }

    /// The workers that may watch sources of triggers now.
    package var watchers: [WatchTable.Worker] {
        workers.filter { $0.isAlive && $0.offer.watches && !$0.isDraining && !$0.isAskedToDrain }
            .map { worker in
                WatchTable.Worker(
                    incarnation: worker.identity.incarnation,
                    name: worker.identity.name,
                    labels: worker.offer.labels
                )
            }
    }

    /// Where a message for the worker goes; `nil`: it is gone.
    package func address(of worker: Incarnation) -> WorkerAddress? {
        guard let index = workerNumbers[worker], workers[index].isAlive else { return nil }
        return WorkerAddress(
            incarnation: worker,
            connection: workers[index].identity.connection
        )
    }

    /// Whether the worker is welcome here, or was.
    package func knows(_ worker: Incarnation) -> Bool { workerNumbers[worker] != nil }

    private func resync(_ sender: WorkerIdentity, into effects: inout Effects) {
        tell(sender, .resync, into: &effects)
    }

    private func refuse(
        _ sender: WorkerIdentity,
        _ reason: RefusalReason,
        into effects: inout Effects
    ) {
        tell(sender, .refused(reason), into: &effects)
    }

    /// Sends a message without a number, on the connection that the sender names.
    private func tell(
        _ sender: WorkerIdentity,
        _ body: CoordinatorMessage,
        into effects: inout Effects
    ) {
        let address = WorkerAddress(
            incarnation: sender.incarnation,
            connection: sender.connection
        )
        effects.messages.append(
            Message(destination: .worker(address), sequence: 0, body: .plain(body))
        )
    }
}

// MARK: - Hello

extension Scheduler {
    private mutating func greet(
        _ hello: Hello,
        of helloReign: Reign,
        from sender: WorkerIdentity,
        at now: Moment,
        into effects: inout Effects
    ) {
        let isOurs = helloReign == reign
        guard isOurs || hello.held.isEmpty && hello.firstEvent > hello.lastEvent else {
            // The worker stays with the reign that gave it what it holds. The answer tells it of
            // this reign, which it follows once it gives up the other.
            effects.notices.append(.workerBusy(sender, helloReign))
            resync(sender, into: &effects)
            return
        }
        guard let index = place(of: hello, from: sender, at: now, into: &effects) else { return }
        let wasAlive = workers[index].isAlive
        workers[index].isAlive = true
        if !wasAlive {
            workers[index].aliveSince = now.monotonic
            introduce(index, hello)
        }
        workers[index].room.slots = min(Int(hello.slots), configuration.limits.slots)
        learn(isDraining: hello.isDraining, of: index, into: &effects)
        workers[index].workerID = hello.worker
        renewLease(of: index, at: now)
        workers[index].receivedAtBeat = nil
        // The worker is new, or returns from another reign: it counts its events from 1. Hellos and
        // events share a lane, so no event of the new count can have been handled before this
        // hello.
        if !isOurs { workers[index].handled = 0 }
        workers[index].handledAtClaim = workers[index].handled
        if !wasAlive {
            armLease(of: index)
            effects.notices.append(.workerJoined(sender, host: hello.host, slots: Int(hello.slots)))
        }
        // Events below the first that it holds are gone for good: it was told that they are
        // handled.
        if isOurs, hello.firstEvent > 0 {
            workers[index].handled = max(workers[index].handled, hello.firstEvent - 1)
        }
        // What was dispatched before this hello is compared with what the hello lists, once the
        // events that the hello names are handled.
        workers[index].claim = Claim(
            received: workers[index].sequence,
            sent: isOurs ? hello.lastEvent : 0,
            held: hello.held,
            isOfHello: true
        )
        renumberOwed(of: index)
        if let predecessor = hello.predecessor, !hello.worker.isEmpty,
            predecessor != sender.incarnation
        {
            bury(predecessor, of: hello.worker, at: now, into: &effects)
        }
        for held in hello.held { reclaim(held, by: index, at: now, into: &effects) }
        workers[index].eventWindow = eventWindow
        let welcome = Welcome(
            answers: hello.sentAt,
            lease: configuration.lease,
            beat: configuration.beat,
            eventWindow: workers[index].eventWindow,
            orphanAfter: configuration.orphanAfter,
            acknowledged: workers[index].handled,
            orders: outstandingOrders(of: index, held: hello.held)
        )
        send(.plain(.welcome(welcome)), to: index, into: &effects)
        judgeClaim(of: index, at: now, into: &effects)
    }

    /// The sender's index in `workers`, a new one if necessary; `nil` for a connection that is no
    /// longer its latest.
    private mutating func place(
        of hello: Hello,
        from sender: WorkerIdentity,
        at now: Moment,
        into effects: inout Effects
    ) -> Int? {
        guard let known = workerNumbers[sender.incarnation] else {
            // A worker of an earlier coordinator that still has attempts is known already.
            guard workers.count(where: \.isAlive) < configuration.limits.workers else {
                refuse(sender, .tooManyWorkers, into: &effects)
                return nil
            }
            return add(hello, from: sender, at: now)
        }
        guard sender.connection >= workers[known].identity.connection else {
            refuse(sender, .newIncarnation, into: &effects)
            return nil
        }
        if sender.connection > workers[known].identity.connection { workers[known].sequence = 0 }
        workers[known].identity = sender
        return known
    }

    private mutating func add(
        _ hello: Hello,
        from sender: WorkerIdentity,
        at now: Moment
    ) -> Int {
        var worker = WorkerState(
            identity: sender,
            host: hello.host,
            room: WorkerRoom(slots: Int(hello.slots)),
            queueNames: hello.queues,
            kindNames: hello.kinds,
            leaseEnd: now.monotonic,
            heardAt: now.monotonic,
            workerID: hello.worker
        )
        worker.runsAnyKind = hello.runsAnyKind
        worker.offer = hello.offer
        let index = forgettableWorker() ?? workers.count
        if index == workers.count {
            workers.append(worker)
        } else {
            workerNumbers[workers[index].identity.incarnation] = nil
            workers[index] = worker
        }
        workerNumbers[sender.incarnation] = index
        learnNames(of: index)
        return index
    }

    /// A worker that was known only by its attempts, even if it was given up since, identifies
    /// itself.
    private mutating func introduce(_ worker: Int, _ hello: Hello) {
        workers[worker].isExpected = false
        workers[worker].host = hello.host
        workers[worker].queueNames = hello.queues
        workers[worker].kindNames = hello.kinds
        workers[worker].runsAnyKind = hello.runsAnyKind
        workers[worker].offer = hello.offer
        learnNames(of: worker)
    }

    /// The index of the worker that has been gone for longest, if too many gone workers are
    /// remembered.
    private mutating func forgettableWorker() -> Int? {
        let gone = workers.indices.filter {
            !workers[$0].isWatched && attempts.ownsNone($0)
        }
        guard gone.count >= configuration.goneWorkersMax,
            let oldest = gone.min(by: { workers[$0].heardAt < workers[$1].heardAt })
        else { return nil }
        // This only removes entries, each independently, so their order does not matter.
        for (operation, lost) in lostAttempts where lost.attempt.worker == oldest {
            lostAttempts[operation] = nil
        }
        return oldest
    }

    /// The event window of one worker, chosen so that all windows together stay within their limit.
    /// Workers that were welcomed before keep theirs until their next hello.
    private var eventWindow: UInt32 {
        let alive = max(1, workers.count { $0.isAlive })
        let share = configuration.limits.eventBytes / alive
        return UInt32(clamping: max(1, min(Int(configuration.eventWindow), share)))
    }

    /// Whatever was sent on earlier connections, or before this hello, counts as received: none of
    /// it can still be on its way, because the worker drops what arrives before its welcome.
    private mutating func renumberOwed(of worker: Int) {
        for place in attempts.owned(by: worker).map(\.place) {
            attempts.update(place) {
                $0.sequence = 0
                $0.isAwaited = false
            }
        }
    }
}

// MARK: - Beats

extension Scheduler {
    private mutating func receive(
        _ beat: Beat,
        from worker: Int,
        at now: Moment,
        into effects: inout Effects
    ) {
        learn(isDraining: beat.isDraining, of: worker, into: &effects)
        var resendFrom: UInt64?
        if let claim = workers[worker].claim {
            // An older claim still waits for its events. If no event came since the last beat, they
            // are lost. Beats and events travel separately, so the claim was given one beat of
            // patience.
            if workers[worker].handled == workers[worker].handledAtClaim,
                claim.sent > workers[worker].handled
            {
                resendFrom = workers[worker].handled + 1
            }
        } else {
            workers[worker].claim = Claim(
                received: beat.received,
                sent: beat.sent,
                held: beat.held
            )
        }
        workers[worker].handledAtClaim = workers[worker].handled
        judgeClaim(of: worker, at: now, into: &effects)
        takeBackReadAhead(of: worker)
        workers[worker].receivedAtBeat = beat.received
        order(beat.requests, from: worker, isRepeated: true, into: &effects)
        let orders = outstandingOrders(of: worker, held: beat.held)
        let verdicts = verdicts(on: beat, of: worker, into: &effects)
        send(
            .plain(
                .control(
                    Control(
                        answers: beat.sentAt,
                        acknowledged: workers[worker].handled,
                        resendFrom: resendFrom,
                        orders: orders
                    )
                )
            ),
            verdicts: verdicts,
            to: worker,
            into: &effects
        )
    }

    /// Takes back operations that a worker was given beyond its slots and has not started since the
    /// beat before this one, while other workers that could run them have free slots. The newest
    /// are recalled first. They are taken back because what the worker runs takes longer than
    /// expected. The answer to the beat carries the orders.
    private mutating func takeBackReadAhead(of worker: Int) {
        let state = workers[worker]
        // With a claim pending, started attempts may not be known here yet.
        guard state.room.freeSlots < 0, state.claim == nil, let received = state.receivedAtBeat,
            isConnected, !isLeaving
        else { return }
        var free: [(worker: Int, slots: Int)] = []
        for index in workers.indices where index != worker {
            let other = workers[index]
            guard other.takesWork, isWithinReach(other), other.room.freeSlots > 0
            else { continue }
            free.append((index, other.room.freeSlots))
        }
        guard !free.isEmpty else { return }
        var excess = -state.room.freeSlots
        var candidates: [UInt32] = []
        for (place, attempt) in attempts.owned(by: worker) where !attempt.hasStarted {
            switch attempt.recall {
            case .none: if attempt.sequence <= received { candidates.append(place) }
            case .recall, .cancel: excess -= 1  // On its way out already.
            }
        }
        for place in candidates {
            guard excess > 0, !free.isEmpty else { return }
            guard let attempt = attempts[place] else { continue }
            let demand = demand(of: attempt.operation)
            let needs = demands[demand.demand].needs
            let index = free.firstIndex {
                workers[$0.worker].accepts(demand)
                    && (needs.isEmpty || fits(needs, on: $0.worker))
                    && (reservations.isEmpty || isLet(attempt.operation, demand, to: $0.worker))
            }
            guard let other = index else { continue }
            attempts.update(place) { $0.recall = .recall }
            excess -= 1
            free[other].slots -= 1
            if free[other].slots == 0 { free.remove(at: other) }
        }
    }

    /// Recalls that have no answer yet, and orders to stop whatever the worker holds that is not
    /// its own.
    private func outstandingOrders(of worker: Int, held: [HeldAttempt]) -> [Order] {
        var orders: [Order] = []
        for (_, attempt) in attempts.owned(by: worker) {
            let held = HeldAttempt(attempt: attempt.id, operation: attempt.operation)
            switch attempt.recall {
            case .none: break
            case .recall: if !attempt.hasStarted { orders.append(.recall(held)) }
            case .cancel: orders.append(.cancel(held))
            }
        }
        for held in held
        where attemptPlace(of: held, ownedBy: worker) == nil && !isAwaitedBack(held, of: worker) {
            orders.append(.stop(held))
        }
        if workers[worker].isAskedToDrain, !workers[worker].isDraining,
            configuration.violation != .asksToDrainOnce
        {
            orders.append(.drain)
        }
        return orders
    }

    /// The place of an attempt in the table, if it is in flight.
    func attemptPlace(of held: HeldAttempt) -> UInt32? {
        guard exists(held.operation) else { return nil }
        let place = graphs[attempt: held.operation]
        guard place != AttemptTable.none, attempts[place]?.id == held.attempt
        else { return nil }
        return place
    }

    /// The same, if the attempt belongs to this worker.
    func attemptPlace(of held: HeldAttempt, ownedBy worker: Int) -> UInt32? {
        guard let place = attemptPlace(of: held), attempts[place]?.worker == worker
        else { return nil }
        return place
    }

    /// Compares what a worker reports to hold with what was sent to it, once every event that the
    /// claim names is handled: an attempt that it should have received and does not list was lost
    /// on the way.
    mutating func judgeClaim(
        of worker: Int,
        at now: Moment,
        into effects: inout Effects
    ) {
        guard let claim = workers[worker].claim,
            claim.sent <= workers[worker].handled || configuration.violation == .judgesBeatEarly
        else { return }
        workers[worker].claim = nil
        // What a coordinator that leaves has stopped must not be sent again by it.
        guard configuration.violation != .neverRepeats, !isLeaving else { return }
        let held = claim.held.map(\.attempt).sorted()
        var lost: [UInt32] = []
        for (place, attempt) in attempts.owned(by: worker) {
            if attempt.sequence <= claim.received
                || configuration.violation == .repeatsWhatIsInFlight,
                attempt.recall == .none || configuration.violation == .repeatsRecalled,
                !held.containsSorted(attempt.id)
            {
                lost.append(place)
            }
        }
        // The list is newest first; attempts are dispatched again in their first order.
        for place in lost.reversed() {
            if attempts[place]?.hasStarted == true {
                // The last coordinator had it stopped as it left: a number is started once.
                requeue(place, .returned, at: now, into: &effects)
            } else {
                dispatch(place, into: &effects)
            }
        }
    }
}

extension [AttemptID] {
    /// Binary search.
    fileprivate func containsSorted(_ id: AttemptID) -> Bool {
        var low = 0
        var high = count
        while low < high {
            let middle = (low + high) / 2
            if self[middle] < id { low = middle + 1 } else { high = middle }
        }
        return low < count && self[low] == id
    }
}

// MARK: - Leaving

extension Scheduler {
    mutating func shutDown(kill: Bool, into effects: inout Effects) {
        isLeaving = true
        for index in workers.indices where workers[index].isAlive {
            var orders: [Order] = []
            for (_, attempt) in attempts.owned(by: index) where kill {
                orders.append(.stop(HeldAttempt(attempt: attempt.id, operation: attempt.operation)))
            }
            send(
                .plain(.control(Control(acknowledged: workers[index].handled, orders: orders))),
                to: index,
                into: &effects
            )
        }
    }

    mutating func giveUpUnsendable(
        _ held: HeldAttempt,
        _ error: OperationError,
        at now: Moment,
        into effects: inout Effects
    ) {
        let operation = held.operation
        guard configuration.violation != .keepsUnsendable,
            let place = attemptPlace(of: held)
        else { return }
        _ = removeAttempt(place)
        let end = now.monotonic
        effects.attemptEnded(held.attempt, operation, .failed(error), start: nil, end: end)
        finish(operation, .failed(error), at: now, into: &effects)
    }
}
