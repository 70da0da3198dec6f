import OperonCore
import OperonModel

/// One place in the simulated cluster where workers run, one process after another.
struct SimulatedWorker {
    let slots: Int
    var lives = 0
    var agent: WorkerAgent?
    var effects = WorkerAgent.Effects()
    var connection: UInt32 = 0
    var isUp = false
    var frozenUntil: Timestamp?
    /// What arrived while it was frozen, in order.
    var inbox: [(WorkerAgent.Event, connection: UInt32?)] = []
    var wake: Timestamp?
    /// A welcome arrived since the last hello left.
    var wasWelcomed = false
    /// The connection of the last hello that the coordinator has heard.
    var greetedOn: UInt32?
    var hasGreetedTwice = false
    var running: Set<AttemptID> = []
    /// What attempts were given before their starts.
    var inputs: [AttemptID: [NamedInput]] = [:]
    /// Its last request of a running operation, and those without an answer.
    var lastRequest: UInt64 = 0
    var asked: [UInt64: SimulatedRequest] = [:]
    /// Attempts that wait for others no more though nothing let them go on: they may be one too
    /// many for its slots.
    var crowding: Set<AttemptID> = []
    /// Attempts that were asked to stop, and went on.
    var stopping: Set<AttemptID> = []
    /// When its beats left, by connection: an answer must belong to one of them.
    var beatsSent: [UInt32: [Timestamp: Epoch]] = [:]
    /// Its lives share a state directory: each says that the one before is dead.
    var hasStateDirectory = false
    var predecessor: Incarnation?

    var incarnation: Incarnation? { agent?.configuration.incarnation }
}

// What happens in the simulated cluster, and what each side's effects do to it.
extension Simulator {
    mutating func perform(_ step: Step) {
        if waits(step) { return }
        switch step {
        case .coordinatorUp: connectCoordinator()
        case .coordinatorDown: disconnectCoordinator()
        case .coordinatorWake:
            guard let wake = coordinatorWake, wake <= now else { return }
            coordinatorWake = nil
            drive(.timeReached)
        case .coordinatorLostLink:
            // It may have died before it saw that.
            guard !coordinatorIsUp, store?.isAlive != false else { return }
            drive(.transportDown)
        case .coordinatorFrozen(let end): freezeCoordinator(until: end)
        case .coordinatorDies(let crash): store?.crash = crash
        case .journalDies(let draw, let isPowerCut): planJournalDeath(draw, isPowerCut: isPowerCut)
        case .coordinatorStarted(let generation): startCoordinator(generation: generation)
        case .committed(let generation): committed(generation: generation)
        case .synced(let generation): synced(generation: generation)
        case .brokerDown: crashBroker()
        case .brokerUp: restartBroker()
        case .workerBoot(let index): boot(index)
        case .workerUp(let index, let incarnation): connect(index, incarnation)
        case .workerDown(let index): disconnect(index)
        case .workerKilled(let index): kill(index)
        case .workerFrozen(let index, let until): freeze(index, until: until)
        case .workerDrained(let index, let deadline):
            guard workers[index].agent != nil else { return }
            ledger.met(.workerDrained)
            accept(.drainRequested(deadline: deadline), index)
        case .drainAsked(let index):
            guard coordinatorIsUp, let incarnation = workers[index].incarnation else { return }
            drive(.drainRequested(incarnation))
        case .workerWake(let index, let incarnation): wake(index, incarnation)
        case .ended(let index, let incarnation, let held): end(held, index, incarnation)
        case .asks(let index, let incarnation, let held, let waits):
            asks(held, waits: waits, index, incarnation)
        case .awaits(let index, let incarnation, let held, let names):
            awaits(names, held, index, incarnation)
        case .withdraws(let index, let incarnation, let number):
            withdraws(number, index, incarnation)
        case .poisoned(let index, let incarnation, let held): poison(held, index, incarnation)
        case .inputs(let index, let incarnation, let progress):
            guard workers[index].incarnation == incarnation else { return }
            accept(.inputs(progress), index)
        case .toWorker(let index, let address, let envelope):
            deliver(envelope, to: index, at: address)
        case .toCoordinator(let connection, let envelope):
            guard coordinatorIsUp, connection == coordinatorConnection else { return }
            drive(.workerMessage(envelope))
        case .command(let event): ask(event)
        case .submit: submit()
        case .prune: prune()
        case .shutdown(let kill): shutDown(kill: kill)
        case .leaves(let generation): leave(generation: generation)
        case .unsendable(let held, let generation): failUnsendable(held, generation: generation)
        case .grow: grow()
        case .steer: steer()
        case .completeSome: completeSome()
        case .ghost(let index): haunt(index)
        case .intrudes: intrude()
        case .clockSet(let step): setClock(by: step)
        case .dateLook(let look): lookAtDate(look)
        case .datesChecked: checkDates()
        case .returned(let connection, let address):
            guard coordinatorIsUp, connection == coordinatorConnection else { return }
            drive(.addressReturned(address))
        case .heal: heal()
        }
    }

