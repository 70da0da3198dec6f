import HeapModule
package import OperonModel

// What waits for a time, and by which clock. Leases, timeouts and pauses that began in this life
// run on the monotonic clock, so that setting the calendar neither shortens nor prolongs them.
// Dates, and pauses that began in an earlier life, run on the wall clock: the store knows them as
// dates, and a monotonic moment computed from one would be wrong after the first step of the clock.
extension Scheduler {
    mutating func arm(_ kind: Deadline.Kind, at time: Timestamp) {
        deadlines.insert(Deadline(time: time, order: nextDeadlineOrder, kind: kind))
        nextDeadlineOrder += 1
    }

    mutating func arm(_ kind: Deadline.Kind, on date: WallTime, at now: Moment) {
        guard configuration.violation != .keepsDatesAsIntervals else {
            return arm(kind, at: now.monotonic + (date - now.wall))
        }
        dates.insert(DateDeadline(date: date, order: nextDeadlineOrder, kind: kind))
        nextDeadlineOrder += 1
    }

    mutating func timeReached(_ now: Moment, into effects: inout Effects) {
        while let next = deadlines.min, next.time <= now.monotonic {
            deadlines.removeMin()
            if isGone(next.kind) { continue }
            due(next.kind, at: now, into: &effects)
        }
        while let next = dates.min, next.date <= now.wall {
            dates.removeMin()
            if isGone(next.kind) { continue }
            due(next.kind, at: now, into: &effects)
        }
    }

    private mutating func due(
        _ kind: Deadline.Kind,
        at now: Moment,
        into effects: inout Effects
    ) {
        switch kind {
        case .lease(let worker): leaseDue(worker, at: now, into: &effects)
        case .probe(let number): probeDue(number, at: now, into: &effects)
        case .patience(let place, let attempt):
            patienceDue(place, attempt, at: now, into: &effects)
        case .release(let operation): releaseDue(operation, at: now, into: &effects)
        case .deadline(let operation): deadlineDue(operation, at: now, into: &effects)
        case .timeout(let operation, let ordinal):
            timeoutDue(operation, ordinal: ordinal, at: now, into: &effects)
        case .resume(let suspended, let until):
            resumeDue(suspended, until: until, at: now, into: &effects)
        case .idle(let graph): idleDue(graph, at: now, into: &effects)
        }
    }

    /// The earliest date that something still waits for. Dates in front of it that nothing waits
    /// for are dropped, so that nobody watches the calendar for them.
    mutating func nextDate() -> WallTime? {
        while let next = dates.min {
            if isAwaited(next.kind) { return next.date }
            dates.removeMin()
        }
        return nil
    }

    /// What comes to wait again is armed again.
    private func isAwaited(_ kind: Deadline.Kind) -> Bool {
        if isGone(kind) { return false }
        return switch kind {
        case .lease, .probe, .patience: true
        case .release(let operation): exists(operation) && delay(of: operation) != nil
        case .deadline(let operation): exists(operation) && state(of: operation) != .finished
        case .timeout(let operation, let ordinal): externals[operation]?.ordinal == ordinal
        case .resume(let suspended, let until):
            suspension(of: target(of: suspended))?.until == until
        case .idle(let graph): graphs[Int(graph.rawValue)].idleness?.date != nil
        }
    }

    func target(of suspended: Deadline.Suspended) -> Target {
        switch suspended {
        case .operation(let operation): .operation(operation)
        case .graph(let graph): .graph(graph)
        case .queue(let queue): .queue(queues[queue].name)
        }
    }

    // MARK: - Pauses

    /// Sets a ready operation aside for a while.
    mutating func pause(_ operation: OperationID, for pause: Duration, at now: Moment) {
        let delay = Delay(recorded: now.wall + pause, time: now.monotonic + pause)
        self.delay(operation, delay, at: now)
    }

    /// Sets a ready operation aside until its delay is over.
    mutating func delay(_ operation: OperationID, _ delay: Delay, at now: Moment) {
        let graph = Int(operation.graph.rawValue)
        graphs[graph].flags[Int(operation.index)].insert(.delayed)
        graphs[graph].delays[operation.index] = delay
        if let time = delay.time ?? delay.latest { arm(.release(operation), at: time) }
        if let date = delay.date { arm(.release(operation), on: date, at: now) }
    }

    /// What a ready operation waits for; `nil`: it is not delayed.
    func delay(of operation: OperationID) -> Delay? {
        let graph = graphs[Int(operation.graph.rawValue)]
        guard graph.state[Int(operation.index)] == .ready,
            graph.flags[Int(operation.index)].contains(.delayed)
        else { return nil }
        return graph.delays[operation.index]
    }

