import DequeModule
import OperonModel

// Running operations that wait for others. While they wait they have neither a slot nor a place in
// their queue, so they do not take these from the operations that they wait for. They keep their
// keys, and the right to go on before anything new starts.
//
// Waits are not stored. After a restart the coordinator treats waiting operations as running until
// their workers report the waits again, as they do for every open request.
extension Scheduler {
    // MARK: Beginning

    /// Lets a running operation wait. Returns `nil` if it waits now, otherwise the answer.
    mutating func wait(
        _ request: WaitRequest,
        of held: HeldAttempt,
        event: UInt64,
        from worker: Int,
        resolving resolver: inout some RequestResolver,
        into effects: inout Effects
    ) -> Verdict.Content? {
        let operation = held.operation
        if let known = waits[operation] {
            if known.number == request.number {
                // benign: reported again, by a worker that took the answer for lost.
                waits[operation]?.event = event
                return nil
            }
            // Only one wait at a time: the worker has dropped the other one, as its next beat would
            // show.
            endWait(of: operation)
            effects.notices.append(.waitEnded(operation, known.held.attempt, hasRoom: false))
        }
        let awaited: [OperationID]
        do throws(Refusal) {
            awaited = try resolver.awaited(request, of: held)
            for (name, operation) in zip(request.names, awaited) where !isKnown(operation) {
                throw .unknownOperation(name: name, namedBy: "\(held.operation)")
            }
        } catch {
            return .refused(NumberedRefusal.worded(error).cutShort)
        }
        if let refusal = refusal(of: awaited, of: worker) {
            return .refused(.worded(refusal))
        }
        var search = WaitSearch(
            from: awaited.filter { outcomeKind(of: $0) == nil },
            to: operation,
            along: .waits
        )
        let isChecked = configuration.violation != .allowsWaitCycles
        let result = isChecked ? lead(&search) : .none
        if case .path(let path) = result { return .refused(.waitCycle(operation, path)) }
        let outcomes = awaited.map { outcomeKind(of: $0) }
        let wait = WaitState(
            held: held,
            number: request.number,
            event: event,
            awaited: awaited,
            outcomes: outcomes,
            left: outcomes.count { $0 == nil }
        )
        if isOver(wait) { return .ended(outcomes.map { $0 ?? .skipped }) }
        begin(wait, into: &effects)
        // It may wait while the search goes on: a cycle does not end by itself, and is broken when
        // it is found.
        if case .undecided = result { searches.append(search) }
        return nil
    }

    private func isOver(_ wait: WaitState) -> Bool {
        if configuration.violation == .resumesEarly, wait.awaited.count > 1 {
            return wait.left < wait.awaited.count
        }
        return wait.left == 0
    }

    private func refusal(
        of awaited: [OperationID],
        of worker: Int
    ) -> Refusal? {
        let limits = configuration.limits
        if awaited.isEmpty { return .invalid(field: "wait", why: "it names no operation") }
        if awaited.count > limits.awaitedOperations {
            return .limitExceeded(
                limit: .awaitedOperations,
                value: awaited.count,
                maximum: limits.awaitedOperations
            )
        }
        if workers[worker].room.yielded >= limits.yieldedOperations {
            return .limitExceeded(
                limit: .yieldedOperations,
                value: workers[worker].room.yielded + 1,
                maximum: limits.yieldedOperations
            )
        }
        return nil
    }

    private mutating func begin(_ wait: WaitState, into effects: inout Effects) {
        let operation = wait.held.operation
        let place = graphs[attempt: operation]
        guard let attempt = attempts[place] else {
            preconditionFailure("`order` found it there, and nothing was handled since")
        }
        attempts.update(place) { $0.isYielded = true }
        workers[attempt.worker].room.countYielded(1)
        if configuration.violation != .keepsSlotOfWaiting { giveRoom(of: attempt) }
        waits[operation] = wait
        for (place, other) in wait.awaited.enumerated() where wait.outcomes[place] == nil {
            waiters[other, default: []].append(Waiter(operation: operation, place: place))
        }
        effects.notices.append(.yielded(operation, wait.held.attempt))
    }

    // MARK: Going on

    /// An operation has its outcome: operations that waited only for it may go on.
    mutating func tellWaiters(of operation: OperationID, _ outcome: OutcomeKind) {
        guard !waiters.isEmpty, configuration.violation != .forgetsWaiters,
            let told = waiters.removeValue(forKey: operation)
        else { return }
        for waiter in told {
            // Changed in place, because the list of what an operation waits for may be large to
            // copy.
            waits[waiter.operation]?.outcomes[waiter.place] = outcome
            waits[waiter.operation]?.left -= 1
            guard waits[waiter.operation].map({ isOver($0) && !$0.isResuming }) == true else {
                continue
            }
            waits[waiter.operation]?.isResuming = true
            resuming.append(waiter.operation)
            count(1, resuming: waiter.operation)
        }
    }

    private mutating func count(_ change: Int, resuming operation: OperationID) {
        let hasNeeds = !demandClass(of: operation).isBare
        workers[worker(of: operation)].room.countResuming(change, hasNeeds: hasNeeds)
        queues[graphs.queue(of: operation)].countResuming(change)
    }

    private func worker(of operation: OperationID) -> Int {
        let place = graphs[attempt: operation]
        guard let attempt = attempts[place] else {
            preconditionFailure("what waits runs: `removeAttempt` ends its wait")
        }
        return attempt.worker
    }

