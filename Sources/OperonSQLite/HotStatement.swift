import OperonModel

/// A statement that is looked up by number and not by text.
enum HotStatement: Int, CaseIterable {
    case insertOperation, selectOperation, insertAttempt, insertInFlight, deleteInFlight
    case insertJournal

    var sql: String {
        switch self {
        case .insertOperation:
            "INSERT OR REPLACE INTO operations VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
        case .selectOperation: "\(StoreTables.selectOperations) WHERE id = ?"
        case .insertAttempt: "INSERT OR REPLACE INTO attempts VALUES (?,?,?,?,?,?,?,?,?,?,?)"
        case .insertInFlight:
            "INSERT OR REPLACE INTO attempts_in_flight VALUES (?,?,?,?,?,?,?,?)"
        case .deleteInFlight: "DELETE FROM attempts_in_flight WHERE operation = ?"
        case .insertJournal: "INSERT INTO journal VALUES (?,?,?,?,?,?,?,?)"
        }
    }
}

extension OperationID {
    /// The key of the operation in a table.
    var key: Int64 { Int64(bitPattern: UInt64(graph.rawValue) << 32 | UInt64(index)) }

    init(key: Int64) {
        let bits = UInt64(bitPattern: key)
        self.init(
            graph: GraphID(rawValue: UInt32(bits >> 32)),
            index: UInt32(truncatingIfNeeded: bits)
        )
    }
}

extension Incarnation {
    /// The key of the incarnation in a table.
    var key: Int64 { Int64(bitPattern: rawValue) }
}
