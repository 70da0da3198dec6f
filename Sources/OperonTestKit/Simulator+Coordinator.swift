import OperonCore
import OperonModel

// The coordinator of the simulated cluster: what drives it, and what leaves it.
extension Simulator {
    /// Somebody's request, which may come late. After the faults nobody holds anything up.
    mutating func ask(_ event: Scheduler.Event) {
        switch event {
        case .suspensionRequested(_, .some), .queueLimitSet: if isHealed { return }
        case _: break
        }
        drive(event)
    }

    mutating func drive(_ event: Scheduler.Event) {
        guard store?.isAlive != false else {
            // Nobody answers: whoever asks tries again.
            if case .workerMessage = event { return }
            at(now + .milliseconds(200), .command(event))
            return
        }
        // What was moved out cannot be filled again in place.
        effects = Scheduler.Effects()
        if !isHealed { note(event) }
        noteHeard(event)
        let client = someClient(asking: event)
        scheduler.handle(event, by: client, at: moment, resolving: &resolver, into: &effects)
        checkClient(client, asking: event)
        var contents = pieces.contents(of: event, recordedAs: effects.records)
        expect(contents, of: event)
        contents += takeAdditions()
        for case .attemptEnded(let attempt, let operation, .lost) in effects.records {
            checkLoss(of: attempt, operation)
        }
        checkLeaving()
        if let trace {
            for record in effects.records { trace("  \(record)") }
            for notice in effects.notices { trace("  \(notice)") }
        }
        checkDecisions()
        noteNextDate(effects.nextDate)
        if let wake = effects.wakeAt, wake < (coordinatorWake ?? .distantFuture) {
            coordinatorWake = wake
            at(max(wake, now), .coordinatorWake)
        }
        // Moved: a copy counts references to all that it holds. Callers still read some of them.
        var taken = Scheduler.Effects()
        swap(&taken, &effects)
        effects.records = taken.records
        effects.results = taken.results
        effects.refusals = taken.refusals
        keep(taken, contents)
    }

    /// Messages, ticks and answers: whatever leaves the coordinator.
    mutating func perform(_ effects: Scheduler.Effects) {
        send(effects.messages)
        guard coordinatorIsUp else { return }
        for number in effects.ticks { tick(number) }
        answer(effects)
    }

    mutating func send(_ messages: [Scheduler.Message]) {
        for message in messages where coordinatorIsUp {
            if dies(.betweenMessages) { return }
            trace?("  sent to \(message.destination): \(message.body)")
            ledger.record(message)
            watchIntruder(message)
            send(message)
        }
    }

    /// Nobody who lives is given up before he could be heard.
    private mutating func checkLoss(of attempt: AttemptID, _ operation: OperationID) {
        guard let owner = ledger.owner(of: attempt),
            workers.contains(where: { $0.incarnation == owner }),
            now - coordinatorUpSince < scheduler.configuration.lease
        else { return }
        ledger.broken("\(operation) was given up before its owner could be heard")
    }

    /// Through both queues of the coordinator; each may lose it.
    mutating func tick(_ number: UInt64) {
        ledger.met(.ticked)
        for way in [Tick.Way.events, .beats] where !isLost() {
            let envelope = WorkerEnvelope(
                reign: scheduler.reign,
                epoch: scheduler.epoch,
                sequence: 0,
                sender: .none,
                body: .tick(Tick(number: number, way: way))
            )
            at(
                arrival(on: .tick(way)),
                .toCoordinator(connection: coordinatorConnection, envelope)
            )
        }
    }

    /// Counts what somebody asked for.
    private mutating func note(_ event: Scheduler.Event) {
        switch event {
        case .suspensionRequested: ledger.met(.suspended)
        case .cancelRequested: ledger.met(.cancelled)
        case .queueLimitSet: ledger.met(.limitChanged)
        case .priorityRequested: ledger.met(.priorityChanged)
        case .drainRequested: ledger.met(.workerAskedToDrain)
        case .keyLimitSet: ledger.met(.keyLimitChanged)
        case .queueReset: ledger.met(.queueReset)
        case .keyReset: ledger.met(.keyReset)
        // Counted where they are asked for, if they are not refused.
        case .operationsAdded, .graphClosed, .dependencyAdded, .dependencyRemoved,
            .retryRequested, .queuePrioritySet, .queueRateSet, .completionRequested:
            break
        case .graphSubmitted, .graphsForgotten, .workerMessage, .transportUp, .transportDown,
            .addressReturned, .attemptUnsendable, .shutdownRequested, .timeReached:
            break
        }
    }

