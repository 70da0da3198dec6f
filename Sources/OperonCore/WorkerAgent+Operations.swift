import HeapModule
import OperonModel

// Accepting, starting, giving back and ending operations.
extension WorkerAgent {
    mutating func take(_ operation: DispatchedOperation, into effects: inout Effects) {
        let attempt = operation.held.attempt
        let isCopy = held[attempt] != nil || finalAttempts.contains(attempt)
        guard !isCopy || configuration.violation == .runsCopies else {
            effects.notices.append(.dispatchIgnored(attempt))
            return
        }
        let arrival = arrivals
        arrivals += 1
        held[attempt] = Holding(operation: operation, arrival: arrival, state: .waiting)
        if drain != .none {
            giveBack(attempt)
            return
        }
        waiting.insert(
            WaitingOperation(
                priority: operation.priority,
                rank: operation.rank,
                arrival: arrival,
                attempt: attempt
            )
        )
    }

    /// Ends an operation that cannot be read: if it were sent again it would be just as unreadable.
    mutating func refuse(
        _ operation: UnreadableOperation,
        at now: Timestamp,
        into effects: inout Effects
    ) {
        let attempt = operation.held.attempt
        guard held[attempt] == nil, !finalAttempts.contains(attempt) else {
            effects.notices.append(.dispatchIgnored(attempt))
            return
        }
        let error = OperationError.undecodable(operation.why)
        record(
            .finished(
                operation.held,
                AttemptResult(end: .failed(error), startedAt: now, endedAt: now)
            )
        )
    }

    /// Starts the most urgent waiting attempts, while there are slots, room for their results, and
    /// an unexpired right to start them.
    mutating func admit(at now: Timestamp, into effects: inout Effects) {
        guard link == .welcomed || configuration.violation == .startsBeforeWelcome else { return }
        startFetched(at: now, into: &effects)
        while runningCount + fetcher.count < configuration.slots,
            retainedBytes <= configuration.limits.retainedBytes,
            let next = waiting.max
        {
            guard let place = held.index(forKey: next.attempt),
                held.values[place].state == .waiting
            else {
                waiting.removeMax()
                continue
            }
            guard mayStart(at: now, into: &effects) else { return }
            // Copied once for all steps of its start: it is large.
            let operation = held.values[place].operation
            guard allocate(for: operation, at: now) else { return }
            waiting.removeMax()
            // It may have just ended for want of resources.
            guard held.index(forKey: next.attempt) != nil else { continue }
            if OutputFetcher.isWanted(by: operation) {
                fetchInputs(of: operation, at: now)
            } else {
                start(operation, at: now, into: &effects)
            }
        }
    }

    /// Gives the most urgent waiting attempt its resources. `false`: there is not enough left, so
    /// nothing starts before it. What the worker could never do ends the attempt.
    private mutating func allocate(for operation: DispatchedOperation, at now: Timestamp) -> Bool {
        guard !operation.resources.isEmpty else { return true }
        let attempt = operation.held.attempt
        let why: String
        if operation.isEnforced, !configuration.offer.enforces {
            why = "its resources are to be enforced, and its worker makes no control groups"
        } else if allocations.give(operation.resources, to: attempt) {
            return true
        } else if allocations.couldEverFit(operation.resources) {
            return false
        } else {
            let asked = ResourceText.text(operation.resources)
            why = "it asks for \(asked), which its worker never has"
        }
        remove(attempt)
        let error = OperationError.undecodable(why)
        record(
            .finished(
                operation.held,
                AttemptResult(end: .failed(error), startedAt: now, endedAt: now)
            )
        )
        return true
    }

    /// Whether the lease allows a start. If not, the waiting attempts are dropped.
    mutating func mayStart(at now: Timestamp, into effects: inout Effects) -> Bool {
        if hasLease(at: now) || configuration.violation == .startsWithoutLease { return true }
        // The coordinator may have given them to other workers by now.
        let dropped = dropWaiting(into: &effects)
        effects.notices.append(.leaseExpired(dropped: dropped))
        sayHello(at: now, into: &effects)
        return false
    }