    /// Called before anything new is admitted. An operation whose worker or queue has no room does
    /// not hold up those after it. Its place is kept for it, and so is its worker's next slot.
    mutating func resumeYielded(into effects: inout Effects) {
        guard !resuming.isEmpty,
            workers.contains(where: { $0.room.resuming > 0 && $0.room.freeSlots > 0 })
        else { return }
        for operation in resuming {
            guard let wait = waits[operation] else { continue }
            let queue = graphs.queue(of: operation)
            let worker = worker(of: operation)
            guard workers[worker].room.freeSlots > 0,
                workers[worker].room.has(demandClass(of: operation).needs),
                queues[queue].hasRoom || configuration.violation == .resumesBeyondLimit
            else { continue }
            let outcomes = wait.outcomes.map { $0 ?? .skipped }
            answerWait(operation, with: .ended(outcomes), hasRoom: true, into: &effects)
        }
    }

    mutating func answerWait(
        _ operation: OperationID,
        with content: Verdict.Content,
        hasRoom: Bool,
        into effects: inout Effects
    ) {
        guard let wait = waits[operation] else { return }
        let worker = worker(of: operation)
        endWait(of: operation)
        effects.notices.append(.waitEnded(operation, wait.held.attempt, hasRoom: hasRoom))
        let verdict = Verdict(number: wait.number, event: wait.event, content: content)
        give(verdict, to: worker, into: &effects)
    }

    // MARK: Ending

    /// Ends a wait: the attempt now runs as others do, or is about to be removed.
    mutating func endWait(ofAttemptAt place: UInt32) {
        guard let attempt = attempts[place], attempt.isYielded else { return }
        endWait(of: attempt.operation)
    }

    private mutating func endWait(of operation: OperationID) {
        let place = graphs[attempt: operation]
        guard let wait = waits.removeValue(forKey: operation), let attempt = attempts[place]
        else { return }
        if !searches.isEmpty { searches.removeAll { $0.end == operation } }
        for awaited in wait.unfinished {
            waiters[awaited]?.removeAll { $0.operation == operation }
            if waiters[awaited]?.isEmpty == true { waiters[awaited] = nil }
        }
        if wait.isResuming {
            resuming.removeAll { $0 == operation }
            count(-1, resuming: operation)
        }
        attempts.update(place) { $0.isYielded = false }
        workers[attempt.worker].room.countYielded(-1)
        if configuration.violation != .keepsSlotOfWaiting {
            takeRoom(of: attempt, isForced: true)
        }
    }

    /// Whether this request is known and waits.
    func isWaiting(_ request: OpenRequest) -> Bool {
        guard let wait = waits[request.held.operation] else { return false }
        return wait.number == request.number && wait.held == request.held
    }

    /// Ends waits that their worker no longer lists: the requester withdrew, and the operation goes
    /// on.
    mutating func dropWaits(
        of worker: Int,
        notIn listed: Set<UInt64>,
        sent: UInt64,
        into effects: inout Effects
    ) {
        guard workers[worker].room.yielded > 0 else { return }
        let dropped = attempts.owned(by: worker).map(\.attempt).filter { attempt in
            guard let wait = waits[attempt.operation] else { return false }
            return wait.event <= sent && !listed.contains(wait.number)
        }
        for attempt in dropped {
            endWait(of: attempt.operation)
            effects.notices.append(.waitEnded(attempt.operation, attempt.id, hasRoom: false))
        }
    }

    // MARK: Explaining

    func reasonsWhileYielded(_ operation: OperationID) -> [Reason] {
        guard let wait = waits[operation] else { return [] }
        let left = wait.unfinished
        guard left.isEmpty else {
            let named = Array(left.prefix(Self.namedInReasonMax))
            return [.awaits(named, more: left.count - named.count)]
        }
        let worker = worker(of: operation)
        if workers[worker].room.freeSlots > 0,
            let shortage = shortage(of: demandClass(of: operation).needs, on: worker)
        {
            return [.resourcesTaken([shortage], more: 0)]
        }
        return [.awaitsSlot(of: workers[worker].identity.incarnation)]
    }

    func violatedInvariantOfWaits() -> String? {
        for (operation, wait) in waits {
            guard attemptPlace(of: wait.held, ownedBy: worker(of: operation)) != nil else {
                return "\(operation) waits for others and does not run"
            }
            guard isOver(wait) == wait.isResuming, wait.left == wait.unfinished.count else {
                return "\(operation) has all it waits for, or wants to go on, or one of both"
            }
            for awaited in wait.unfinished {
                guard waiters[awaited]?.contains(where: { $0.operation == operation }) == true
                else { return "nobody tells \(operation) of the end of \(awaited)" }
            }
        }
        for index in workers.indices {
            let count = resuming.count { worker(of: $0) == index }
            guard count == workers[index].room.resuming else {
                return "worker \(index) counts \(workers[index].room.resuming) that want to go on"
            }
        }
        for index in queues.indices {
            let count = resuming.count { graphs[$0.graph].queue($0.index) == index }
            guard count == queues[index].resuming else {
                return "queue “\(queues[index].name)” keeps \(queues[index].resuming) places"
            }
        }
        guard resuming.allSatisfy({ waits[$0]?.isResuming == true }) else {
            return "something wants to go on that does not wait"
        }
        return nil
    }
}
