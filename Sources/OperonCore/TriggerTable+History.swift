import DequeModule
import OperonModel

// Rows of firings: the open ones are in their trigger, those that have ended in its history.
extension TriggerTable {
    /// The firings of one trigger that have ended, and the identities of all that are remembered.
    /// Apart from the trigger, whose copies would copy it.
    ///
    /// The last ones are kept for people and for repeated deliveries. Of a source whose occurrences
    /// come again, the last firing of each thing that it watches is kept beyond these.
    struct History: Sendable {
        private(set) var rows: [UInt64: StoredFiring] = [:]
        /// The last ones that have ended, the first to be forgotten first.
        private(set) var recent = Deque<UInt64>()
        /// Older ones, the first to be forgotten first, each with the number that it then had in
        /// `places`. An entry with another number is out of date.
        private var older = Deque<(number: UInt64, place: UInt64)>()
        private var places: [UInt64: UInt64] = [:]
        private var lastPlace: UInt64 = 0
        /// The newest firing of each thing. Only looked up.
        private var newest: [String: UInt64] = [:]
        /// Only looked up.
        private var numbers: [String: UInt64] = [:]

        var count: Int { recent.count + places.count }

        /// The numbers of those that are not among the last ones.
        var olderNumbers: [UInt64] { places.keys.sorted() }

        func number(of identity: String) -> UInt64? { numbers[identity] }

        mutating func note(_ identity: String, _ number: UInt64) { numbers[identity] = number }

        mutating func append(_ row: StoredFiring) {
            rows[row.id.number] = row
            recent.append(row.id.number)
        }

        /// It has occurred again, so it may do so once more.
        mutating func refresh(_ number: UInt64) {
            guard places[number] != nil else { return }
            place(number)
            // Before those that are out of date are many.
            guard older.count > 2 * places.count + 1_000 else { return }
            older.removeAll { places[$0.number] != $0.place }
        }

        private mutating func place(_ number: UInt64) {
            lastPlace += 1
            places[number] = lastPlace
            older.append((number, lastPlace))
        }

        /// Makes room for one more.
        ///
        /// - Parameter keptOlder: How many are kept beyond the last ones.
        /// - Returns: Those that are forgotten.
        mutating func makeRoom(recent most: Int, older keptOlder: Int) -> [StoredFiring] {
            var forgotten: [StoredFiring] = []
            while recent.count >= most, let number = recent.popFirst(), let row = rows[number] {
                guard keptOlder > 0, let thing = Self.thing(row.identity)
                else {
                    forgotten += [forget(number)].compactMap { $0 }
                    continue
                }
                if let before = newest.updateValue(number, forKey: thing), places[before] != nil {
                    forgotten += [forget(before)].compactMap { $0 }
                }
                place(number)
            }
            while places.count > keptOlder, let first = older.popFirst() {
                guard places[first.number] == first.place else { continue }
                forgotten += [forget(first.number)].compactMap { $0 }
            }
            return forgotten
        }

        private mutating func forget(_ number: UInt64) -> StoredFiring? {
            places[number] = nil
            guard let row = rows.removeValue(forKey: number) else { return nil }
            numbers[row.identity] = nil
            if let thing = Self.thing(row.identity), newest[thing] == number {
                newest[thing] = nil
            }
            return row
        }

        /// What an identity is about: `file:CHANGE:INODE:TIME:PATH` without the time. `nil`: the
        /// identity is no such one.
        static func thing(_ identity: String) -> String? {
            var parts = identity.split(separator: ":", omittingEmptySubsequences: false)
            guard parts.count == 5, parts[0] == "file" else { return nil }
            parts.remove(at: 3)
            return parts.joined(separator: ":")
        }
    }

    /// The firing with this identity; `nil`: none, or it is forgotten.
    func number(of identity: String, by id: TriggerID) -> UInt64? {
        histories[id]?.number(of: identity)
    }

    /// How many firings of a trigger are remembered beyond the last ones.
    private static func keptOlder(_ source: FiringSource) -> Int {
        guard case .watched(.file(let file)) = source else { return 0 }
        return Limits.triggerFilesKept * max(1, file.changes.count)
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

    mutating func forgetOldest(of id: TriggerID, into effects: inout Effects) {
        guard let older = triggers[id].map({ Self.keptOlder($0.definition.source) }) else { return }
        let forgotten = histories[id]?.makeRoom(recent: Limits.triggerFiringsKept, older: older)
        for row in forgotten ?? [] {
            if let planned = row.plannedAt {
                let floor = triggers[id]?.floor ?? planned
                triggers[id]?.floor = max(floor, planned)
            }
            effects.records.append(.firingForgotten(row.id))
        }
    }
}