    private mutating func wake(_ index: Int, _ incarnation: Incarnation) {
        guard workers[index].incarnation == incarnation, let wake = workers[index].wake,
            wake <= now
        else { return }
        if let frozen = workers[index].frozenUntil, frozen > now {
            at(frozen, .workerWake(index, incarnation: incarnation))
            return
        }
        workers[index].wake = nil
        thaw(index)
        drive(index, .timeReached)
    }

    // MARK: The transport

    private mutating func delay() -> Duration {
        .microseconds(100 + Int64(network.next() % UInt64(scenario.delayMax * 1_000)))
    }

    /// In milliseconds.
    mutating func outage(upTo milliseconds: Int64) -> Int64 {
        Int64(network.next() % UInt64(milliseconds * scenario.process.scale))
    }

    mutating func isLost() -> Bool {
        guard !isHealed, scenario.loss > 0, network.fraction() < scenario.loss else { return false }
        ledger.met(.messageLost)
        return true
    }

    /// Order is kept within a lane; a message may vanish, alone or with its connection.
    mutating func arrival(on lane: Lane, lag: Duration = .zero) -> Timestamp {
        let time = max(now + delay() + lag, laneFree[lane] ?? now)
        laneFree[lane] = time
        return time
    }

    mutating func post(
        _ envelope: CoordinatorEnvelope,
        to index: Int,
        connection: UInt32
    ) {
        guard let incarnation = workers[index].incarnation, !isLost() else { return }
        let time = arrival(on: .toWorker(incarnation, connection))
        let address = WorkerAddress(incarnation: incarnation, connection: connection)
        at(time, .toWorker(index, address, envelope))
    }

    private mutating func deliver(
        _ envelope: CoordinatorEnvelope,
        to index: Int,
        at address: WorkerAddress
    ) {
        guard workers[index].isUp, workers[index].incarnation == address.incarnation,
            workers[index].connection == address.connection
        else { return }
        if workers[index].frozenUntil != nil {
            workers[index].inbox.append((.message(envelope), address.connection))
            return
        }
        receive(envelope, index)
    }

    private mutating func receive(_ envelope: CoordinatorEnvelope, _ index: Int) {
        if isHeard(envelope, by: index) {
            switch envelope.body {
            case .welcome(let welcome):
                workers[index].wasWelcomed = true
                for order in welcome.orders { ledger.delivered(order) }
            case .control(let control) where workers[index].wasWelcomed:
                for order in control.orders { ledger.delivered(order) }
            case .control, .dispatch, .resync, .refused, .chunks, .watch: break
            }
        }
        drive(index, .message(envelope))
    }

    /// Of a lower epoch nothing is heard; the first of a higher one is answered by a hello.
    private func isHeard(_ envelope: CoordinatorEnvelope, by index: Int) -> Bool {
        guard let reign = workers[index].agent?.reign, reign == envelope.reign,
            let epoch = workers[index].agent?.epoch
        else { return true }
        return envelope.epoch == epoch
            || envelope.epoch > epoch && workers[index].agent?.isWelcomed == false
    }

    // MARK: Workers

