import OperonModel
import OperonPorts

extension StoreTables {
    /// The problems of the store as sentences, at most some of each kind. Reads every page and
    /// every row.
    func problems() throws -> [String] {
        var problems: [String] = []
        let pages = try database.texts("PRAGMA integrity_check(20)")
        problems += pages.filter { $0 != "ok" }
        do {
            _ = try StoreTables(database, limits: limits).load()
        } catch let damage as RowDamage {
            problems.append("It has \(damage.what).")
        }
        problems += try tally("attempts", by: "operation", Self.selectAttempts) { row in
            try row.readAttempt().operation
        }
        problems += try tally("outputs", by: "operation", "SELECT * FROM outputs") { row in
            let id = OperationID(key: try row.readInteger())
            _ = try row.readText()
            _ = try row.readBytes()
            try row.readSum()
            return id
        }
        for (table, isWhole) in Self.logTables {
            problems += try tally(table, by: "operation", "SELECT * FROM \(table)") { row in
                try row.readLog(isWhole: isWhole).operation
            }
        }
        problems += try journalProblems()
        return problems
    }

    /// Reads all rows of a table. Reports damaged rows and rows that belong to no operation.
    private func tally(
        _ table: StaticString,
        by key: String,
        _ sql: String,
        _ read: (PreparedStatement) throws -> OperationID
    ) throws -> [String] {
        let select = try PreparedStatement(database, sql)
        var damaged = 0
        var strays = 0
        while try select.step() {
            do {
                let id = try read(select)
                let count = graphs[id.graph]?.operationCount ?? 0
                if id.index >= count { strays += 1 }
            } catch is RowDamage {
                damaged += 1
            }
        }
        var problems: [String] = []
        if damaged > 0 { problems.append("\(damaged) rows of \(table) are not as written.") }
        if strays > 0 { problems.append("\(strays) rows of \(table) belong to no operation.") }
        return problems
    }

    /// Reads the whole journal: whether its rows and events are there and as written, and whether
    /// the tables have what it says last about each operation.
    private func journalProblems() throws -> [String] {
        let select = try PreparedStatement(database, "SELECT * FROM journal ORDER BY id")
        var last: JournalRow?
        var finished: [OperationID: OutcomeKind?] = [:]
        while try select.step() {
            let row: JournalRow
            do {
                row = try select.readJournal()
                // Rows without events are gone from the older part. What they said is not known.
                if let last, row.number > last.number + 1 { finished.removeAll() }
                for record in try JournalBytes.decode(row.records, at: row.wall).records {
                    switch record {
                    case .finished(let id, let outcome): finished[id] = outcome.kind
                    case .rangeFinished(let range, let outcome):
                        // A graph has as many operations as its row says, whatever this row says.
                        let count = graphs[range.graph]?.operationCount ?? 0
                        for index in range.indices.clamped(to: 0..<count) {
                            finished[range[index]] = outcome.kind
                        }
                    case .reopened(let id): finished[id] = .some(nil)
                    default: continue
                    }
                }
            } catch is RowDamage {
                let number = last.map { "after number \($0.number)" } ?? "at the start"
                return ["A row of the journal \(number) is not as written."]
            }
            if let last {
                guard row.epoch >= last.epoch else {
                    return ["Row \(row.number) of the journal is of an earlier coordinator."]
                }
                let first = row.events.first?.sequence ?? row.lastEvent + 1
                guard first == last.lastEvent + 1 || first == firstEvent else {
                    return ["Events \(last.lastEvent + 1) to \(first - 1) are not there."]
                }
            }
            last = row
        }
        var wrong = 0
        for (id, kind) in finished where graphs[id.graph]?.isTombstone == false {
            do {
                if try operation(id)?.outcome?.kind != kind { wrong += 1 }
            } catch is RowDamage {
                wrong += 1
            }
        }
        return wrong == 0 ? [] : ["\(wrong) operations are not as the journal says."]
    }
}
