import DequeModule
import OperonModel

// Rows of firings: the open ones are in their trigger, those that have ended in its history.
extension TriggerTable {
    /// The firings of one trigger that have ended, and the identities of all that are remembered.
    /// Apart from the trigger, whose copies would copy it.
    struct History: Sendable {
        private(set) var rows: [UInt64: StoredFiring] = [:]
        /// Those in `rows`, the first to be forgotten first.
        private(set) var order = Deque<UInt64>()
        /// Only looked up.
        private var numbers: [String: UInt64] = [:]

        var count: Int { order.count }

        func number(of identity: String) -> UInt64? { numbers[identity] }

        mutating func note(_ identity: String, _ number: UInt64) { numbers[identity] = number }

        mutating func append(_ row: StoredFiring) {
            rows[row.id.number] = row
            order.append(row.id.number)
        }

        mutating func removeFirst() -> StoredFiring? {
            guard let number = order.popFirst(), let row = rows.removeValue(forKey: number) else {
                return nil
            }
            numbers[row.identity] = nil
            return row
        }
    }

    /// The firing with this identity; `nil`: none, or it is forgotten.
    func number(of identity: String, by id: TriggerID) -> UInt64? {
        histories[id]?.number(of: identity)
    }

    /// How many firings of a trigger are remembered after they ended.
    private static func kept(_ source: FiringSource) -> Int {
        source.watched?.seesAgain == true
            ? Limits.triggerFileFiringsKept : Limits.triggerFiringsKept
    }

    /// Adds a firing.
    @discardableResult
    mutating func append(
        _ occurrence: Occurrence,
        _ status: FiringStatus,
        to id: TriggerID,
        at now: Moment,
        into effects: inout Effects
    ) -> FiringID {
        forgetOldest(of: id, into: &effects)
        guard var trigger = triggers[id] else { return FiringID(id, 0) }
        // Gives up the second reference, so that nothing is copied.
        triggers[id] = nil
        trigger.last += 1
        let firing = FiringID(id, trigger.last)
        if status == .accepted || status == .waiting { trigger.accepted += 1 }
        var row = StoredFiring(
            id: firing,
            identity: occurrence.identity,
            plannedAt: occurrence.plannedAt,
            occurredAt: now.wall,
            ordinal: trigger.accepted,
            floor: trigger.floor,
            status: status
        )
        row.count = occurrence.count
        row.data = status.isFinal ? "" : occurrence.data
        histories[id]?.note(occurrence.identity, trigger.last)
        if status.isFinal {
            histories[id]?.append(row)
        } else {
            trigger.firings[trigger.last] = row
            trigger.open.append(trigger.last)
        }
        triggers[id] = trigger
        effects.records.append(.firing(row))
        return firing
    }

    /// Changes a firing that has not ended.
    mutating func change(
        _ id: FiringID,
        into effects: inout Effects,
        _ body: (inout StoredFiring) -> Void
    ) {
        guard var row = triggers[id.trigger]?.firings[id.number] else { return }
        body(&row)
        triggers[id.trigger]?.firings[id.number] = row
        effects.records.append(.firing(row))
    }

    mutating func finish(_ id: FiringID, _ status: FiringStatus, into effects: inout Effects) {
        change(id, into: &effects) {
            $0.status = status
            $0.data = ""
        }
        triggers[id.trigger]?.open.removeAll { $0 == id.number }
        guard let row = triggers[id.trigger]?.firings.removeValue(forKey: id.number) else { return }
        histories[id.trigger]?.append(row)
    }

    private mutating func forgetOldest(of id: TriggerID, into effects: inout Effects) {
        guard let most = triggers[id].map({ Self.kept($0.definition.source) }) else { return }
        while let count = histories[id]?.count, count >= most,
            let row = histories[id]?.removeFirst()
        {
            if let planned = row.plannedAt {
                let floor = triggers[id]?.floor ?? planned
                triggers[id]?.floor = max(floor, planned)
            }
            effects.records.append(.firingForgotten(row.id))
        }
    }
}
