import HeapModule
import OperonModel

// Which workers are given up, and when. A lease that runs out is only a suspicion. A tick then goes
// through the coordinator's own queues. Silence counts as absence only when the tick is back and
// everything before it is handled. So a false alarm, a backlog or a pause of this process loses no
// lease.
extension Scheduler {
    /// One timer per worker, however often its lease is renewed meanwhile.
    mutating func armLease(of worker: Int) {
        guard !workers[worker].isLeaseArmed else { return }
        workers[worker].isLeaseArmed = true
        arm(.lease(worker: worker), at: workers[worker].leaseEnd)
    }

    mutating func renewLease(of worker: Int, at now: Moment) {
        workers[worker].heardAt = now.monotonic
        workers[worker].isReturned = false
        workers[worker].leaseEnd = now.monotonic + configuration.lease
        workers[worker].successor = nil
    }

    mutating func leaseDue(_ worker: Int, at now: Moment, into effects: inout Effects) {
        workers[worker].isLeaseArmed = false
        // Without a connection no worker can be heard, so none is given up. `transportCameUp`
        // rearms this.
        guard workers[worker].isWatched, isConnected else { return }
        guard workers[worker].leaseEnd <= now.monotonic else {
            armLease(of: worker)
            return
        }
        // If a probe is on its way, another one is sent when it returns, if needed.
        if probe == nil { sendProbe(since: now.monotonic, at: now, into: &effects) }
    }

    private mutating func sendProbe(
        since: Timestamp,
        at now: Moment,
        into effects: inout Effects
    ) {
        probe = Probe(number: nextProbe, sentAt: now.monotonic, since: since)
        effects.ticks.append(nextProbe)
        arm(.probe(nextProbe), at: now.monotonic + configuration.lease)
        nextProbe += 1
    }

    /// Sends the tick again, because it may be lost like any message: in the queue of beats,
    /// messages expire after three beats.
    mutating func probeDue(_ number: UInt64, at now: Moment, into effects: inout Effects) {
        guard let probe, probe.number == number, isConnected else { return }
        sendProbe(since: probe.since, at: now, into: &effects)
    }

    mutating func receive(_ tick: Tick, at now: Moment, into effects: inout Effects) {
        guard var probe, probe.number == tick.number else { return }
        switch tick.way {
        case .events: probe.isBackFromEvents = true
        case .beats: probe.isBackFromBeats = true
        }
        guard probe.isBackFromEvents, probe.isBackFromBeats else {
            self.probe = probe
            return
        }
        self.probe = nil
        if now.monotonic - probe.since > configuration.beat {
            forgiveSilence(at: now)
        } else {
            judgeLeases(behind: probe, at: now, into: &effects)
        }
    }

    /// It was this side that received nothing: each worker gets two beats to be heard in.
    private mutating func forgiveSilence(at now: Moment) {
        for index in workers.indices where workers[index].isWatched {
            workers[index].leaseEnd = max(
                workers[index].leaseEnd,
                now.monotonic + configuration.beat * 2
            )
            armLease(of: index)
        }
    }

    private mutating func judgeLeases(
        behind probe: Probe,
        at now: Moment,
        into effects: inout Effects
    ) {
        var isAnotherNeeded = false
        for index in workers.indices where workers[index].isWatched {
            if workers[index].leaseEnd <= probe.sentAt {
                giveUp(index, at: now, into: &effects)
            } else if workers[index].leaseEnd <= now.monotonic {
                isAnotherNeeded = true
            } else {
                armLease(of: index)
            }
        }
        if isAnotherNeeded { sendProbe(since: now.monotonic, at: now, into: &effects) }
    }

    /// The worker was silent for too long. Attempts that it had not started go to other workers at
    /// once; the coordinator may wait longer for those that ran.
    mutating func giveUp(_ worker: Int, at now: Moment, into effects: inout Effects) {
        workers[worker].isAlive = false
        workers[worker].isExpected = false
        workers[worker].claim = nil
        effects.notices.append(.workerLost(workers[worker].identity))
        for place in places(of: worker) {
            guard let attempt = attempts[place] else { continue }
            let end =
                configuration.violation == .restartsWhatRuns
                ? now.monotonic : patienceEnd(of: attempt)
            if end <= now.monotonic {
                requeue(place, .lost, at: now, into: &effects)
            } else {
                attempts.update(place) { $0.isAwaited = true }
                arm(.patience(place: place, attempt.id), at: end)
            }
        }
    }

    /// A worker is dead if its successor holds the lock of its state directory. So are the
    /// operations that it ran.
    mutating func bury(
        _ incarnation: Incarnation,
        of workerID: String,
        at now: Moment,
        into effects: inout Effects
    ) {
        // The directory of a worker that was not heard in this epoch is not known.
        guard let worker = workerNumbers[incarnation],
            workers[worker].workerID == workerID || workers[worker].isExpected
        else { return }
        if workers[worker].isWatched {
            workers[worker].isAlive = false
            workers[worker].isExpected = false
            workers[worker].claim = nil
            effects.notices.append(.workerLost(workers[worker].identity))
        }
        for place in places(of: worker) { requeue(place, .lost, at: now, into: &effects) }
    }

    /// The attempts of a worker, oldest first.
    private func places(of worker: Int) -> [UInt32] {
        attempts.owned(by: worker).map(\.place).reversed()
    }

    /// When an attempt of a silent worker is lost: after the lease, or after a fraction of its run
    /// time so far if that is longer; but never before its right to its keys has ended.
    private func patienceEnd(of attempt: AttemptState) -> Timestamp {
        let heardAt = workers[attempt.worker].heardAt
        var silence = configuration.lease
        if let startedAt = attempt.startedAt {
            let ran = (heardAt - startedAt).nanoseconds / configuration.patienceDivisor
            silence = max(silence, min(configuration.patienceMax, .nanoseconds(ran)))
        }
        if graphs.rule(of: attempt.operation).isExclusive,
            configuration.violation != .forgetsExclusiveLease
        {
            silence = max(silence, configuration.exclusiveLease)
        }
        return heardAt + silence
    }

    mutating func patienceDue(
        _ place: UInt32,
        _ id: AttemptID,
        at now: Moment,
        into effects: inout Effects
    ) {
        // The timer may be that of an earlier silence, after which the worker came back: that of
        // this one comes later.
        guard let attempt = attempts[place], attempt.id == id, attempt.isAwaited,
            patienceEnd(of: attempt) <= now.monotonic
        else { return }
        // No worker could come back while there was no connection.
        let audible = isConnected ? connectedAt + configuration.lease : .distantFuture
        guard audible <= now.monotonic else {
            let next = isConnected ? audible : now.monotonic + configuration.lease
            arm(.patience(place: place, id), at: next)
            return
        }
        requeue(place, .lost, at: now, into: &effects)
    }
}
