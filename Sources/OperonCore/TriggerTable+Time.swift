import HeapModule
package import OperonModel

// Ticks, and when triggers are looked at.
extension TriggerTable {
    mutating func reach(_ now: Moment, into effects: inout Effects) {
        // Taken out first: whatever a trigger wants next, it gets one turn.
        var due: [TriggerID] = []
        while let first = dates.min, first.at <= now.wall {
            _ = dates.popMin()
            guard triggers[first.id]?.looksAt == first.at else { continue }
            triggers[first.id]?.looksAt = nil
            due.append(first.id)
        }
        for id in due { look(at: id, now, into: &effects) }
        var awake: [TriggerID] = []
        while let first = wakes.min, first.at <= now.monotonic {
            _ = wakes.popMin()
            guard triggers[first.id]?.wakesAt == first.at else { continue }
            triggers[first.id]?.wakesAt = nil
            awake.append(first.id)
        }
        for id in awake { settle(id, at: now, into: &effects) }
    }

    /// The clock was set back: ticks that fired before their time do not fire again, but ticks that
    /// were passed over come in their turn.
    mutating func clockWasSetBack(at now: Moment) {
        for id in triggers.keys.sorted() {
            guard let trigger = triggers[id], trigger.state.position > now.wall else { continue }
            triggers[id]?.state.position = max(now.wall, trigger.floor ?? now.wall)
            triggers[id]?.nextTick = nil
            schedule(id)
        }
    }

    /// Ends a suspension whose time is over, fires the ticks that are due, and plans the next look.
    mutating func look(at id: TriggerID, _ now: Moment, into effects: inout Effects) {
        guard let trigger = triggers[id], !trigger.state.isRemoved else { return }
        if let until = trigger.state.suspension?.until, until <= now.wall {
            triggers[id]?.state.suspension = nil
            if let trigger = triggers[id] {
                effects.records.append(.changed(id, trigger.state))
                effects.tell(.triggerResumed, of: trigger, at: now)
            }
            settle(id, at: now, into: &effects)
        }
        if triggers[id]?.state.suspension == nil { tick(id, at: now, into: &effects) }
        schedule(id)
    }

    private mutating func tick(_ id: TriggerID, at now: Moment, into effects: inout Effects) {
        guard let trigger = triggers[id], trigger.definition.source.isTimer else { return }
        let definition = trigger.definition
        let end = definition.policy.until.map { min($0, now.wall) } ?? now.wall
        let position = trigger.state.position
        guard position < end, !trigger.isSpent else { return }
        let due = definition.schedule.ticks(
            after: position,
            through: end,
            last: Limits.triggerMissedMax
        ).filter { number(of: Self.identity(of: $0), by: id) == nil }
        guard let last = due.last else {
            // Whatever was due has fired before the clock was set back.
            triggers[id]?.state.position = end
            triggers[id]?.nextTick = nil
            return
        }
        let isOnTime = now.wall - last <= Limits.triggerLatenessMax + definition.leeway
        var isDecided = false
        switch definition.policy.missed {
        case .skip:
            if isOnTime { isDecided = fire(id, last, count: 1, at: now, into: &effects) }
        case .once: isDecided = fire(id, last, count: due.count, at: now, into: &effects)
        case .all:
            for tick in due where triggers[id]?.isSpent == false {
                isDecided = fire(id, tick, count: 1, at: now, into: &effects)
            }
        }
        triggers[id]?.state.position = last
        triggers[id]?.nextTick = nil
        // Otherwise the firing says how far the ticks are.
        if !isDecided, let state = triggers[id]?.state {
            effects.records.append(.changed(id, state))
        }
    }

    /// The identity of a tick.
    static func identity(of tick: WallTime) -> String { DateText.text(tick) }

    /// Returns whether a firing was added.
    private mutating func fire(
        _ id: TriggerID,
        _ tick: WallTime,
        count: Int,
        at now: Moment,
        into effects: inout Effects
    ) -> Bool {
        var occurrence = Occurrence(identity: Self.identity(of: tick))
        occurrence.plannedAt = tick
        occurrence.count = UInt32(clamping: count)
        let before = triggers[id]?.last
        accept(occurrence, by: id, at: now, into: &effects)
        return triggers[id]?.last != before
    }

    // MARK: - Planning

    /// The latest time at which a trigger is looked at.
    func latestLook(of trigger: Trigger) -> WallTime? {
        if let suspension = trigger.state.suspension { return suspension.until }
        return trigger.nextTick.map { $0 + trigger.definition.leeway }
    }

    /// Removes entries that are out of date before there are many of them, as when a trigger is
    /// suspended and resumed again and again.
    private mutating func trimQueues() {
        let most = 4 * triggers.count + 1_000
        guard dates.count > most || latest.count > most || wakes.count > most else { return }
        // Heaps: the order in which they are filled does not matter.
        dates = Heap(
            triggers.values.compactMap { trigger in
                trigger.looksAt.map { Look(at: $0, id: trigger.definition.id) }
            }
        )
        latest = Heap(
            triggers.values.compactMap { trigger in
                guard trigger.looksAt != nil else { return nil }
                return latestLook(of: trigger).map { Look(at: $0, id: trigger.definition.id) }
            }
        )
        wakes = Heap(
            triggers.values.compactMap { trigger in
                trigger.wakesAt.map { Look(at: $0, id: trigger.definition.id) }
            }
        )
    }

    /// Puts a trigger in its places in the queues.
    mutating func schedule(_ id: TriggerID) {
        trimQueues()
        guard var trigger = triggers[id] else { return }
        triggers[id] = nil
        let looksAt: WallTime?
        if trigger.state.isRemoved {
            looksAt = nil
        } else if let suspension = trigger.state.suspension {
            looksAt = suspension.until
        } else {
            if trigger.nextTick == nil, !trigger.isSpent {
                trigger.nextTick = nextTick(of: trigger)
            }
            if trigger.isSpent { trigger.nextTick = nil }
            looksAt = trigger.nextTick
        }
        if looksAt != trigger.looksAt {
            trigger.looksAt = looksAt
            if let looksAt {
                dates.insert(Look(at: looksAt, id: id))
                if let latest = latestLook(of: trigger) {
                    self.latest.insert(Look(at: latest, id: id))
                }
            }
        }
        let isWaiting = trigger.state.suspension == nil
        let wakes = isWaiting ? [trigger.retryAt, trigger.readyAt].compactMap { $0 }.min() : nil
        if wakes != trigger.wakesAt {
            trigger.wakesAt = wakes
            if let wakes { self.wakes.insert(Look(at: wakes, id: id)) }
        }
        triggers[id] = trigger
    }

    private func nextTick(of trigger: Trigger) -> WallTime? {
        var place = trigger.state.position
        while let next = trigger.definition.schedule.next(after: place) {
            if let until = trigger.definition.policy.until, next > until { return nil }
            // After the clock was set back, ticks that have fired come again.
            if number(of: Self.identity(of: next), by: trigger.definition.id) == nil { return next }
            place = next
        }
        return nil
    }

    /// The next ticks of a trigger, for people.
    package func nextTicks(of id: TriggerID, count: Int, after now: WallTime) -> [WallTime] {
        guard let trigger = triggers[id], !trigger.isSpent else { return [] }
        var ticks: [WallTime] = []
        var place = max(now, trigger.floor ?? now)
        while ticks.count < count, let next = trigger.definition.schedule.next(after: place) {
            if let until = trigger.definition.policy.until, next > until { break }
            if number(of: Self.identity(of: next), by: id) == nil { ticks.append(next) }
            place = next
        }
        return ticks
    }
}
