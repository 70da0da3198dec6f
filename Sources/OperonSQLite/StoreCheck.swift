import GRDB
import OperonModel
import OperonPorts

extension StoreTables {
    /// The problems of the store as sentences, at most some of each kind. Reads every page and
    /// every row.
    func problems() throws -> [String] {
        var problems: [String] = []
        let pages = try String.fetchAll(database, sql: "PRAGMA integrity_check(20)")
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
        problems += try tally("logs", by: "operation", "SELECT * FROM logs") { row in
            let id = OperationID(key: try row.readInteger())
            _ = try row.readAttemptID()
            _ = try row.readBytes()
            try row.readSum()
            return id
        }
        problems += try eventProblems()
        return problems
    }

    /// Reads all rows of a table. Reports damaged rows and rows that belong to no operation.
    private func tally(
        _ table: String,
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

    private func eventProblems() throws -> [String] {
        let select = try PreparedStatement(database, "SELECT * FROM events ORDER BY sequence")
        var last: UInt64?
        while try select.step() {
            do {
                let event = try select.readEvent()
                if let last, event.sequence != last + 1 {
                    return ["Events \(last + 1) to \(event.sequence - 1) are not there."]
                }
                last = event.sequence
            } catch is RowDamage {
                return ["An event after number \(last ?? 0) is not as written."]
            }
        }
        return []
    }
}
