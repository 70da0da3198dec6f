import HeapModule
package import OperonModel

/// Decides when triggers fire: the next tick, missed ticks, overlap, the merging of events, retries
/// of submissions that were refused, and when a trigger is suspended because of them.
///
/// The coordinator's shell drives it: it reports what occurs and performs the effects. The table
/// does no I/O and knows neither the contents of graphs nor secrets.
///
/// A firing has an identity, and no identity fires a trigger twice: not after a restart, because
/// firings are stored, and not after a clock was set back, because the identity of a tick is its
/// planned time.
package struct TriggerTable: Sendable {
    /// Something that happened.
    package enum Event: Sendable {
        /// The coordinator has started: what was accepted before is submitted again.
        case started
        case added(Definition, StoredTrigger)
        /// A trigger of the same name and number gets another description.
        case replaced(Definition, StoredTrigger)
        case removed(TriggerID)
        /// `nil`: resume it.
        case suspensionRequested(TriggerID, Suspension?)
        case timeReached
        case occurred(TriggerID, Occurrence)
        /// A graph has ended: all its operations have outcomes, and none can be added.
        case runEnded(GraphID, name: String, round: UInt32, OutcomeKind)
        case submitted(FiringID, GraphID)
        case refused(FiringID, reason: String, SubmissionRefusal)
    }

    /// What the table knows of a trigger's description.
    package struct Definition: Hashable, Sendable {
        package var id: TriggerID
        package var name: String
        package var source: FiringSource
        package var schedule: TriggerSchedule
        package var policy: TriggerPolicy
        package var hasLastGraph: Bool
        /// Why the schedule cannot be known, for people; empty: it is known.
        package var problem = ""

        package init(
            _ id: TriggerID,
            _ description: TriggerDescription,
            zone: TimeZoneRules,
            addedAt: WallTime
        ) {
            self.id = id
            name = description.name
            source = description.source
            policy = description.policy
            hasLastGraph = description.onRemove != nil
            switch description.source {
            case .every(let source):
                let start = source.startAt ?? addedAt + source.interval
                schedule = .every(start: start, interval: max(1, source.interval.nanoseconds))
            case .cron(let source):
                schedule = .cron(CronSchedule(source.expression, in: zone), zone)
            case .event, .webhook, .graph, .watched: schedule = .none
            }
        }

        /// How occurrences become one firing; `nil`: they do not.
        package var merge: EventMerge? {
            policy.merge ?? (source.watched == nil ? .replace : nil)
        }

        /// How late a tick may be.
        var leeway: Duration {
            switch source {
            case .every(let source): source.leeway
            case .cron(let source): source.leeway
            case .event, .webhook, .graph, .watched: .zero
            }
        }
    }

    /// Something that fires a trigger.
    package struct Occurrence: Hashable, Sendable {
        package var identity: String
        /// JSON; empty: none.
        package var data: String
        var plannedAt: WallTime?
        var count: UInt32 = 1

        package init(identity: String, data: String = "") {
            self.identity = identity
            self.data = data
        }
    }

    /// What the shell is asked to do, in this order.
    package struct Effects: Sendable {
        /// Stored before anything else is done.
        package var records: [TriggerRecord] = []
        package var submissions: [Submission] = []
        /// Runs that a newer firing replaces.
        package var cancels: [GraphID] = []
        /// The answer to `occurred`.
        package var answer: Answer?
        /// The changes that clients are told of. Who asked for one is in it if the table knows.
        package var events: [ClusterEvent] = []

        package init() {}
    }

    /// A graph that is to be submitted for a firing. The key gives the same graph if it was
    /// submitted before.
    package struct Submission: Hashable, Sendable {
        package let firing: FiringID
        package let name: String
        package let idempotencyKey: String
        /// Whether it is the graph that is submitted when the trigger is removed.
        package let isLast: Bool
        /// What fired the trigger, as JSON.
        package let event: String
    }

    /// What may become of a submission that was refused.
    package enum SubmissionRefusal: Hashable, Sendable {
        /// The coordinator cannot take it now.
        case passing
        /// It may succeed when the trigger, its graph or a file is changed.
        case lasting
        /// What fired the trigger is to blame, and stays what it is.
        case ofEvent
    }

    package enum Answer: Hashable, Sendable {
        case accepted(FiringID)
        /// The same identity has fired the trigger before.
        case again(FiringID)
        case refused(Refusal)
    }

    package enum Refusal: Hashable, Sendable {
        case unknown
        /// Its time or its number of firings is over.
        case ended
        /// The data cannot be merged: a sentence says why.
        case data(String)
        /// Too many firings wait.
        case tooMany
        /// A firing waits, and the source is watched: what occurred waits where it is.
        case busy
    }

    struct Trigger: Sendable {
        var definition: Definition
        var stored: StoredTrigger
        var state: TriggerState
        /// Those that have not ended, by number. Sorted where the order matters.
        var firings: [UInt64: StoredFiring] = [:]
        /// Their numbers, in ascending order.
        var open: [UInt64] = []
        var last: UInt64 = 0
        var accepted: UInt64 = 0
        var floor: WallTime?
        /// The firing that the shell submits now.
        var submitting: UInt64?
        /// No submission before this time.
        var retryAt: Timestamp?
        var tries = 0
        var refusals = 0
        /// Firings that were given up since one was submitted.
        var refused = 0
        /// The waiting firing collects until this time.
        var readyAt: Timestamp?
        /// The times under which it is in the queues.
        var looksAt: WallTime?
        var wakesAt: Timestamp?
        var nextTick: WallTime?

        var waiting: UInt64? { open.first { firings[$0]?.status == .waiting } }
        /// Whether a firing was accepted whose run has not ended.
        var isRunning: Bool { open.contains { firings[$0]?.status != .waiting } }

        func hasEnded(at now: WallTime) -> Bool {
            if let until = definition.policy.until, until <= now { return true }
            return isSpent
        }

        var isSpent: Bool { definition.policy.limit.map { accepted >= $0 } ?? false }
    }

    struct Look<Time: Comparable & Sendable>: Comparable, Sendable {
        let at: Time
        let id: TriggerID

        static func < (left: Self, right: Self) -> Bool {
            left.at == right.at ? left.id < right.id : left.at < right.at
        }
    }

    /// Those that were removed and have still to submit their last graph included. Sorted where the
    /// order matters.
    var triggers: [TriggerID: Trigger] = [:]
    /// As many as there are triggers.
    var histories: [TriggerID: History] = [:]
    /// Those that were not removed.
    var names: [String: TriggerID] = [:]
    /// The firing whose run a graph is.
    var runs: [GraphID: FiringID] = [:]
    /// The triggers that wait for the end of graphs of a name, in ascending order.
    var listeners: [String: [TriggerID]] = [:]
    /// When triggers are to be looked at, and when at the latest. An entry whose time is not that
    /// of its trigger is out of date.
    var dates = Heap<Look<WallTime>>()
    var latest = Heap<Look<WallTime>>()
    var wakes = Heap<Look<Timestamp>>()
    /// The last time of an event.
    var seen: WallTime?

    package init() {}

    /// The number of triggers.
    package var count: Int { triggers.count }

    /// When the table wants `timeReached` on the wall clock; `nil`: never.
    package mutating func nextDate() -> WallTime? {
        while let first = latest.min {
            if let trigger = triggers[first.id], trigger.looksAt != nil,
                latestLook(of: trigger) == first.at
            {
                return first.at
            }
            _ = latest.popMin()
        }
        return nil
    }

    /// When it wants `timeReached` on the monotonic clock; `nil`: never.
    package mutating func nextWake() -> Timestamp? {
        while let first = wakes.min {
            if triggers[first.id]?.wakesAt == first.at { return first.at }
            _ = wakes.popMin()
        }
        return nil
    }

    // MARK: - Events

    package mutating func handle(_ event: Event, at now: Moment, into effects: inout Effects) {
        // The clock may have been ahead when the positions were stored.
        if seen.map({ now.wall < $0 }) ?? true { clockWasSetBack(at: now) }
        seen = now.wall
        switch event {
        case .started:
            for id in triggers.keys.sorted() {
                forgetOldest(of: id, into: &effects)
                settle(id, at: now, into: &effects)
            }
        case .added(let definition, let stored): add(definition, stored, at: now, into: &effects)
        case .replaced(let definition, let stored):
            replace(definition, stored, at: now, into: &effects)
        case .removed(let id): remove(id, at: now, into: &effects)
        case .suspensionRequested(let id, let suspension):
            suspend(id, suspension, at: now, into: &effects)
        case .timeReached: reach(now, into: &effects)
        case .occurred(let id, let occurrence):
            occur(id, occurrence, at: now, into: &effects)
        case .runEnded(let graph, let name, let round, let outcome):
            end(graph, outcome, at: now, into: &effects)
            listen(to: graph, name, round, outcome, at: now, into: &effects)
        case .submitted(let firing, let graph):
            submitted(firing, graph, at: now, into: &effects)
        case .refused(let firing, let reason, let refusal):
            refused(firing, reason, refusal, at: now, into: &effects)
        }
    }

    private mutating func add(
        _ definition: Definition,
        _ stored: StoredTrigger,
        at now: Moment,
        into effects: inout Effects
    ) {
        guard triggers[definition.id] == nil, names[definition.name] == nil else { return }
        let state = TriggerState(position: now.wall)
        // A tick at the very time of the addition counts.
        let trigger = Trigger(definition: definition, stored: stored, state: state)
        effects.records.append(.added(stored, state))
        effects.tell(.triggerAdded, of: trigger, at: now)
        insert(trigger)
        look(at: definition.id, now, into: &effects)
    }

    mutating func insert(_ trigger: Trigger, _ history: History = History()) {
        let definition = trigger.definition
        triggers[definition.id] = trigger
        histories[definition.id] = history
        guard !trigger.state.isRemoved else { return }
        names[definition.name] = definition.id
        listen(definition)
    }

    private mutating func listen(_ definition: Definition) {
        guard case .graph(let source) = definition.source else { return }
        var ids = listeners[source.name] ?? []
        ids.insert(definition.id, at: ids.firstIndex { $0 > definition.id } ?? ids.count)
        listeners[source.name] = ids
    }

    private mutating func stopListening(_ definition: Definition) {
        guard case .graph(let source) = definition.source else { return }
        listeners[source.name]?.removeAll { $0 == definition.id }
        if listeners[source.name]?.isEmpty == true { listeners[source.name] = nil }
    }

    /// Gives a trigger another description. Its firings stay, so nothing that was accepted is lost
    /// and nothing that fired it fires it again.
    private mutating func replace(
        _ definition: Definition,
        _ stored: StoredTrigger,
        at now: Moment,
        into effects: inout Effects
    ) {
        let id = definition.id
        guard let trigger = triggers[id], !trigger.state.isRemoved,
            trigger.definition.name == definition.name
        else { return }
        stopListening(trigger.definition)
        adapt(trigger, to: definition, into: &effects)
        let goesOn = trigger.state.suspension?.by == Self.own
        if goesOn { triggers[id]?.state.suspension = nil }
        if trigger.definition.schedule != definition.schedule {
            // Ticks of another schedule that are over were not missed.
            triggers[id]?.state.position = now.wall
        }
        triggers[id]?.definition = definition
        triggers[id]?.stored = stored
        triggers[id]?.nextTick = nil
        triggers[id]?.readyAt = nil
        // The new graph may be accepted where the old one was not.
        triggers[id]?.retryAt = nil
        triggers[id]?.tries = 0
        triggers[id]?.refusals = 0
        triggers[id]?.refused = 0
        listen(definition)
        if let trigger = triggers[id] {
            effects.records.append(.replaced(stored, trigger.state))
            effects.tell(.triggerReplaced, of: trigger, at: now)
            if goesOn { effects.tell(.triggerResumed, of: trigger, at: now) }
        }
        settle(id, at: now, into: &effects)
        look(at: id, now, into: &effects)
    }

    /// A firing that waits has data as its trigger merged them.
    private mutating func adapt(
        _ trigger: Trigger,
        to definition: Definition,
        into effects: inout Effects
    ) {
        guard let waiting = trigger.waiting, definition.merge != trigger.definition.merge
        else { return }
        change(FiringID(definition.id, waiting), into: &effects) { row in
            if definition.merge == .collect {
                row.data = "[" + (row.data.isEmpty ? "null" : row.data) + "]"
            } else {
                // The next occurrence would replace them.
                row.status = .accepted
            }
        }
    }

    private mutating func remove(_ id: TriggerID, at now: Moment, into effects: inout Effects) {
        guard let trigger = triggers[id], !trigger.state.isRemoved else { return }
        names[trigger.definition.name] = nil
        effects.tell(.triggerRemoved, of: trigger, at: now)
        stopListening(trigger.definition)
        guard trigger.definition.hasLastGraph else { return forget(id, into: &effects) }
        for number in trigger.open where trigger.firings[number]?.status.graph == nil {
            finish(FiringID(id, number), .dropped, into: &effects)
        }
        triggers[id]?.state.isRemoved = true
        triggers[id]?.state.suspension = nil
        triggers[id]?.submitting = nil
        triggers[id]?.retryAt = nil
        triggers[id]?.readyAt = nil
        triggers[id]?.tries = 0
        triggers[id]?.refusals = 0
        triggers[id]?.nextTick = nil
        if let state = triggers[id]?.state { effects.records.append(.changed(id, state)) }
        let occurrence = Occurrence(identity: Self.lastIdentity)
        append(occurrence, .accepted, to: id, at: now, into: &effects)
        settle(id, at: now, into: &effects)
    }

    /// Who suspends a trigger whose firings are refused.
    static let own = "operon"
    /// The identity of the firing that submits the last graph.
    static let lastIdentity = "onRemove"

    /// Removes a trigger and everything that is known of it.
    mutating func forget(_ id: TriggerID, into effects: inout Effects) {
        guard let trigger = triggers.removeValue(forKey: id) else { return }
        histories[id] = nil
        for number in trigger.open {
            if let graph = trigger.firings[number]?.status.graph { runs[graph] = nil }
        }
        effects.records.append(.removed(id))
    }

    private mutating func suspend(
        _ id: TriggerID,
        _ suspension: Suspension?,
        at now: Moment,
        into effects: inout Effects
    ) {
        guard var trigger = triggers[id], !trigger.state.isRemoved,
            trigger.state.suspension != suspension
        else { return }
        trigger.state.suspension = suspension
        triggers[id]?.state = trigger.state
        effects.records.append(.changed(id, trigger.state))
        effects.tell(suspension == nil ? .triggerResumed : .triggerSuspended, of: trigger, at: now)
        if suspension == nil {
            triggers[id]?.retryAt = nil
            triggers[id]?.tries = 0
            triggers[id]?.refusals = 0
            triggers[id]?.refused = 0
        }
        settle(id, at: now, into: &effects)
        look(at: id, now, into: &effects)
    }

    // MARK: - Submissions

    /// Releases the firing that waits, if nothing holds it back any more, and submits the next one.
    mutating func settle(_ id: TriggerID, at now: Moment, into effects: inout Effects) {
        release(id, at: now, into: &effects)
        guard var trigger = triggers[id] else { return }
        defer { schedule(id) }
        if let retryAt = trigger.retryAt {
            guard retryAt <= now.monotonic else { return }
            trigger.retryAt = nil
        }
        triggers[id]?.retryAt = nil
        guard trigger.submitting == nil, trigger.state.suspension == nil,
            let number = trigger.open.first(where: { trigger.firings[$0]?.status == .accepted }),
            let firing = trigger.firings[number]
        else { return }
        triggers[id]?.submitting = number
        effects.submissions.append(
            Submission(
                firing: firing.id,
                name: trigger.definition.name,
                idempotencyKey: firing.id.description,
                isLast: trigger.state.isRemoved,
                event: EventText.text(of: firing, trigger.definition)
            )
        )
    }

    private mutating func release(_ id: TriggerID, at now: Moment, into effects: inout Effects) {
        if triggers[id]?.waiting == nil { triggers[id]?.readyAt = nil }
        guard let trigger = triggers[id], let number = trigger.waiting,
            trigger.state.suspension == nil
        else { return }
        if let readyAt = trigger.readyAt, readyAt > now.monotonic { return }
        triggers[id]?.readyAt = nil
        if trigger.isRunning {
            switch trigger.definition.policy.overlap {
            case .allow: break
            case .skip: return finish(FiringID(id, number), .skipped, into: &effects)
            case .queue: return
            case .cancelRunning: return effects.cancels += runningGraphs(of: trigger)
            }
        }
        change(FiringID(id, number), into: &effects) { $0.status = .accepted }
    }

    private func runningGraphs(of trigger: Trigger) -> [GraphID] {
        trigger.open.compactMap { trigger.firings[$0]?.status.graph }
    }

    private mutating func submitted(
        _ firing: FiringID,
        _ graph: GraphID,
        at now: Moment,
        into effects: inout Effects
    ) {
        let id = firing.trigger
        // benign: the trigger was removed meanwhile.
        guard let trigger = triggers[id], trigger.submitting == firing.number else { return }
        triggers[id]?.submitting = nil
        triggers[id]?.tries = 0
        triggers[id]?.refusals = 0
        triggers[id]?.refused = 0
        change(firing, into: &effects) {
            $0.status = .submitted(graph)
            $0.data = ""
            $0.reason = ""
        }
        guard !trigger.state.isRemoved else { return forget(id, into: &effects) }
        runs[graph] = firing
        settle(id, at: now, into: &effects)
    }

    private mutating func refused(
        _ firing: FiringID,
        _ reason: String,
        _ refusal: SubmissionRefusal,
        at now: Moment,
        into effects: inout Effects
    ) {
        let id = firing.trigger
        guard var trigger = triggers[id], trigger.submitting == firing.number else { return }
        let reason = reason.prefix(bytes: Limits.triggerReasonBytes)
        if trigger.firings[firing.number]?.reason != reason {
            change(firing, into: &effects) { $0.reason = reason }
        }
        trigger = triggers[id] ?? trigger
        trigger.submitting = nil
        trigger.tries += 1
        trigger.refusals += refusal == .passing ? 0 : 1
        trigger.retryAt = now.monotonic + Self.pause(afterTries: trigger.tries)
        triggers[id] = trigger
        guard refusal == .ofEvent || trigger.refusals >= Limits.triggerRefusalsMax else {
            return schedule(id)
        }
        guard !trigger.state.isRemoved else { return forget(id, into: &effects) }
        // Those behind it may have better data.
        finish(firing, .refused, into: &effects)
        triggers[id]?.retryAt = nil
        triggers[id]?.tries = 0
        triggers[id]?.refusals = 0
        // Otherwise whoever can fire the trigger could suspend it for everybody.
        guard refusal != .ofEvent else { return settle(id, at: now, into: &effects) }
        triggers[id]?.refused += 1
        if trigger.refused + 1 >= Limits.triggerRefusedMax, trigger.state.suspension == nil {
            let why = "\(trigger.refused + 1) firings in a row were refused: \(reason)"
            suspend(id, Suspension(by: Self.own, reason: why), at: now, into: &effects)
        }
        settle(id, at: now, into: &effects)
    }

    /// One second after the first try, twice as long after each further one, at most five minutes.
    static func pause(afterTries tries: Int) -> Duration {
        min(.seconds(1 << min(max(tries, 1) - 1, 9)), .seconds(300))
    }

    private mutating func end(
        _ graph: GraphID,
        _ outcome: OutcomeKind,
        at now: Moment,
        into effects: inout Effects
    ) {
        guard let firing = runs.removeValue(forKey: graph) else { return }
        finish(firing, .ended(graph, outcome), into: &effects)
        settle(firing.trigger, at: now, into: &effects)
    }

    private mutating func listen(
        to graph: GraphID,
        _ name: String,
        _ round: UInt32,
        _ outcome: OutcomeKind,
        at now: Moment,
        into effects: inout Effects
    ) {
        for id in listeners[name] ?? [] {
            guard case .graph(let source) = triggers[id]?.definition.source,
                source.outcomes.isEmpty || source.outcomes.contains(outcome)
            else { continue }
            let data = "{\"graph\":\(graph),\"round\":\(round),\"outcome\":\"\(outcome)\"}"
            let occurrence = Occurrence(identity: "\(graph)/\(round)", data: data)
            occur(id, occurrence, at: now, into: &effects)
        }
    }
}
