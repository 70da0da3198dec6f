import OperonModel

// Rates: how often operations of a queue, or those that hold a key, may start. Every grant takes a
// token, also one that the worker gives back without having started it: a start that nobody can
// rule out counts.
extension Scheduler {
    /// Sets the rate of a queue, by command.
    mutating func setRate(
        ofQueue name: String,
        to rate: StartRate?,
        into effects: inout Effects
    ) {
        do throws(Refusal) {
            try rate?.check("rate of queue “\(name)”")
        } catch {
            effects.refusals.append(.worded(error))
            return
        }
        guard let queue = madeQueue(name, into: &effects) else { return }
        queues[queue].commanded.insert(.rate)
        setRate(.queue(name), rate, byCommand: true, into: &effects)
        effects.results.append(result(of: .queue(name)))
    }

    /// Tokens that were taken stay taken.
    mutating func setRate(
        _ scope: RateScope,
        _ rate: StartRate?,
        byCommand: Bool,
        into effects: inout Effects
    ) {
        let now = lastEventAt
        func changed(_ bucket: StartBucket?) -> StartBucket? {
            rate.map { rate in bucket?.changed(to: rate, at: now) ?? StartBucket(rate) }
        }
        switch scope {
        case .queue(let name):
            guard let queue = queueNumbers[name] else { return }
            queues[queue].bucket = changed(queues[queue].bucket)
        case .key(let name):
            guard let key = keyNumbers[name] else { return }
            keys[key].bucket = changed(keys[key].bucket)
        }
        effects.records.append(.rateSet(scope, rate, byCommand: byCommand))
    }

    /// An operation starts.
    mutating func takeTokens(
        of operation: OperationID,
        at now: Moment,
        into effects: inout Effects
    ) {
        let queue = graphs.queue(of: operation)
        if queues[queue].bucket != nil {
            queues[queue].bucket?.take(at: now.monotonic)
            record(.queue(queues[queue].name), queues[queue].bucket, at: now, into: &effects)
        }
        guard graphs.rule(of: operation).hasKeys else { return }
        for local in graphs.policy(of: operation).keys {
            let key = graphs[operation.graph].keys[Int(local)]
            guard keys[key].bucket != nil else { continue }
            keys[key].bucket?.take(at: now.monotonic)
            record(.key(keys[key].name), keys[key].bucket, at: now, into: &effects)
            if !keys[key].parked.isEmpty { armRate(ofKey: key) }
        }
    }

    private func record(
        _ scope: RateScope,
        _ bucket: StartBucket?,
        at now: Moment,
        into effects: inout Effects
    ) {
        guard let bucket, configuration.violation != .forgetsRates else { return }
        let fullAt = now.wall + (bucket.fullAt - now.monotonic)
        effects.records.append(.rateUsed(scope, fullAt: fullAt))
    }

    /// Wakes the scheduler when a queue with ready operations has a token again.
    mutating func armRate(ofQueue queue: Int) {
        guard ready.count(of: queue) > 0, queues[queue].bucket?.isArmed == false,
            let next = queues[queue].bucket?.nextStart(at: lastEventAt)
        else { return }
        queues[queue].bucket?.isArmed = true
        arm(.rate(.queue(queues[queue].name)), at: next)
    }

    /// The same for a key that operations wait for.
    mutating func armRate(ofKey key: Int) {
        guard keys[key].bucket?.isArmed == false, !keys[key].parked.isEmpty,
            let next = keys[key].bucket?.nextStart(at: lastEventAt)
        else { return }
        keys[key].bucket?.isArmed = true
        arm(.rate(.key(keys[key].name)), at: next)
    }

    /// Operations of the queue are admitted at the end of this event, as after any other.
    mutating func rateDue(_ scope: RateScope) {
        switch scope {
        case .queue(let name):
            // benign: the queue is gone, or has another rate.
            guard let queue = queueNumbers[name] else { return }
            queues[queue].bucket?.isArmed = false
        case .key(let name):
            guard let key = keyNumbers[name] else { return }
            keys[key].bucket?.isArmed = false
            offer(key)
        }
    }

    /// The tokens of an earlier run.
    mutating func restore(_ stored: StoredRate, at now: Moment) {
        guard let rate = stored.rate, configuration.violation != .forgetsRates else { return }
        let bucket =
            stored.fullAt.map { StartBucket(rate, fullAt: $0, at: now) }
            ?? StartBucket(rate)
        switch stored.scope {
        case .queue(let name):
            queues[queueNumbers[name] ?? makeQueue(name)].bucket = bucket
        case .key(let name): keys[keyNumber(name)].bucket = bucket
        }
    }
}