    /// Whether more than a second of the lease remains. The lease counts from when the last
    /// answered beat was sent, so an attempt that starts now still belongs to this worker, however
    /// slow the connection.
    private func hasLease(at now: Timestamp) -> Bool {
        guard let leaseProof else { return false }
        return now - leaseProof < settings.lease - .seconds(1)
    }

    /// Starts a held attempt.
    mutating func start(
        _ operation: DispatchedOperation,
        at now: Timestamp,
        into effects: inout Effects
    ) {
        let attempt = operation.held.attempt
        guard let place = held.index(forKey: attempt) else { return }
        held.values[place].state = .running
        held.values[place].startedAt = now
        var operation = operation
        runningCount += 1
        if operation.announcesStart {
            reportStart(attempt)
        } else {
            unreportedStarts.append(attempt)
        }
        if operation.exclusiveLease != nil { exclusive.append(attempt) }
        if let allocation = allocations.allocation(of: attempt) {
            operation.allocation = allocation
        }
        effects.starts.append(operation)
    }

    /// When the first right to keys ends, minus a second, because the next holder may start right
    /// after it.
    var exclusiveEnd: Timestamp? {
        guard let leaseProof else { return nil }
        let lease = exclusive.compactMap { held[$0]?.operation.exclusiveLease }.min()
        return lease.map { leaseProof + $0 - .seconds(1) }
    }

    /// Ends, without a grace period, running attempts whose keys another attempt may soon hold,
    /// because the coordinator has not answered for too long.
    mutating func endExclusive(at now: Timestamp, into effects: inout Effects) {
        guard !exclusive.isEmpty, let leaseProof else { return }
        var left: [AttemptID] = []
        for attempt in exclusive {
            guard let holding = held[attempt], let lease = holding.operation.exclusiveLease
            else { continue }
            guard now - leaseProof >= lease - .seconds(1) else {
                left.append(attempt)
                continue
            }
            if holding.end == .report { held[attempt]?.end = .giveBack }
            effects.stops.append(.kill(attempt))
        }
        exclusive = left
    }

    mutating func ended(
        _ attempt: AttemptID,
        _ reported: AttemptResult,
        into effects: inout Effects
    ) {
        guard let place = held.index(forKey: attempt), held.values[place].state != .waiting
        else { return }
        let holding = held.remove(at: place).value
        if holding.state == .yielded { yieldedCount -= 1 } else { runningCount -= 1 }
        release(attempt)
        // A result that could not be sent would block the events after it.
        let result = reported.bounded(by: configuration.limits)
        switch holding.end {
        case .report: record(.finished(holding.operation.held, result))
        case .giveBack:
            // An attempt that ended by itself meanwhile has a result that counts.
            if result.end == .cancelled || result.end == .crashed {
                record(.returned(holding.operation.held))
            } else {
                record(.finished(holding.operation.held, result))
            }
        case .silent: break
        }
    }

    mutating func remove(_ attempt: AttemptID) {
        held[attempt] = nil
        release(attempt)
    }

    /// Frees everything that an attempt has, besides its slot.
    private mutating func release(_ attempt: AttemptID) {
        if !exclusive.isEmpty { exclusive.removeAll { $0 == attempt } }
        fetcher.drop(attempt)
        allocations.release(attempt)
    }

    private mutating func giveBack(_ attempt: AttemptID) {
        guard let holding = held[attempt] else { return }
        remove(attempt)
        record(.returned(holding.operation.held))
    }

    mutating func obey(_ order: Order, at now: Timestamp, into effects: inout Effects) {
        guard configuration.violation != .ignoresRecalls else { return }
        switch order {
        case .recall(let wanted), .cancel(let wanted):
            let attempt = wanted.attempt
            guard let holding = held[attempt] else {
                // Its final event is on its way. Or it never arrived here, and never will.
                if !finalAttempts.contains(attempt) { record(.returned(wanted)) }
                return
            }
            switch holding.state {
            case .waiting: giveBack(attempt)
            case .running, .yielded:
                reportStart(attempt)
                if case .cancel = order { effects.stops.append(.cancel(attempt)) }
            }
        case .stop(let unwanted):
            guard let holding = held[unwanted.attempt] else { return }
            switch holding.state {
            case .waiting: remove(unwanted.attempt)
            case .running, .yielded:
                guard holding.end != .silent else { return }
                // Who stopped it may have left, and the next coordinator must know.
                reportStart(unwanted.attempt)
                held[unwanted.attempt]?.end = .silent
                effects.stops.append(.kill(unwanted.attempt))
            }
        case .drain: startDrain(until: now + configuration.drainTimeout, into: &effects)
        }
    }