    mutating func releaseDue(
        _ operation: OperationID,
        at now: Moment,
        into effects: inout Effects
    ) {
        // benign: a timer of an earlier delay.
        guard var delay = delay(of: operation) else { return }
        // A date that has come is not undone: its timer is spent, so after a step back of the
        // calendar nothing would look at the operation again.
        if let time = delay.time, time > now.monotonic, let date = delay.date, date <= now.wall {
            delay.date = nil
            delay.recorded = now.wall + (time - now.monotonic)
            graphs[Int(operation.graph.rawValue)].delays[operation.index] = delay
            effects.records.append(.delayed(operation, until: delay.recorded))
        }
        guard delay.isOver(at: now) else { return }
        effects.records.append(.delayed(operation, until: nil))
        enqueue(operation)
    }

    /// The records tell of pauses as dates. When the wall clock was set since they were written,
    /// those of the pauses that go on are written again: after a death nothing else is known of
    /// them. O(graphs kept) and O(pauses) for a step of the clock, O(1) for any other event.
    mutating func followCalendar(at now: Moment, into effects: inout Effects) {
        let offset = now.wall - WallTime(nanosecondsSince1970: now.monotonic.nanoseconds)
        guard let known = calendarOffset else {
            calendarOffset = offset
            return
        }
        let drift = offset - known
        guard drift >= Self.driftMax || drift <= .zero - Self.driftMax else { return }
        calendarOffset = offset
        for number in graphs.kept where !graphs[number].delays.isEmpty {
            for index in graphs[number].delays.keys.sorted() {
                let graph = GraphID(rawValue: UInt32(number))
                let operation = OperationID(graph: graph, index: index)
                guard let delay = delay(of: operation), let time = delay.time else { continue }
                let end = now.wall + max(.zero, time - now.monotonic)
                let recorded = delay.date.map { max(end, $0) } ?? end
                graphs[number].delays[index]?.recorded = recorded
                effects.records.append(.delayed(operation, until: recorded))
            }
        }
    }

    /// Of the two clocks: what time services correct by steps rather than by degrees is more.
    static var driftMax: Duration { .seconds(1) }

    /// How long a pause that began in an earlier life can last at most; `nil`: that is not known.
    func longestPause(of operation: OperationID, _ stored: StoredOperation) -> Duration? {
        let graph = graphs[Int(operation.graph.rawValue)]
        let policy = graph.policy(operation.index)
        // A date may be as far away as it likes, and so may what an operation in Swift asks for.
        guard policy.notBefore == nil, !kinds[graph.kind(operation.index)].canKillWorker,
            !stored.comesBack || stored.retries > 0
        else { return nil }
        var longest = policy.delay ?? .zero
        if stored.retries > 0 {
            longest = max(longest, policy.retry.pause(before: Int(stored.retries), chance: 1))
        }
        return longest
    }
}

/// What a ready operation that is not started yet waits for.
struct Delay: Hashable, Sendable {
    /// Its end, as the records tell of it.
    var recorded: WallTime
    /// The end of a pause that began in this life.
    var time: Timestamp?
    /// A date that a person wrote, or the end of a pause that began in an earlier life.
    var date: WallTime?
    /// A pause that began in an earlier life is over by then, whatever the wall clock says.
    var latest: Timestamp?

    func isOver(at now: Moment) -> Bool {
        if let latest, latest <= now.monotonic { return true }
        if let time, time > now.monotonic { return false }
        if let date, date > now.wall { return false }
        return true
    }

    var due: Scheduler.Due {
        guard date == nil, let time else { return .date(recorded) }
        return .time(time)
    }
}

extension Scheduler {
    /// When something is due, by the clock that decides it.
    package enum Due: Hashable, Sendable {
        case time(Timestamp)
        case date(WallTime)
    }
}

/// Something that becomes due by the monotonic clock.
struct Deadline: Comparable, Sendable {
    enum Kind: Sendable {
        case lease(worker: Int)
        case probe(UInt64)
        case patience(place: UInt32, AttemptID)
        case release(OperationID)
        case deadline(OperationID)
        /// Of an attempt that no worker has.
        case timeout(OperationID, ordinal: UInt32)
        case resume(Suspended, until: WallTime)
        case idle(GraphID)
    }

    enum Suspended: Sendable {
        case operation(OperationID)
        case graph(GraphID)
        case queue(Int)
    }

    let time: Timestamp
    /// Breaks ties: first armed, first due.
    let order: UInt64
    let kind: Kind

    static func < (left: Deadline, right: Deadline) -> Bool {
        (left.time, left.order) < (right.time, right.order)
    }

    static func == (left: Deadline, right: Deadline) -> Bool { left.order == right.order }
}

/// Something that becomes due by the wall clock.
struct DateDeadline: Comparable, Sendable {
    let date: WallTime
    /// Breaks ties: first armed, first due.
    let order: UInt64
    let kind: Deadline.Kind

    static func < (left: DateDeadline, right: DateDeadline) -> Bool {
        (left.date, left.order) < (right.date, right.order)
    }

    static func == (left: DateDeadline, right: DateDeadline) -> Bool {
        left.order == right.order
    }
}
