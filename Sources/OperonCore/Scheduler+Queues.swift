import OperonModel

// Limits and priorities of queues and of operations.
extension Scheduler {
    mutating func setLimit(
        of name: String,
        to maximum: Int?,
        into effects: inout Effects
    ) {
        do throws(Refusal) {
            let settings = QueueSettings(name: name, maxConcurrentOperationCount: maximum)
            try settings.check(configuration.limits)
        } catch {
            effects.refusals.append(.worded(error))
            return
        }
        guard let queue = madeQueue(name, into: &effects) else { return }
        queues[queue].commanded.insert(.limit)
        setLimit(of: queue, to: maximum, into: &effects)
        effects.records.append(.queueLimit(queue: name, maximum: maximum))
        effects.results.append(result(of: .queue(name)))
    }

    mutating func setLimit(
        of queue: Int,
        to maximum: Int?,
        into effects: inout Effects
    ) {
        queues[queue].maximum = maximum
        for place in placesBeyondLimit(of: queue) {
            order(.recall, attemptAt: place, into: &effects)
        }
    }

    /// The places of attempts beyond the limit. Attempts that run stay; those that have not started
    /// make room, the latest first.
    func placesBeyondLimit(of queue: Int) -> ArraySlice<UInt32> {
        guard let maximum = queues[queue].maximum, queues[queue].inFlight > maximum else {
            return []
        }
        var excess = queues[queue].inFlight - maximum
        var recallable: [(id: AttemptID, place: UInt32)] = []
        for place in attempts.places {
            guard let attempt = attempts[place], self.queue(of: attempt) == queue,
                !attempt.hasStarted
            else { continue }
            switch attempt.recall {
            case .none: recallable.append((attempt.id, place))
            case .recall, .cancel: excess -= 1  // On its way out already.
            }
        }
        recallable.sort { $0.id > $1.id }
        return recallable.map(\.place).prefix(max(0, excess))
    }

    mutating func setPriority(
        of operation: OperationID,
        to priority: QueuePriority,
        into effects: inout Effects
    ) {
        guard exists(operation) else {
            effects.refusals.append(unknown(.operation(operation)))
            return
        }
        switch graphs[state: operation] {
        case .executing:
            effects.refusals.append(.alreadyStarted(operation))
        case .finished:
            effects.refusals.append(.alreadyFinished(operation))
        case .pending, .ready, .dispatched:
            effects.records.append(.priority(operation, priority))
            graphs[operation.graph].prioritised.insert(operation.index)
            effects.results.append(result(of: [operation]))
            setLevel(of: operation, to: priority.level)
        }
    }

    private mutating func setLevel(of operation: OperationID, to level: UInt8) {
        guard graphs[level: operation] != level else { return }
        graphs[level: operation] = level
        if graphs[flags: operation].contains(.parked) {
            // Operations that wait for a key are ordered by urgency as well, so it goes to its lane
            // and parks again.
            enqueue(operation)
            return
        }
        guard isEnqueued(operation) else { return }
        // The old entry stays in the heap until it comes up, when its urgency shows that it is out
        // of date.
        leaveLane(operation)
        enqueue(operation)
    }

    /// Waiting operations without a priority of their own follow.
    mutating func setPriority(
        ofQueue name: String,
        to priority: QueuePriority,
        into effects: inout Effects
    ) {
        guard let queue = madeQueue(name, into: &effects) else { return }
        queues[queue].commanded.insert(.priority)
        effects.records.append(.queuePriority(queue: name, priority))
        let followers = setPriority(of: queue, to: priority)
        effects.results.append(result(of: followers))
    }

    /// Sets the level of the operations that follow the queue, and returns those that have not
    /// started. A running operation follows if it comes back, as it would after a restart; a
    /// finished operation follows when it is reopened.
    @discardableResult
    private mutating func setPriority(
        of queue: Int,
        to priority: QueuePriority
    ) -> [OperationID] {
        queues[queue].priority = priority
        let followers = members(of: queue).filter { operation in
            state(of: operation) != .finished && followsQueue(operation)
        }
        for operation in followers { setLevel(of: operation, to: priority.level) }
        return followers.filter { state(of: $0) != .executing }
    }

    /// Whether the operation has the priority of its queue.
    func followsQueue(_ operation: OperationID) -> Bool {
        graphs.policy(of: operation).priority == nil
            && !graphs[operation.graph].prioritised.contains(operation.index)
    }
}

// MARK: - Resetting settings

extension Scheduler {
    /// Gives the queue default settings, which also apply to what waits in it.
    mutating func resetQueue(_ name: String, at now: Moment, into effects: inout Effects) {
        guard let queue = queueNumbers[name] else {
            effects.refusals.append(unknown(.queue(name)))
            return
        }
        queues[queue].commanded = []
        queues[queue].maximum = nil
        queues[queue].bucket = nil
        setSuspended(queue: queue, nil, at: now, into: &effects)
        setPriority(of: queue, to: .normal)
        effects.records.append(.queueReset(name))
        effects.results.append(result(of: .queue(name)))
        forgetIfUnused(queue: queue)
    }

