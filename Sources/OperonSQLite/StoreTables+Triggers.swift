import OperonModel
import OperonPorts

// Rows of triggers and of their firings.
extension StoreTables {
    func write(_ record: TriggerRecord) throws {
        switch record {
        case .added(let trigger, let state), .replaced(let trigger, let state):
            try write(trigger)
            try write(state, of: trigger.id)
        case .changed(let id, let state): try write(state, of: id)
        case .removed(let id):
            try delete("DELETE FROM triggers WHERE id = ?", id)
            try delete("DELETE FROM trigger_states WHERE id = ?", id)
            try delete("DELETE FROM firings WHERE trigger_id = ?", id)
        case .firing(let firing): try write(firing)
        case .firingForgotten(let id):
            let delete = try statement("DELETE FROM firings WHERE trigger_id = ? AND number = ?")
            try delete.bind(id.trigger.key)
            try delete.bind(Int64(bitPattern: id.number))
            try delete.execute()
        }
    }

    private func delete(_ sql: String, _ id: TriggerID) throws {
        let delete = try statement(sql)
        try delete.bind(id.key)
        try delete.execute()
    }

    private func write(_ trigger: StoredTrigger) throws {
        let insert = try statement("INSERT OR REPLACE INTO triggers VALUES (?,?,?,?,?,?)")
        try insert.bind(trigger.id.key)
        try insert.bind(trigger.name)
        try insert.bind(trigger.addedAt.nanosecondsSince1970)
        try insert.bind(trigger.addedBy)
        try insert.bind(trigger.body)
        try insert.bindSum()
        try insert.execute()
    }

    private func write(_ state: TriggerState, of id: TriggerID) throws {
        let insert = try statement("INSERT OR REPLACE INTO trigger_states VALUES (?,?,?,?,?,?,?)")
        try insert.bind(id.key)
        try insert.bind(state.position.nanosecondsSince1970)
        try insert.bind(state.suspension)
        try insert.bind(state.isRemoved)
        try insert.bindSum()
        try insert.execute()
    }

    private func write(_ firing: StoredFiring) throws {
        let insert = try statement(
            "INSERT OR REPLACE INTO firings VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
        )
        try insert.bind(firing.id.trigger.key)
        try insert.bind(Int64(bitPattern: firing.id.number))
        try insert.bind(firing.identity)
        try insert.bind(firing.plannedAt?.nanosecondsSince1970)
        try insert.bind(firing.occurredAt.nanosecondsSince1970)
        try insert.bind(Int64(bitPattern: firing.ordinal))
        try insert.bind(firing.floor?.nanosecondsSince1970)
        try insert.bind(firing.status)
        try insert.bind(Int64(firing.count))
        try insert.bind(firing.data)
        try insert.bind(firing.reason)
        try insert.bindSum()
        try insert.execute()
    }

    // MARK: - Reading

    func loadTriggers() throws -> [RestoredTrigger] {
        var triggers: [RestoredTrigger] = []
        let select = try statement("SELECT * FROM triggers ORDER BY id")
        defer { select.reset() }
        while try select.step() {
            let trigger = try select.readTrigger()
            let start = WallTime(nanosecondsSince1970: 0)
            triggers.append(
                RestoredTrigger(trigger: trigger, state: TriggerState(position: start))
            )
        }
        try loadStates(into: &triggers)
        try loadFirings(into: &triggers)
        return triggers
    }

    private func loadStates(into triggers: inout [RestoredTrigger]) throws {
        let select = try statement("SELECT * FROM trigger_states ORDER BY id")
        defer { select.reset() }
        var count = 0
        while try select.step() {
            let (id, state) = try select.readTriggerState()
            guard count < triggers.count, triggers[count].trigger.id == id else {
                throw RowDamage(what: "the state of trigger \(id), which does not exist")
            }
            triggers[count].state = state
            count += 1
        }
        guard count == triggers.count else {
            throw RowDamage(what: "trigger \(triggers[count].trigger.id) without its state")
        }
    }

