import OperonCore
import OperonModel

// Whoever completes operations from outside: at any time, twice, too early, too late, or never.
extension Simulator {
    mutating func completeSome() {
        let pause = outside.next() % (isHealed ? 500 : 3_000)
        at(now + .milliseconds(1 + Int64(pause)), .completeSome)
        guard store?.isAlive != false else { return }
        checkTimeouts()
        for held in ledger.openOutside where isHealed || outside.next() % 3 == 0 { complete(held) }
        guard !isHealed else { return }
        if outside.next() % 2 == 0 { completeLate() }
        if outside.next() % 4 == 0 { completeAny() }
    }

    private mutating func someCompletion() -> Completion {
        if outside.fraction() < scenario.failure {
            return .failed(.thrown(type: "Test", message: "", payload: []))
        }
        return outside.next() % 8 == 0 ? .cancelled(reason: "test") : .succeeded(.empty)
    }

    /// What the store has as executing; it may have ended meanwhile.
    private mutating func complete(_ held: HeldAttempt) {
        let attempt = outside.next() % 2 == 0 ? held.attempt : nil
        guard ask(held.operation, attempt, someCompletion()) else { return }
        ledger.met(.outsideCompleted)
        guard outside.next() % 2 == 0 else { return }
        ledger.met(.outsideCompletedAgain)
        // A failure that is tried again is so after a pause.
        if ask(held.operation, attempt, someCompletion()) {
            ledger.broken("\(held.operation) was completed twice")
        }
    }

    /// By an attempt that is over, best of all while another one is executing.
    private mutating func completeLate() {
        let over = ledger.kept.outsideOver
        guard !over.isEmpty else { return }
        let running = over.filter { executing($0.operation) != nil }
        let some = running.isEmpty ? over : running
        let held = some[Int(outside.next() % UInt64(some.count))]
        ledger.met(.outsideCompletedLate)
        if ask(held.operation, held.attempt, someCompletion()) {
            ledger.broken("\(held.operation) was completed by \(held.attempt), which is over")
        }
    }

    /// Whatever it is.
    private mutating func completeAny() {
        let members = ledger.kept.grown.members.keys.sorted()
        guard !members.isEmpty else { return }
        let operation = members[Int(outside.next() % UInt64(members.count))]
        let isExecuting = executing(operation) != nil
        if !isExecuting { ledger.met(.outsideCompletedEarly) }
        if ask(operation, nil, someCompletion()), !isExecuting {
            ledger.broken("\(operation) was completed and was not executing")
        }
    }

    /// Whether it was taken.
    private mutating func ask(
        _ operation: OperationID,
        _ attempt: AttemptID?,
        _ completion: Completion
    ) -> Bool {
        guard isThere(operation) else { return false }
        if let executing = executing(operation) {
            ledger.ended(HeldAttempt(attempt: executing, operation: operation))
        }
        drive(.completionRequested(operation, attempt: attempt, completion))
        return effects.refusals.isEmpty
    }

    /// A coordinator that lost its power, or forgot a graph, knows less than the world.
    private func isThere(_ operation: OperationID) -> Bool {
        scheduler.isKnown(operation) && !scheduler.isGone(operation.graph)
    }

    private func executing(_ operation: OperationID) -> AttemptID? {
        guard isThere(operation), let attempt = scheduler.attempt(of: operation),
            attempt.worker == .nobody
        else { return nil }
        return attempt.id
    }

    /// Nothing waits for somebody longer than it may. What began in an earlier life is over by the
    /// wall clock or, when that was set back, as long after the start of this life as it may take.
    private mutating func checkTimeouts() {
        guard coordinatorIsUp, now - coordinatorUpSince > Self.timeoutSlack,
            now - coordinatorThawedAt > Self.timeoutSlack
        else { return }
        for held in ledger.openOutside {
            guard let timeout = ledger.kept.grown.members[held.operation]?.timeout,
                let start = ledger.kept.outsideSince[held.attempt]
            else { continue }
            let beganEarlier = start.monotonic < coordinatorAliveSince
            let elapsed =
                beganEarlier
                ? max(moment.wall - start.wall, now - coordinatorAliveSince)
                : now - start.monotonic
            // The coordinator looks at the calendar once in a second.
            let mayBeLate = beganEarlier && now - clockSetAt <= Self.timeoutSlack
            guard elapsed > timeout + Self.timeoutSlack, !mayBeLate else { continue }
            ledger.broken("\(held.operation) is executing beyond its timeout")
        }
    }

    /// What a commit that fails again and again may take.
    private static var timeoutSlack: Duration { .seconds(5) }
}

extension SimulatorLedger {
    /// What somebody outside is to complete, as far as it is kept.
    var openOutside: [HeldAttempt] {
        // No lazy view: it would hold a copy of the ledger.
        var held: [HeldAttempt] = []
        for (operation, attempt) in kept.open where kept.granted[attempt] == .nobody {
            held.append(HeldAttempt(attempt: attempt, operation: operation))
        }
        return held.sorted { $0.operation < $1.operation }
    }

    mutating func beganOutside(
        _ operation: OperationID,
        _ attempt: AttemptID,
        by incarnation: Incarnation
    ) {
        let isExternal = kept.grown.members[operation]?.isExternal ?? false
        guard isExternal == (incarnation == .nobody) else {
            return broken("\(operation) was given to whom it is not for")
        }
        if isExternal { kept.outsideSince[attempt] = Moment(monotonic: now, wall: wall) }
    }

    /// Nothing is granted while it pauses.
    mutating func checkPause(_ record: StoreRecord) {
        switch record {
        case .delayed(let operation, let until?), .retryScheduled(let operation, let until):
            // A pause of no length is over with the record.
            let isEmpty = emptyPauses.contains(EmptyPause(operation: operation, until: until))
            kept.pauses[operation] = isEmpty ? nil : until
        case .granted(_, let operation, _, _):
            if kept.pauses[operation] != nil { broken("\(operation) was granted as it pauses") }
        // Before its time only if it waits for something else.
        case .delayed(let operation, nil), .finished(let operation, _), .reopened(let operation):
            kept.pauses[operation] = nil
        case .rangeFinished(let operations, _):
            for operation in operations { kept.pauses[operation] = nil }
        case _: return
        }
    }

    mutating func endedOutside(_ held: HeldAttempt) {
        guard kept.granted[held.attempt] == .nobody else { return }
        kept.outsideOver.append(held)
    }
}
