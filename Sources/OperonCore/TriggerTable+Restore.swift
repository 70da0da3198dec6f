package import OperonModel

extension TriggerTable {
    /// A table with everything that a store has kept. `started` must follow.
    ///
    /// - Throws: `RestoreError` if the rows contradict one another.
    package init(
        restoring rows: [(row: RestoredTrigger, definition: Definition)]
    ) throws(RestoreError) {
        for (row, definition) in rows {
            let (trigger, history) = try Self.trigger(row, definition)
            guard triggers[definition.id] == nil,
                trigger.state.isRemoved || names[definition.name] == nil
            else { throw RestoreError("two triggers “\(definition.name)”") }
            for number in trigger.open {
                guard let graph = trigger.firings[number]?.status.graph else { continue }
                guard runs.updateValue(FiringID(definition.id, number), forKey: graph) == nil else {
                    throw RestoreError("graph \(graph) is the run of two firings")
                }
            }
            insert(trigger, history)
            schedule(definition.id)
        }
    }

    private static func trigger(
        _ row: RestoredTrigger,
        _ definition: Definition
    ) throws(RestoreError) -> (Trigger, History) {
        let name = "trigger \(row.trigger.id)"
        guard definition.id == row.trigger.id, definition.name == row.trigger.name else {
            throw RestoreError("\(name) has the description of another one")
        }
        var trigger = Trigger(definition: definition, stored: row.trigger, state: row.state)
        var history = History()
        for firing in row.firings {
            guard firing.id.trigger == row.trigger.id, firing.id.number > trigger.last else {
                throw RestoreError("firings of \(name) out of order")
            }
            guard history.number(of: firing.identity) == nil, !firing.identity.isEmpty else {
                throw RestoreError("two firings of \(name) have the identity “\(firing.identity)”")
            }
            trigger.last = firing.id.number
            history.note(firing.identity, firing.id.number)
            trigger.accepted = max(trigger.accepted, firing.ordinal)
            if let floor = firing.floor { trigger.floor = max(trigger.floor ?? floor, floor) }
            if let planned = firing.plannedAt {
                trigger.state.position = max(trigger.state.position, planned)
            }
            if firing.status.isFinal {
                history.append(firing)
            } else {
                guard firing.status != .waiting || trigger.waiting == nil else {
                    throw RestoreError("two firings of \(name) wait")
                }
                trigger.firings[firing.id.number] = firing
                trigger.open.append(firing.id.number)
            }
        }
        return (trigger, history)
    }

    /// The graphs that are runs of firings, in ascending order.
    package var runningGraphs: [GraphID] { runs.keys.sorted() }
}
