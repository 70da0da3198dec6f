package import OperonModel

// What people are shown.
extension TriggerTable {
    package enum Status: String, Hashable, Sendable, CaseIterable {
        case active, suspended, ended
    }

    /// A trigger, as the shell shows it.
    package struct Summary: Hashable, Sendable {
        package var id: TriggerID
        package var definition: Definition
        package var stored: StoredTrigger
        package var status: Status
        package var suspension: Suspension?
        package var nextTick: WallTime?
        package var accepted: UInt64
        package var openCount: Int
        /// The newest firing.
        package var last: StoredFiring?
        /// Why the last submission was refused; empty: it was not.
        package var reason: String
    }

    /// One reason why a trigger has not fired, or has fired and submitted nothing.
    package struct Reason: Hashable, Sendable {
        package var code: String
        package var text: String
        package var until: WallTime?
        package var graph: GraphID?
    }

    /// The trigger of this name that was not removed.
    package func id(of name: String) -> TriggerID? { names[name] }

    /// Whether the end of a graph means something to a trigger.
    package func isConcerned(by graph: GraphID, named name: String) -> Bool {
        runs[graph] != nil || listeners[name] != nil
    }

    /// In the order of their names.
    package var allIDs: [TriggerID] { names.keys.sorted().compactMap { names[$0] } }

    package func summary(of id: TriggerID, at now: WallTime) -> Summary? {
        guard let trigger = triggers[id] else { return nil }
        let hasEnded = trigger.hasEnded(at: now) && trigger.open.isEmpty
        let isSuspended = trigger.state.suspension != nil
        return Summary(
            id: id,
            definition: trigger.definition,
            stored: trigger.stored,
            status: hasEnded ? .ended : isSuspended ? .suspended : .active,
            suspension: trigger.state.suspension,
            nextTick: isSuspended ? nil : trigger.nextTick,
            accepted: trigger.accepted,
            openCount: trigger.open.count,
            last: firing(FiringID(id, trigger.last)),
            reason: trigger.open.lazy.compactMap { trigger.firings[$0]?.reason }
                .first { !$0.isEmpty } ?? ""
        )
    }

    /// The newest first.
    package func firings(of id: TriggerID, limit: Int) -> [StoredFiring] {
        guard let trigger = triggers[id] else { return [] }
        var numbers = trigger.open
        if let recent = histories[id]?.recent { numbers += recent }
        if numbers.count < limit, let older = histories[id]?.olderNumbers { numbers += older }
        return numbers.sorted(by: >).prefix(max(0, limit)).compactMap {
            firing(FiringID(id, $0))
        }
    }

    package func firing(_ id: FiringID) -> StoredFiring? {
        triggers[id.trigger]?.firings[id.number] ?? histories[id.trigger]?.rows[id.number]
    }

    /// A time in the zone of a trigger, with its offset from UTC.
    package func localText(of time: WallTime, for id: TriggerID) -> String {
        EventText.localText(time, in: triggers[id]?.definition.schedule.zone ?? .utc)
    }

    /// Whether occurrences may still fire a trigger.
    package func takesOccurrences(_ id: TriggerID, at now: WallTime) -> Bool {
        guard let trigger = triggers[id], !trigger.state.isRemoved else { return false }
        return !trigger.hasEnded(at: now)
    }

    /// Whether the shell is to submit this firing now.
    package func isSubmitting(_ id: FiringID) -> Bool {
        triggers[id.trigger]?.submitting == id.number
    }

    /// Every reason why a trigger does not fire, or submits nothing; empty: it is about to submit.
    package func reasons(of id: TriggerID, at now: Moment) -> [Reason] {
        guard let trigger = triggers[id] else { return [] }
        var reasons: [Reason] = []
        func add(_ code: String, _ text: String, until: WallTime? = nil, graph: GraphID? = nil) {
            reasons.append(Reason(code: code, text: text, until: until, graph: graph))
        }
        let definition = trigger.definition
        if !definition.problem.isEmpty { add("timeZone", definition.problem) }
        if let suspension = trigger.state.suspension {
            let why = suspension.reason.isEmpty ? "" : ": " + suspension.reason
            add("suspended", "It is suspended\(why).", until: suspension.until)
        }
        if let until = definition.policy.until, until <= now.wall {
            add("until", "Its time is over.", until: until)
        }
        if let limit = definition.policy.limit, trigger.accepted >= limit {
            let count = trigger.accepted == 1 ? "once" : "\(trigger.accepted) times"
            let end = trigger.open.isEmpty ? "does not fire any more" : "ends with its last run"
            add("limit", "It has fired \(count), as often as it may, and \(end).")
        }
        for number in trigger.open {
            guard let firing = trigger.firings[number] else { continue }
            explain(firing, of: trigger, at: now, add)
        }
        let last = firing(FiringID(id, trigger.last))
        if last?.status == .skipped {
            let text = "Its last firing was skipped, because a run had not ended."
            add("skipped", text)
        }
        if let last, last.status == .refused {
            add("refused", "Its last firing was given up: \(last.reason)")
        }
        guard reasons.isEmpty || trigger.open.isEmpty else { return reasons }
        switch definition.source {
        case .every, .cron:
            if let next = trigger.nextTick, trigger.state.suspension == nil {
                add("nextTick", "It waits for its next tick.", until: next)
            } else if trigger.nextTick == nil, !trigger.hasEnded(at: now.wall),
                trigger.state.suspension == nil, definition.problem.isEmpty
            {
                add("noTick", "No further time matches.")
            }
        case .event: add("noEvent", "Nobody has fired it since.")
        case .webhook: add("noRequest", "No signed request has come since.")
        case .graph(let source): add("noGraph", "No graph “\(source.name)” has ended since.")
        case .watched: add("noOccurrence", "Nothing has occurred since.")
        }
        return reasons
    }

    private func explain(
        _ firing: StoredFiring,
        of trigger: Trigger,
        at now: Moment,
        _ add: (String, String, WallTime?, GraphID?) -> Void
    ) {
        let number = firing.id.number
        switch firing.status {
        case .waiting:
            guard trigger.state.suspension == nil else {
                return add("waiting", "Firing \(number) waits until it is resumed.", nil, nil)
            }
            if let readyAt = trigger.readyAt {
                let until = now.wall + (readyAt - now.monotonic)
                return add("coalesce", "Firing \(number) collects further events.", until, nil)
            }
            add("overlap", "Firing \(number) waits for the end of the run before it.", nil, nil)
        case .accepted:
            guard !firing.reason.isEmpty else { return }
            let next = trigger.retryAt.map { now.wall + ($0 - now.monotonic) }
            let text = "The graph of firing \(number) was refused: \(firing.reason)"
            add("refused", text, next, nil)
        case .submitted(let graph):
            guard trigger.definition.policy.overlap != .allow else { return }
            add("running", "Graph \(graph), its last run, has not ended.", nil, graph)
        case .merged, .ended, .skipped, .dropped, .refused: return
        }
    }
}