    private mutating func boot(_ index: Int) {
        guard workers[index].agent == nil else { return }
        workers[index].lives += 1
        let incarnation = Incarnation(
            rawValue: UInt64(index + 1) << 32 | UInt64(workers[index].lives)
        )
        var configuration = WorkerAgent.Configuration(
            name: "w\(index)",
            incarnation: incarnation,
            host: "simulated",
            processID: 1,
            slots: workers[index].slots,
            kinds: scenario.kinds(ofWorker: index)
        )
        configuration.queues = scenario.queues(ofWorker: index)
        configuration.violation = scenario.violation
        configuration.offer = scenario.offer(ofWorker: index)
        let count = configuration.offer.resources[ResourceAmount.gpusName] ?? 0
        configuration.gpus = (0..<count).map(String.init)
        if workers[index].hasStateDirectory {
            configuration.workerID = "state\(index)"
            configuration.predecessor = workers[index].predecessor
            if configuration.predecessor != nil { ledger.met(.workerBuried) }
        }
        configuration.limits = Self.smallPieces(configuration.limits)
        workers[index].agent = WorkerAgent(configuration: configuration)
        workers[index].connection = 0
        workers[index].beatsSent = [:]
        at(now + delay(), .workerUp(index, incarnation: incarnation))
    }

    private mutating func connect(_ index: Int, _ incarnation: Incarnation) {
        guard workers[index].incarnation == incarnation, !workers[index].isUp else { return }
        guard brokerIsUp else {
            at(now + .milliseconds(300), .workerUp(index, incarnation: incarnation))
            return
        }
        workers[index].isUp = true
        workers[index].connection += 1
        accept(.linkUp(connection: workers[index].connection), index)
    }

    mutating func disconnect(_ index: Int) {
        guard let incarnation = workers[index].incarnation, workers[index].isUp else { return }
        ledger.met(.workerCut)
        workers[index].isUp = false
        workers[index].inbox.removeAll { $0.connection != nil }
        accept(.linkDown, index)
        // Often at once: what the old connection sent is then still on its way.
        let pause: Int64 = network.next() % 2 == 0 ? 5 : 5_000 * scenario.process.scale
        at(
            now + .milliseconds(Int64(network.next() % UInt64(pause))),
            .workerUp(index, incarnation: incarnation)
        )
    }

    /// Events of its own connection wait while it is frozen, as in the socket of a stopped process.
    private mutating func accept(_ event: WorkerAgent.Event, _ index: Int) {
        if workers[index].frozenUntil != nil {
            workers[index].inbox.append((event, nil))
        } else {
            drive(index, event)
        }
    }

    private mutating func kill(_ index: Int) {
        guard workers[index].agent != nil else { return }
        ledger.met(.workerKilled)
        endProcess(of: index)
        at(now + .milliseconds(outage(upTo: 10_000)), .workerBoot(index))
    }

    private mutating func freeze(_ index: Int, until: Timestamp) {
        guard let incarnation = workers[index].incarnation,
            workers[index].frozenUntil == nil
        else { return }
        ledger.met(.workerFrozen)
        workers[index].frozenUntil = until
        workers[index].wake = until
        at(until, .workerWake(index, incarnation: incarnation))
    }

    private mutating func thaw(_ index: Int) {
        guard workers[index].frozenUntil != nil else { return }
        workers[index].frozenUntil = nil
        let inbox = workers[index].inbox
        workers[index].inbox = []
        for (event, connection) in inbox {
            guard case .message(let envelope) = event else {
                drive(index, event)
                continue
            }
            // What came first may have made it give up its connection.
            guard workers[index].isUp, workers[index].connection == connection else { continue }
            receive(envelope, index)
        }
    }

    mutating func drive(_ index: Int, _ event: WorkerAgent.Event) {
        guard workers[index].agent != nil else { return }
        // Moved: what is copied cannot be filled again in place.
        var effects = WorkerAgent.Effects()
        swap(&effects, &workers[index].effects)
        effects.removeAll()
        workers[index].agent?.handle(event, at: now, into: &effects)
        perform(effects, index)
        if effects.wantsExit {
            leave(index)
        } else {
            swap(&effects, &workers[index].effects)
        }
    }

