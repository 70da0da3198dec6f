import HeapModule
package import OperonModel

// Times that operations and graphs wait for, and the clock for each. Leases, timeouts and pauses
// that began since this process started run on the monotonic clock, so setting the wall clock
// neither shortens nor prolongs them. Dates, and pauses that began in a previous run, run on the
// wall clock: the store keeps them as dates, and a monotonic time computed from one would be wrong
// after the first step of the wall clock.
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
        case .rate(let scope): rateDue(scope)
        }
    }

    /// The earliest date that something still waits for. Earlier dates that nothing waits for are
    /// dropped, so that the shell does not watch the wall clock for them.
    mutating func nextDate() -> WallTime? {
        while let next = dates.min {
            if isAwaited(next.kind) { return next.date }
            dates.removeMin()
        }
        return nil
    }

    /// If it starts to wait again, its timer is armed again.
    private func isAwaited(_ kind: Deadline.Kind) -> Bool {
        if isGone(kind) { return false }
        return switch kind {
        case .lease, .probe, .patience, .rate: true
        case .release(let operation): exists(operation) && delay(of: operation) != nil
        case .deadline(let operation): exists(operation) && state(of: operation) != .finished
        case .timeout(let operation, let ordinal): externals[operation]?.ordinal == ordinal
        case .resume(let suspended, let until):
            suspension(of: target(of: suspended))?.until == until
        case .idle(let graph): graphs[graph].idleness?.date != nil
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

    /// Delays a ready operation for this long.
    mutating func pause(_ operation: OperationID, for pause: Duration, at now: Moment) {
        let delay = Delay(recorded: now.wall + pause, time: now.monotonic + pause)
        self.delay(operation, delay, at: now)
    }

    /// Sets a ready operation aside until its delay is over.
    mutating func delay(_ operation: OperationID, _ delay: Delay, at now: Moment) {
        graphs[flags: operation].insert(.delayed)
        graphs[operation.graph].delays[operation.index] = delay
        if let time = delay.time ?? delay.latest { arm(.release(operation), at: time) }
        if let date = delay.date { arm(.release(operation), on: date, at: now) }
    }

    /// The delay of a ready operation; `nil`: it is not delayed.
    func delay(of operation: OperationID) -> Delay? {
        let graph = graphs[operation.graph]
        guard graph.operations.state[operation.index] == .ready,
            graph.operations.flags[operation.index].contains(.delayed)
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
        // A date that has come stays passed: its timer is used up, so after the wall clock is set
        // back nothing would visit the operation again.
        if let time = delay.time, time > now.monotonic, let date = delay.date, date <= now.wall {
            delay.date = nil
            delay.recorded = now.wall + (time - now.monotonic)
            graphs[operation.graph].delays[operation.index] = delay
            effects.records.append(.delayed(operation, until: delay.recorded))
        }
        guard delay.isOver(at: now) else { return }
        effects.records.append(.delayed(operation, until: nil))
        enqueue(operation)
    }

    /// Records keep pauses as dates, and after a crash nothing else is known of them. So when the
    /// wall clock was set since, pauses that go on are recorded again. O(graphs kept) and O(pauses)
    /// for a step of the clock, O(1) for any other event.
    mutating func followCalendar(at now: Moment, into effects: inout Effects) {
        let offset = now.wall - WallTime(nanosecondsSince1970: now.monotonic.nanoseconds)
        guard let known = calendarOffset else {
            calendarOffset = offset
            return
        }
        let drift = offset - known
        guard drift >= Self.driftMax || drift <= .zero - Self.driftMax else { return }
        calendarOffset = offset
        recordRates(at: now, into: &effects)
        for id in graphs.kept where !graphs[id].delays.isEmpty {
            for index in graphs[id].delays.keys.sorted() {
                let operation = OperationID(graph: id, index: index)
                guard let delay = delay(of: operation), let time = delay.time else { continue }
                let end = now.wall + max(.zero, time - now.monotonic)
                let recorded = delay.date.map { max(end, $0) } ?? end
                graphs[id].delays[index]?.recorded = recorded
                effects.records.append(.delayed(operation, until: recorded))
            }
        }
    }

    /// The drift between the two clocks that counts as a step of the wall clock. Time services
    /// correct smaller differences gradually.
    static var driftMax: Duration { .seconds(1) }

    /// How long a pause that began in a previous run can last at most; `nil`: not known.
    func longestPause(of operation: OperationID, _ stored: StoredOperation) -> Duration? {
        let graph = graphs[operation.graph]
        let policy = graph.policy(operation.index)
        // A date may be any time away, and so may the end of a pause that an operation in Swift
        // asks for.
        guard policy.notBefore == nil, !kinds[graph.kind(operation.index)].canKillWorker,
            !stored.comesBack || stored.retries > 0
        else { return nil }
        var longest = policy.delay ?? .zero
        if stored.retries > 0 {
            longest = max(longest, policy.retry.pause(before: Int(stored.retries), randomness: 1))
        }
        return longest
    }
}

/// The delay of a ready operation that has not started yet.
struct Delay: Hashable, Sendable {
    /// Its end, as recorded.
    var recorded: WallTime
    /// The end of a pause that began since this process started.
    var time: Timestamp?
    /// A date that a person gave, or the end of a pause that began in a previous run.
    var date: WallTime?
    /// A pause that began in a previous run is over by then, whatever the wall clock shows.
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
    /// When something is due, on the clock that decides it.
    package enum Due: Hashable, Sendable {
        case time(Timestamp)
        case date(WallTime)
    }
}

/// Something that becomes due on the monotonic clock.
struct Deadline: Comparable, Sendable {
    enum Kind: Sendable {
        case lease(worker: Int)
        case probe(UInt64)
        case patience(place: UInt32, AttemptID)
        case release(OperationID)
        case deadline(OperationID)
        /// The timeout of an external attempt.
        case timeout(OperationID, ordinal: UInt32)
        case resume(Suspended, until: WallTime)
        case idle(GraphID)
        /// A queue or a key has a token again.
        case rate(RateScope)
    }

    enum Suspended: Sendable {
        case operation(OperationID)
        case graph(GraphID)
        case queue(Int)
    }

    let time: Timestamp
    /// Breaks ties: the one armed first is due first.
    let order: UInt64
    let kind: Kind

    static func < (left: Deadline, right: Deadline) -> Bool {
        (left.time, left.order) < (right.time, right.order)
    }

    static func == (left: Deadline, right: Deadline) -> Bool { left.order == right.order }
}

/// Something that becomes due on the wall clock.
struct DateDeadline: Comparable, Sendable {
    let date: WallTime
    /// Breaks ties: the one armed first is due first.
    let order: UInt64
    let kind: Deadline.Kind

    static func < (left: DateDeadline, right: DateDeadline) -> Bool {
        (left.date, left.order) < (right.date, right.order)
    }

    static func == (left: DateDeadline, right: DateDeadline) -> Bool {
        left.order == right.order
    }
}