    /// Drops everything that has not started, without a report: the next hello does not list it.
    @discardableResult
    mutating func dropWaiting(into effects: inout Effects) -> Int {
        let dropped = heldInOrder.filter { held[$0.attempt]?.state == .waiting }
        for attempt in dropped { remove(attempt.attempt) }
        waiting = Heap()
        return dropped.count
    }

    /// The reign is gone for good: nothing needs its operations and results any more.
    mutating func abandonEverything(into effects: inout Effects) {
        dropWaiting(into: &effects)
        for attempt in heldInOrder {
            held[attempt.attempt]?.end = .silent
            effects.stops.append(.kill(attempt.attempt))
        }
        events.removeAll()
        finalAttempts.removeAll()
        unreportedStarts.removeAll()
        exclusive.removeAll()
        firstEvent = 1
        sentCount = 0
        retainedBytes = 0
        inFlightBytes = 0
        reign = Reign(rawValue: 0)
        epoch = Epoch(rawValue: 0)
        leaseProof = nil
    }
}

// MARK: - Leaving

extension WorkerAgent {
    mutating func startDrain(until deadline: Timestamp, into effects: inout Effects) {
        guard drain == .none else { return }
        drain = .finishing(until: deadline)
        let waiting = heldInOrder.filter { held[$0.attempt]?.state == .waiting }
        for attempt in waiting { giveBack(attempt.attempt) }
        self.waiting = Heap()
        effects.notices.append(.draining(returned: waiting.count, running: busyCount))
        // Reports this at once, so that nothing more is sent here.
        nextBeat = .zero
    }

    /// Ends running attempts without a grace period. They are still given back: operations that a
    /// second signal killed are to run again, and are not to blame.
    mutating func stopNow(at now: Timestamp, into effects: inout Effects) {
        guard drain != .left else { return }
        startDrain(until: .zero, into: &effects)
        for attempt in heldInOrder {
            if held[attempt.attempt]?.end == .report { held[attempt.attempt]?.end = .giveBack }
            effects.stops.append(.kill(attempt.attempt))
        }
        drain = .stopping(until: now + configuration.lastWords)
    }

    mutating func finishDrain(at now: Timestamp, into effects: inout Effects) {
        if case .finishing(let until) = drain, busyCount > 0, until <= now {
            drain = .ending
            for attempt in heldInOrder where held[attempt.attempt]?.end == .report {
                held[attempt.attempt]?.end = .giveBack
                effects.stops.append(.cancel(attempt.attempt))
            }
        }
        switch drain {
        case .none, .left, .stopping: break
        case .finishing, .ending:
            if busyCount == 0 { drain = .leaving(until: now + configuration.farewell) }
        case .leaving: break
        }
        guard hasSaidAll(at: now) else { return }
        drain = .left
        effects.wantsExit = true
    }

    /// Whether it drains or was stopped, and no operation runs any more.
    package var isIdleForGood: Bool {
        switch drain {
        case .none, .finishing, .ending: false
        case .stopping: busyCount == 0
        case .leaving, .left: true
        }
    }

    /// Running attempts, with a slot or without.
    private var busyCount: Int { runningCount + yieldedCount }

    /// Whether nothing remains to be reported, or the coordinator cannot be reached, or the time is
    /// over.
    private func hasSaidAll(at now: Timestamp) -> Bool {
        switch drain {
        case .none, .finishing, .ending, .left: false
        case .leaving(let until): events.isEmpty || until <= now
        case .stopping(let until):
            link != .welcomed || busyCount == 0 && events.isEmpty || until <= now
        }
    }
}