    /// Whatever it ran ends with it.
    private mutating func endProcess(of index: Int) {
        let old = workers[index]
        for attempt in old.running { ledger.stopped(attempt) }
        workerEndedAt = now
        workers[index] = SimulatedWorker(
            slots: old.slots,
            lives: old.lives,
            hasStateDirectory: old.hasStateDirectory,
            predecessor: old.incarnation
        )
    }

    /// The process ends in good order, and another starts.
    private mutating func leave(_ index: Int) {
        guard workers[index].agent != nil else { return }
        endProcess(of: index)
        at(now + .milliseconds(outage(upTo: 10_000)), .workerBoot(index))
    }

    private mutating func perform(_ effects: WorkerAgent.Effects, _ index: Int) {
        guard let incarnation = workers[index].incarnation else { return }
        for notice in effects.notices {
            if case .dispatchIgnored = notice, workers[index].wasWelcomed,
                !workers[index].hasGreetedTwice
            {
                ledger.copied()
            }
        }
        perform(effects.inputSteps, index, incarnation)
        for operation in effects.starts { start(operation, index, incarnation) }
        for (lane, envelope) in effects.messages {
            switch envelope.body {
            case .hello: workers[index].wasWelcomed = false
            case .beat(let beat):
                workers[index].beatsSent[workers[index].connection, default: [:]][beat.sentAt] =
                    envelope.epoch
            case .events, .log, .progress, .tick, .fetch, .watched: break
            }
            post(envelope, lane, index, incarnation)
        }
        for answer in effects.answers { take(answer, index, incarnation) }
        for stop in effects.stops { self.stop(stop, index, incarnation) }
        if effects.wantsReconnect { disconnect(index) }
        // It may have left meanwhile, with what it was told; whoever came in its place has no wake.
        guard workers[index].incarnation == incarnation else { return }
        if let wake = effects.wakeAt, wake < (workers[index].wake ?? .distantFuture) {
            workers[index].wake = max(wake, now)
            at(max(wake, now), .workerWake(index, incarnation: incarnation))
        }
    }

    private mutating func post(
        _ envelope: WorkerEnvelope,
        _ lane: WorkerAgent.Lane,
        _ index: Int,
        _ incarnation: Incarnation
    ) {
        let connection = workers[index].connection
        // A worker that was frozen may not have seen yet that the connection it speaks on is gone.
        guard workers[index].isUp, envelope.sender.connection == connection, coordinatorIsUp,
            !isLost()
        else { return }
        // Events may queue behind others for longer than a beat. A hello that does so is repeated,
        // and answered twice: copies that are nobody's fault, so not in a fault-free run.
        var lag = Duration.zero
        if scenario.eventLag > 0 {
            let drawn = Duration.milliseconds(Int64(network.next() % UInt64(scenario.eventLag)))
            if case .hello = envelope.body, scenario.isFaultFree {
            } else {
                lag = drawn
                ledger.met(.eventsLate)
            }
        }
        let time =
            switch lane {
            case .beats: arrival(on: .beats(incarnation, connection))
            case .events: arrival(on: .events(incarnation, connection), lag: lag)
            }
        at(time, .toCoordinator(connection: coordinatorConnection, envelope))
    }

    private mutating func start(
        _ operation: DispatchedOperation,
        _ index: Int,
        _ incarnation: Incarnation
    ) {
        let held = operation.held
        ledger.started(
            held,
            by: incarnation,
            wasWelcomed: workers[index].wasWelcomed,
            isInFlight: store?.isAlive == false
                ? ledger.isOpen(held) : scheduler.isInFlight(held.attempt)
        )
        checkInputs(of: held, index)
        checkFitness(of: index, for: held.operation)
        workers[index].running.insert(held.attempt)
        checkSlots(of: index)
        let length = Duration.microseconds(
            1 + Int64(work.next() % UInt64(scenario.durationMax * 1_000))
        )
        if isPoison(held.operation), !operation.isIsolated {
            at(now + length, .poisoned(index, incarnation: incarnation, held))
        } else if planRequests(of: held, lasting: length, index, incarnation) {
            at(now + length, .ended(index, incarnation: incarnation, held))
        }
    }