    private mutating func send(_ message: Scheduler.Message) {
        let body: CoordinatorMessage
        switch message.body {
        case .plain(.control(var control)):
            control.verdicts = message.verdicts.map { verdict in
                verdict.mapRefusal { $0.worded { "\($0.index)" } }
            }
            body = .control(control)
        case .plain(let plain): body = plain
        case .dispatch(let acknowledged, let all):
            let grants = sendable(all)
            // The number of the message is missing: the worker asks for it.
            guard !grants.isEmpty else { return }
            body = .dispatch(
                Dispatch(
                    acknowledged: acknowledged,
                    operations: grants.map { grant in
                        var operation = operation(grant)
                        operation.resources = scheduler.resources(of: grant.held.operation)
                        return operation
                    }
                )
            )
        }
        let envelope = CoordinatorEnvelope(
            reign: scheduler.reign,
            epoch: scheduler.epoch,
            sequence: message.sequence,
            sender: .none,
            body: body
        )
        switch message.destination {
        case .everyWorker:
            for index in workers.indices where workers[index].isUp {
                post(envelope, to: index, connection: workers[index].connection)
            }
        case .worker(let address):
            let index = workers.firstIndex { $0.incarnation == address.incarnation }
            bringBack(address, isUp: index.map { workers[$0].isUp } ?? false)
            guard let index else { return }
            checkAnswer(body, to: index, connection: address.connection)
            post(envelope, to: index, connection: address.connection)
        }
    }

    /// The broker returns what it can give to nobody; but for a connection that is gone and that it
    /// takes for open.
    private mutating func bringBack(_ address: WorkerAddress, isUp: Bool) {
        let isThere =
            isUp
            && workers.contains {
                $0.incarnation == address.incarnation && $0.connection == address.connection
            }
        guard !isThere, returns.fraction() < 0.7 else { return }
        ledger.met(.messageReturned)
        let delay = Duration.microseconds(100 + Int64(returns.next() % 5_000))
        at(now + delay, .returned(connection: coordinatorConnection, address))
    }

    private mutating func checkAnswer(
        _ body: CoordinatorMessage,
        to index: Int,
        connection: UInt32
    ) {
        guard case .control(let control) = body, let answers = control.answers,
            workers[index].beatsSent[connection]?[answers] != scheduler.epoch
        else { return }
        ledger.broken(
            "a beat of another connection or epoch was answered on connection \(connection)"
        )
    }

    func operation(_ grant: Scheduler.Grant) -> DispatchedOperation {
        DispatchedOperation(
            held: grant.held,
            ordinal: grant.ordinal,
            graphName: "simulated",
            name: "\(grant.held.operation.index)",
            queue: "a",
            work: .nothing,
            priority: grant.priority,
            rank: grant.rank,
            timeout: nil,
            qualityOfService: .default,
            inputs: inputs(of: grant.held.operation),
            isIsolated: grant.isIsolated,
            announcesStart: grant.announcesStart,
            exclusiveLease: grant.exclusiveLease
        )
    }

    mutating func connectCoordinator() {
        guard !coordinatorIsUp, store?.isAlive != false else { return }
        guard brokerIsUp else {
            at(now + .milliseconds(500), .coordinatorUp)
            return
        }
        coordinatorIsUp = true
        coordinatorUpSince = now
        coordinatorConnection += 1
        drive(.transportUp)
    }

    mutating func disconnectCoordinator() {
        guard coordinatorIsUp else { return }
        ledger.met(.coordinatorCut)
        coordinatorIsUp = false
        perform(.coordinatorLostLink)
        at(now + .milliseconds(outage(upTo: 13_000)), .coordinatorUp)
    }

    mutating func crashBroker() {
        guard brokerIsUp else { return }
        ledger.met(.brokerCrashed)
        brokerIsUp = false
        disconnectCoordinator()
        for index in workers.indices { disconnect(index) }
        at(now + .milliseconds(outage(upTo: 8_000)), .brokerUp)
    }

    mutating func restartBroker() { brokerIsUp = true }
}
