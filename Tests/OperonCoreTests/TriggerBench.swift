import OperonCore
import OperonModel

/// A trigger table, the records that it has made as a store keeps them, and what it asked for.
struct TriggerBench {
    var table = TriggerTable()
    var moment = Moment(
        monotonic: Timestamp(nanoseconds: 1_000_000_000_000),
        wall: WallTime(nanosecondsSince1970: 1_750_000_000_000_000_000)
    )
    var stored: [TriggerID: RestoredTrigger] = [:]
    var definitions: [TriggerID: TriggerTable.Definition] = [:]
    /// What was asked for and not answered yet.
    var submissions: [TriggerTable.Submission] = []
    var cancels: [GraphID] = []
    var answer: TriggerTable.Answer?
    /// What clients were told, such as `triggerSuspended fire by ann: lunch`.
    var told: [String] = []
    var graphs: UInt32 = 0
    var keys: [String: GraphID] = [:]
    private var number: UInt32 = 0

    @discardableResult
    mutating func add(
        _ name: String,
        _ source: FiringSource,
        zone: TimeZoneRules = .utc,
        _ change: (inout TriggerDescription) -> Void = { _ in }
    ) -> TriggerID {
        number += 1
        let id = TriggerID(epoch: Epoch(rawValue: 1), number: number)
        let graph = TriggerGraph(file: "g.yaml", contentType: "application/yaml", text: "")
        var description = TriggerDescription(name: name, source: source, graph: graph)
        change(&description)
        let definition = TriggerTable.Definition(
            id,
            description,
            zone: zone,
            addedAt: moment.wall
        )
        definitions[id] = definition
        let row = StoredTrigger(id: id, name: name, addedAt: moment.wall, body: [])
        handle(.added(definition, row))
        return id
    }

    mutating func handle(_ event: TriggerTable.Event) {
        var effects = TriggerTable.Effects()
        table.handle(event, at: moment, into: &effects)
        for record in effects.records { keep(record) }
        submissions += effects.submissions
        cancels += effects.cancels
        answer = effects.answer
        told += effects.events.map { event in
            var line = "\(event.kind.name) \(event.trigger)"
            if let firing = event.firing { line += "/\(firing)" }
            if !event.by.isEmpty { line += " by \(event.by)" }
            return event.reason.isEmpty ? line : "\(line): \(event.reason)"
        }
    }

    mutating func keep(_ record: TriggerRecord) {
        switch record {
        case .added(let trigger, let state):
            stored[trigger.id] = RestoredTrigger(trigger: trigger, state: state)
        case .replaced(let trigger, let state):
            stored[trigger.id]?.trigger = trigger
            stored[trigger.id]?.state = state
        case .changed(let id, let state): stored[id]?.state = state
        case .removed(let id): stored[id] = nil
        case .firing(let firing):
            guard var row = stored[firing.id.trigger] else { return }
            stored[firing.id.trigger] = nil
            // Nearly always a new one, or one of the last.
            if row.firings.last.map({ $0.id < firing.id }) ?? true {
                row.firings.append(firing)
            } else if let place = row.firings.lastIndex(where: { $0.id == firing.id }) {
                row.firings[place] = firing
            }
            stored[firing.id.trigger] = row
        case .firingForgotten(let id):
            stored[id.trigger]?.firings.removeAll { $0.id == id }
        }
    }

    /// Advances both clocks, and lets the table notice.
    mutating func pass(_ duration: Duration) {
        moment.monotonic = moment.monotonic + duration
        moment.wall = moment.wall + duration
        handle(.timeReached)
    }

    /// Sets the calendar alone.
    mutating func setClock(by duration: Duration) {
        moment.wall = moment.wall + duration
        handle(.timeReached)
    }

    mutating func occur(_ id: TriggerID, _ identity: String, _ data: String = "") {
        handle(.occurred(id, TriggerTable.Occurrence(identity: identity, data: data)))
    }

    /// Submits everything that waits, once for each key; returns the graphs.
    @discardableResult
    mutating func submitAll() -> [GraphID] {
        var made: [GraphID] = []
        while !submissions.isEmpty {
            let next = submissions.removeFirst()
            guard table.isSubmitting(next.firing) else { continue }
            let graph: GraphID
            if let known = keys[next.idempotencyKey] {
                graph = known
            } else {
                graph = GraphID(rawValue: graphs)
                graphs += 1
                keys[next.idempotencyKey] = graph
                made.append(graph)
            }
            handle(.submitted(next.firing, graph))
        }
        return made
    }

    mutating func end(_ graph: GraphID, _ outcome: OutcomeKind = .succeeded) {
        handle(.runEnded(graph, name: "g", round: 0, outcome))
    }

    /// What a restart leaves: the stored records.
    mutating func restart() throws {
        submissions = []
        let rows = stored.keys.sorted().compactMap {
            id -> (RestoredTrigger, TriggerTable.Definition)? in
            guard let row = stored[id], let definition = definitions[id] else { return nil }
            return (row, definition)
        }
        table = try TriggerTable(restoring: rows.map { (row: $0.0, definition: $0.1) })
        handle(.started)
        handle(.timeReached)
    }

    func statuses(_ id: TriggerID) -> [String] {
        table.firings(of: id, limit: 100).reversed().map(\.status.name)
    }
}

extension FiringSource {
    static func every(_ seconds: Int64, leeway: Duration = .zero) -> FiringSource {
        .every(IntervalSource(interval: .seconds(seconds), leeway: leeway))
    }
}