    func isPoison(_ operation: OperationID) -> Bool {
        scenario.hasPoison && operation.graph.rawValue == 0
            && Int(operation.index) == scenario.operations - 1
    }

    /// It takes its worker with it, if it still runs there.
    private mutating func poison(_ held: HeldAttempt, _ index: Int, _ incarnation: Incarnation) {
        guard workers[index].incarnation == incarnation,
            workers[index].running.contains(held.attempt)
        else { return }
        if let frozen = workers[index].frozenUntil {
            let later = frozen + .microseconds(1)
            at(later, .poisoned(index, incarnation: incarnation, held))
            return
        }
        ledger.met(.workerPoisoned)
        kill(index)
    }

    private mutating func end(_ held: HeldAttempt, _ index: Int, _ incarnation: Incarnation) {
        guard workers[index].incarnation == incarnation,
            workers[index].running.contains(held.attempt)
        else { return }
        if let frozen = workers[index].frozenUntil {
            at(frozen + .microseconds(1), .ended(index, incarnation: incarnation, held))
            return
        }
        workers[index].running.remove(held.attempt)
        ledger.stopped(held.attempt)
        ledger.ended(held)
        if isPoison(held.operation) {
            report(held, .crashed, index)
            return
        }
        if scenario.notYet > 0, !isHealed, outside.fraction() < scenario.notYet {
            ledger.met(.notYet)
            let pause = Duration.milliseconds(Int64(outside.next() % 8_000))
            report(held, .notYet(after: pause), index)
            return
        }
        let fails = work.fraction() < scenario.failure
        report(held, fails ? .failed(.exit(code: 1)) : .succeeded, index)
    }

    private mutating func report(_ held: HeldAttempt, _ end: AttemptEnd, _ index: Int) {
        drive(
            index,
            .ended(held.attempt, AttemptResult(end: end, startedAt: now, endedAt: now))
        )
    }

    /// What is asked to stop does so at once, or goes on to its end; what is killed ends.
    private mutating func stop(
        _ stop: WorkerAgent.Stop,
        _ index: Int,
        _ incarnation: Incarnation
    ) {
        let attempt: AttemptID
        switch stop {
        case .cancel(let id):
            guard work.fraction() < 0.7 else {
                // It goes on to its end; but waits no more.
                workers[index].stopping.insert(id)
                withdrawAll(of: id, index, incarnation)
                return
            }
            attempt = id
        case .kill(let id): attempt = id
        }
        guard workers[index].running.remove(attempt) != nil else { return }
        ledger.stopped(attempt)
        let held = HeldAttempt(
            attempt: attempt,
            operation: OperationID(graph: GraphID(rawValue: 0), index: 0)
        )
        report(held, .cancelled, index)
    }

    /// A word of a coordinator that rules no more, which only now gets through.
    private mutating func haunt(_ index: Int) {
        guard workers[index].isUp else { return }
        let held = HeldAttempt(
            attempt: AttemptID(epoch: Epoch(rawValue: 1), number: network.next() % 1_000),
            operation: OperationID(graph: GraphID(rawValue: 0), index: 0)
        )
        let grant = Scheduler.Grant(held: held, ordinal: 1, priority: .veryHigh, rank: .max)
        var body = CoordinatorMessage.dispatch(
            Dispatch(acknowledged: 0, operations: [operation(grant)])
        )
        if store != nil, network.fraction() < 0.5 {
            // It believes that nothing here is its own any more, and that all was heard.
            let stops = workers[index].running.sorted().map { attempt in
                Order.stop(HeldAttempt(attempt: attempt, operation: held.operation))
            }
            body = .control(Control(acknowledged: .max, orders: stops))
        }
        let envelope = CoordinatorEnvelope(
            reign: scheduler.reign,
            epoch: Epoch(rawValue: 1),
            sequence: UInt64(UInt32.max),
            sender: .none,
            body: body
        )
        ledger.met(.oldCoordinator)
        post(envelope, to: index, connection: workers[index].connection)
    }
}
