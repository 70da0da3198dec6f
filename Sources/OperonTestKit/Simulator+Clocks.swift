import OperonCore
import OperonModel

// The two clocks of the simulated coordinator. The wall clock is set forward and back while things
// wait for dates; the monotonic clock goes on.
extension Simulator {
    var moment: Moment {
        Moment(
            monotonic: now,
            wall: WallTime(nanosecondsSince1970: now.nanoseconds) + clockOffset
        )
    }

    /// When somebody sets the clock, and how often it is looked whether dates are kept.
    mutating func planClocks(from start: Timestamp) {
        for _ in 0..<scenario.clockSteps {
            let delay = Duration.milliseconds(Int64(clocks.next() % 59_000))
            let length = Self.steps[Int(clocks.next() % UInt64(Self.steps.count))]
            let isForward = clocks.next() % 2 == 0
            at(start + delay, .clockSet(by: isForward ? length : .zero - length))
        }
        at(start, .datesChecked)
    }

    private static let steps: [Duration] = [.milliseconds(1_500), .seconds(30), .seconds(240)]
    /// What is left of a pause or a date at the end has to pass within `drainBound`.
    private static let offsetMax = Duration.seconds(240)

    mutating func setClock(by step: Duration) {
        let before = clockOffset
        clockOffset = max(.zero - Self.offsetMax, min(Self.offsetMax, clockOffset + step))
        guard clockOffset != before else { return }
        ledger.met(clockOffset > before ? .clockSetForward : .clockSetBack)
        clockSetAt = now
        // The shell looks at the calendar once in a second.
        dateLook += 1
        at(now + .milliseconds(Int64(clocks.next() % 1_000)), .dateLook(dateLook))
    }

    /// Somebody is to look again at the next date that the scheduler named.
    mutating func noteNextDate(_ date: WallTime?) {
        guard date != nextDate else { return }
        nextDate = date
        dateLook += 1
        guard let date else { return }
        at(now + max(.zero, date - moment.wall), .dateLook(dateLook))
    }

    mutating func lookAtDate(_ look: Int) {
        guard look == dateLook, let date = nextDate, store?.isAlive != false else { return }
        if date <= moment.wall {
            nextDate = nil
            drive(.timeReached)
        } else {
            dateLook += 1
            at(now + (date - moment.wall), .dateLook(dateLook))
        }
    }

    // MARK: - What must hold

    /// What was decided in the last event.
    mutating func checkDecisions() {
        for (place, record) in effects.records.enumerated() {
            switch record {
            case .delayed(let operation, let until?), .retryScheduled(let operation, let until):
                notePause(of: operation, until)
            case .delayed(let operation, nil):
                // One that waits for something else again is not let go, even if that has ended.
                switch scheduler.state(of: operation) {
                case .pending, .finished: pauses[operation] = nil
                // What it waited for again has ended in the same step.
                case .ready where isDelayed(operation, after: place): pauses[operation] = nil
                case .ready, .dispatched, .executing:
                    if effects.notices.contains(.ready(operation)) { pauses[operation] = nil }
                    checkRelease(of: operation)
                    released.insert(operation)
                }
            case .granted(_, let operation, let ordinal, let incarnation):
                if ordinal == 1, !released.contains(operation) { checkDate(of: operation) }
                attempted.insert(operation)
                checkReach(of: incarnation, operation)
            case .reopened(let operation): reopenedAt[operation] = now
            case .graphAdded, .operationsAdded, .graphClosed, .started, .resumed, .attemptEnded,
                .finished, .rangeFinished, .deadlinePassed, .cancelled, .suspended, .queueDefined,
                .queueLimit,
                .queuePriority, .priority, .keyLimit, .rateSet, .rateUsed, .queueReset, .keyReset,
                .dependencyAdded,
                .dependencyRemoved, .trigger:
                continue
            }
        }
    }

    private func isDelayed(_ operation: OperationID, after place: Int) -> Bool {
        effects.records.dropFirst(place + 1).contains { record in
            if case .delayed(operation, _?) = record { true } else { false }
        }
    }

    private mutating func notePause(of operation: OperationID, _ until: WallTime) {
        let length = until - moment.wall
        if length <= .zero { ledger.emptyPauses.insert(.init(operation: operation, until: until)) }
        // A date is no pause.
        guard policy(of: operation).notBefore == nil else { return }
        pauses[operation] = SimulatedPause(end: now + length, generation: store?.generation ?? 0)
    }

