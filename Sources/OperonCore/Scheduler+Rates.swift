import HeapModule
import OperonModel

// Rates: how often operations of a queue, or those that hold a key, may start. Every grant takes a
// token, also one that the worker gives back without having started it: a start that nobody can
// rule out counts.
extension Scheduler {
    /// Sets the rate of a queue, by command.
    mutating func setRate(
        ofQueue name: String,
        to rate: StartRate?,
        at now: Moment,
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
        setRate(.queue(name), rate, byCommand: true, at: now, into: &effects)
        effects.results.append(result(of: .queue(name)))
    }

    /// As many tokens as before are missing.
    mutating func setRate(
        _ scope: RateScope,
        _ rate: StartRate?,
        byCommand: Bool,
        at now: Moment,
        into effects: inout Effects
    ) {
        func changed(_ bucket: StartBucket?) -> StartBucket? {
            rate.map { bucket?.changed(to: $0, at: now.monotonic) ?? StartBucket($0) }
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
        recordUse(of: scope, at: now, into: &effects)
    }

    /// Records when the bucket is full again, if some tokens are missing: after a start, and after
    /// the rate or the wall clock was set.
    mutating func recordUse(
        of scope: RateScope,
        at now: Moment,
        into effects: inout Effects
    ) {
        let bucket: StartBucket? =
            switch scope {
            case .queue(let name): queueNumbers[name].flatMap { queues[$0].bucket }
            case .key(let name): keyNumbers[name].flatMap { keys[$0].bucket }
            }
        guard let bucket, bucket.fullAt > now.monotonic,
            configuration.violation != .forgetsRates
        else { return }
        let fullAt = now.wall + (bucket.fullAt - now.monotonic)
        effects.records.append(.rateUsed(scope, fullAt: fullAt))
    }

    /// The wall clock was set: what was recorded is wrong by that.
    mutating func recordRates(at now: Moment, into effects: inout Effects) {
        for queue in queues where queue.bucket != nil {
            recordUse(of: .queue(queue.name), at: now, into: &effects)
        }
        for key in keys where key.bucket != nil {
            recordUse(of: .key(key.name), at: now, into: &effects)
        }
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
            recordUse(of: .queue(queues[queue].name), at: now, into: &effects)
        }
        guard graphs.rule(of: operation).hasKeys else { return }
        for local in graphs.policy(of: operation).keys {
            let key = graphs[operation.graph].keys[Int(local)]
            guard keys[key].bucket != nil else { continue }
            keys[key].bucket?.take(at: now.monotonic)
            recordUse(of: .key(keys[key].name), at: now, into: &effects)
            if !keys[key].parked.isEmpty { armRate(ofKey: key) }
        }
    }

    /// Wakes the scheduler when a queue with ready operations has a token again.
    mutating func armRate(ofQueue queue: Int) {
        guard ready.count(of: queue) > 0, queues[queue].bucket?.isArmed == false,
            let next = queues[queue].bucket?.nextStart(at: lastEventAt)
        else { return }
        queues[queue].bucket?.isArmed = true
        arm(.rate(.queue(queues[queue].name)), at: next)
    }

    /// No worker has room, which external operations do not need: nothing but a token may be
    /// missing to start the next one.
    mutating func armRatesOfExternals() {
        for lane in ready.external where !ready[lane].heap.isEmpty {
            armRate(ofQueue: ready[lane].queue)
        }
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