    private func loadFirings(into triggers: inout [RestoredTrigger]) throws {
        let select = try statement("SELECT * FROM firings ORDER BY trigger_id, number")
        defer { select.reset() }
        var place = 0
        var firings: [StoredFiring] = []
        while try select.step() {
            let firing = try select.readFiring()
            if let last = firings.last, last.id.trigger != firing.id.trigger {
                triggers[place].firings = firings
                firings = []
            }
            while place < triggers.count, triggers[place].trigger.id != firing.id.trigger {
                place += 1
            }
            guard place < triggers.count else {
                throw RowDamage(what: "firing \(firing.id) of an unknown trigger")
            }
            firings.append(firing)
        }
        if !firings.isEmpty { triggers[place].firings = firings }
    }
}

extension TriggerID {
    /// The key of the trigger in a table.
    var key: Int64 { Int64(bitPattern: rawValue) }
}

extension PreparedStatement {
    /// The status with what belongs to it, in four columns.
    fileprivate func bind(_ status: FiringStatus) throws {
        var other: UInt64?
        var outcome: OutcomeKind?
        let number: Int64
        switch status {
        case .waiting: number = 0
        case .merged(let into):
            number = 1
            other = into
        case .accepted: number = 2
        case .submitted: number = 3
        case .ended(_, let kind):
            number = 4
            outcome = kind
        case .skipped: number = 5
        case .dropped: number = 6
        case .refused: number = 7
        }
        try bind(number)
        try bind(other.map { Int64(bitPattern: $0) })
        try bind(status.graph.map { Int64($0.rawValue) })
        try bind(outcome.map { Int64($0.rawValue) })
    }

    fileprivate func readTrigger() throws -> StoredTrigger {
        let id = TriggerID(rawValue: UInt64(bitPattern: try readInteger()))
        let name = try readText()
        let addedAt = WallTime(nanosecondsSince1970: try readInteger())
        let addedBy = try readText()
        let body = try readBytes()
        try readSum()
        return StoredTrigger(id: id, name: name, addedAt: addedAt, addedBy: addedBy, body: body)
    }

    fileprivate func readTriggerState() throws -> (TriggerID, TriggerState) {
        let id = TriggerID(rawValue: UInt64(bitPattern: try readInteger()))
        var state = TriggerState(position: WallTime(nanosecondsSince1970: try readInteger()))
        state.suspension = try readSuspension()
        state.isRemoved = try readFlag()
        try readSum()
        return (id, state)
    }

    fileprivate func readFiring() throws -> StoredFiring {
        let trigger = TriggerID(rawValue: UInt64(bitPattern: try readInteger()))
        let number = UInt64(bitPattern: try readInteger())
        let identity = try readText()
        let plannedAt = try readOptionalInteger()
        let occurredAt = try readInteger()
        let ordinal = UInt64(bitPattern: try readInteger())
        let floor = try readOptionalInteger()
        let status = try readFiringStatus()
        let count: UInt32 = try readNumber()
        let data = try readText()
        let reason = try readText()
        try readSum()
        var firing = StoredFiring(
            id: FiringID(trigger, number),
            identity: identity,
            plannedAt: plannedAt.map { WallTime(nanosecondsSince1970: $0) },
            occurredAt: WallTime(nanosecondsSince1970: occurredAt),
            ordinal: ordinal,
            floor: floor.map { WallTime(nanosecondsSince1970: $0) },
            status: status
        )
        firing.count = count
        firing.data = data
        firing.reason = reason
        return firing
    }

    private func readFiringStatus() throws -> FiringStatus {
        let number = try readInteger()
        let other = try readOptionalInteger().map { UInt64(bitPattern: $0) }
        let graph = try readOptionalInteger().flatMap { UInt32(exactly: $0) }
            .map { GraphID(rawValue: $0) }
        let outcome = try readOptionalInteger().flatMap { UInt8(exactly: $0) }
            .flatMap { OutcomeKind(rawValue: $0) }
        switch (number, other, graph, outcome) {
        case (0, nil, nil, nil): return .waiting
        case (1, let other?, nil, nil): return .merged(into: other)
        case (2, nil, nil, nil): return .accepted
        case (3, nil, let graph?, nil): return .submitted(graph)
        case (4, nil, let graph?, let outcome?): return .ended(graph, outcome)
        case (5, nil, nil, nil): return .skipped
        case (6, nil, nil, nil): return .dropped
        case (7, nil, nil, nil): return .refused
        case _: throw RowDamage(what: "a firing with a status that there is not")
        }
    }
}