    /// A pause that this coordinator began lasts as long as was said, even if the wall clock jumps.
    private mutating func checkRelease(of operation: OperationID) {
        checkDate(of: operation)
        guard let pause = pauses.removeValue(forKey: operation),
            pause.generation == store?.generation ?? 0,
            pause.end > now
        else { return }
        ledger.broken("the pause of \(operation) was cut short")
    }

    /// A date that has come is not undone by a clock that is set back.
    private mutating func checkDate(of operation: OperationID) {
        guard let date = policy(of: operation).notBefore, date > latestWall,
            !attempted.contains(operation)
        else { return }
        ledger.broken("\(operation) was let go before its date")
    }

    func policy(of operation: OperationID) -> OperationPolicy {
        scheduler.policy(of: operation)
    }

    /// Nothing is given to a worker that was silent for long, or to whom a message came back.
    private mutating func checkReach(of incarnation: Incarnation, _ operation: OperationID) {
        guard incarnation != .nobody, let heard = heard[incarnation] else { return }
        if now - heard.at > scheduler.configuration.beat * 2 {
            ledger.broken("\(operation) was given to a worker that was silent")
        }
        if heard.isReturned {
            ledger.broken("\(operation) was given to a worker to whom a message came back")
        }
    }

    /// What the coordinator hears, of whom.
    mutating func noteHeard(_ event: Scheduler.Event) {
        latestWall = max(latestWall, moment.wall)
        switch event {
        case .workerMessage(let envelope):
            let sender = envelope.sender
            if case .hello = envelope.body { noteHello(of: sender) }
            let known = heard[sender.incarnation]?.connection ?? 0
            heard[sender.incarnation] = SimulatedHearing(
                at: now,
                connection: max(known, sender.connection)
            )
        case .addressReturned(let address):
            guard heard[address.incarnation]?.connection == address.connection else { return }
            heard[address.incarnation]?.isReturned = true
        case _: return
        }
    }

    /// A hello that a worker sends by itself may cross the call for one. The second one lists
    /// nothing of what the answer to the first brings, which is then sent again.
    private mutating func noteHello(of sender: WorkerIdentity) {
        guard let index = workers.firstIndex(where: { $0.incarnation == sender.incarnation })
        else { return }
        if workers[index].greetedOn == sender.connection { workers[index].hasGreetedTwice = true }
        workers[index].greetedOn = sender.connection
    }

    /// Nothing waits for a date that passed some time ago.
    mutating func checkDates() {
        at(now + .seconds(1), .datesChecked)
        guard store?.isAlive != false, scheduler.graphCount > 0,
            now - clockSetAt > Self.dateSlack, now - coordinatorAliveSince > Self.dateSlack,
            now - coordinatorThawedAt > Self.dateSlack
        else { return }
        let late = moment.wall + (.zero - Self.dateSlack)
        for number in 0..<UInt32(scheduler.graphCount) {
            let graph = GraphID(rawValue: number)
            guard !scheduler.isGone(graph) else { continue }
            for index in 0..<UInt32(scheduler.operationCount(of: graph)) {
                let operation = OperationID(graph: graph, index: index)
                guard scheduler.outcome(of: operation) == nil else { continue }
                if let date = policy(of: operation).deadline, date < late,
                    !scheduler.isPastDeadline(operation),
                    now - (reopenedAt[operation] ?? .zero) > Self.dateSlack
                {
                    ledger.broken("the deadline of \(operation) passed unnoticed")
                }
                for reason in scheduler.explain(operation) {
                    guard let date = Self.date(of: reason), date < late else { continue }
                    ledger.broken("\(operation) waits for a date that has passed: \(reason)")
                }
            }
        }
    }

    /// The shell looks once in a second, and the scheduler may be asked a moment later.
    private static let dateSlack = Duration.seconds(3)

    private static func date(of reason: Scheduler.Reason) -> WallTime? {
        switch reason {
        case .notBefore(.date(let date)), .retryAt(.date(let date)), .notYet(.date(let date)):
            date
        case .operationSuspended(let suspension), .graphSuspended(let suspension),
            .queueSuspended(_, let suspension):
            suspension.until
        case _: nil
        }
    }
}

struct SimulatedPause {
    let end: Timestamp
    /// The run of the coordinator in which it began.
    let generation: Int
}

/// When the coordinator last heard a worker.
struct SimulatedHearing {
    var at: Timestamp
    var connection: UInt32
    /// A message to it came back since.
    var isReturned = false
}