    mutating func resetKey(_ name: String, into effects: inout Effects) {
        guard let key = keyNumbers[name] else {
            let why = "there is no key “\(name)”"
            effects.refusals.append(.worded(.invalid(field: "key", why: why)))
            return
        }
        keys[key].isCommanded = false
        keys[key].bucket = nil
        setLimit(ofKey: key, to: KeyState(name: name).limit)
        effects.records.append(.keyReset(name))
        effects.results.append(result(of: keys[key].holders))
        forgetIfUnused(key: key)
    }
}

// MARK: - Keys

extension Scheduler {
    mutating func setLimit(
        ofKey settings: KeySettings,
        at now: Moment,
        into effects: inout Effects
    ) {
        do throws(Refusal) {
            try settings.check(configuration.limits)
            if keyNumbers[settings.name] == nil {
                let maximum = configuration.limits.keys
                guard keyNumbers.count < maximum else {
                    let value = keyNumbers.count + 1
                    throw .limitExceeded(limit: .keys, value: value, maximum: maximum)
                }
            }
        } catch {
            effects.refusals.append(.worded(error))
            return
        }
        let key = keyNumber(settings.name)
        keys[key].isCommanded = true
        effects.records.append(.keyLimit(settings, byCommand: true))
        setRate(.key(settings.name), settings.rate, byCommand: true, at: now, into: &effects)
        setLimit(ofKey: key, to: settings.limit)
        effects.results.append(result(of: keys[key].holders))
    }

    /// More operations may wait for the key than it had room for: the first of each lane competes.
    private mutating func setLimit(ofKey key: Int, to limit: Int) {
        keys[key].limit = limit
        suspects += keys[key].holders
        offer(key)
    }

    /// Applies the limits of keys in a graph: the latest value counts, but one set by a command
    /// takes precedence.
    mutating func defineKeys(
        of compiled: CompiledGraph,
        at now: Moment,
        into effects: inout Effects
    ) {
        for settings in compiled.keyLimits {
            // A key that nothing has named has room for one holder anyway.
            if keyNumbers[settings.name] == nil, settings == KeySettings(name: settings.name) {
                continue
            }
            let key = keyNumber(settings.name)
            guard !keys[key].isCommanded else { continue }
            if keys[key].limit != settings.limit {
                effects.records.append(.keyLimit(settings, byCommand: false))
            }
            if keys[key].bucket?.rate != settings.rate {
                setRate(
                    .key(settings.name),
                    settings.rate,
                    byCommand: false,
                    at: now,
                    into: &effects
                )
            }
            setLimit(ofKey: key, to: settings.limit)
        }
    }
}

// MARK: - Queues

extension Scheduler {
    /// The queue of this name, which is created if necessary; `nil` if it cannot be: refused.
    mutating func madeQueue(_ name: String, into effects: inout Effects) -> Int? {
        if let queue = queueNumbers[name] { return queue }
        let limits = configuration.limits
        do throws(Refusal) {
            try limits.check(name: name, of: "queue")
        } catch {
            effects.refusals.append(.worded(error))
            return nil
        }
        guard queueNumbers.count < limits.queues else {
            let value = queueNumbers.count + 1
            effects.refusals.append(
                .worded(.limitExceeded(limit: .queues, value: value, maximum: limits.queues))
            )
            return nil
        }
        return makeQueue(name)
    }

    /// Applies the queue settings of a graph: the latest value counts, but one set by a command
    /// takes precedence, and settings that the graph does not give stay as they are.
    mutating func defineQueues(
        of compiled: CompiledGraph,
        at now: Moment,
        into effects: inout Effects
    ) {
        for (place, settings) in compiled.queues.enumerated() {
            guard let queue = queueNumbers[settings.name] else { continue }
            let before = queues[queue].settings
            if place < compiled.definedQueueCount {
                define(queue, settings, at: now, into: &effects)
            }
            // A queue with default settings needs no record: it is created again when something
            // names it.
            guard before != queues[queue].settings else { continue }
            effects.records.append(.queueDefined(queues[queue].settings))
        }
    }

    private mutating func define(
        _ queue: Int,
        _ settings: QueueSettings,
        at now: Moment,
        into effects: inout Effects
    ) {
        if let maximum = settings.maxConcurrentOperationCount,
            !queues[queue].commanded.contains(.limit)
        {
            setLimit(of: queue, to: maximum, into: &effects)
        }
        if settings.priority != .normal, !queues[queue].commanded.contains(.priority) {
            setPriority(of: queue, to: settings.priority)
        }
        if let rate = settings.rate, rate != queues[queue].bucket?.rate,
            !queues[queue].commanded.contains(.rate)
        {
            setRate(.queue(settings.name), rate, byCommand: false, at: now, into: &effects)
        }
        if settings.isSuspended, !queues[queue].commanded.contains(.suspension),
            !queues[queue].isSuspended
        {
            setSuspended(queue: queue, .ofGraphFile, at: now, into: &effects)
        }
    }
}
