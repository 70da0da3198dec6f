import OperonModel
import OperonPorts

// Rows of graphs, operations and attempts.
extension StoreTables {
    /// - Parameter tombstone: for a dropped graph, 1 while its rows are being deleted, then 2.
    func write(_ graph: GraphEntry, outcomes: OutcomeRuns = OutcomeRuns(), tombstone: Int64 = 0)
        throws
    {
        let insert = try statement(
            "INSERT OR REPLACE INTO graphs VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
        )
        try insert.bind(Int64(graph.id.rawValue))
        try insert.bind(graph.name)
        try insert.bind(graph.submittedAt.nanosecondsSince1970)
        try insert.bind(graph.finishedAt?.nanosecondsSince1970)
        try insert.bind(graph.isOpen)
        try insert.bind(tombstone)
        try insert.bind(graph.suspension)
        try insert.bind(graph.cancelReason)
        try insert.bind(Int64(graph.operationCount))
        try insert.bind(Int64(graph.finishedCount))
        try insert.bind(RowText.text(graph.needs))
        try insert.bind(outcomes.text)
        try insert.bindSum()
        try insert.execute()
    }

    /// SQLite refuses values over a gigabyte and is faster with smaller ones.
    private static let pieceBytes = 8 << 20

    /// Returns the number of the row.
    func write(_ contents: StoredContents) throws -> Int64 {
        let insert = try statement("INSERT INTO contents VALUES (?,?,?,?,?,?,?,?,?,?,?,?)")
        let last = try last(in: "contents")
        noteContents(last + 1, of: contents.graph)
        try insert.bind(last + 1)
        try insert.bind(Int64(contents.graph.rawValue))
        try insert.bind(contents.name)
        try insert.bind(contents.submitter)
        try insert.bind(contents.isOpen)
        try insert.bind(contents.idempotencyKey)
        try insert.bind(contents.traceParent)
        try insert.bind(Int64(contents.first))
        try insert.bind(Int64(contents.operationCount))
        try insert.bind(RowText.text(contents.needs))
        try insert.bind(Int64(contents.body.count))
        try insert.bindSum()
        try insert.execute()
        let piece = try statement("INSERT INTO pieces VALUES (?, ?, ?)")
        var start = 0
        var number: Int64 = 0
        while start < contents.body.count {
            let end = min(start + Self.pieceBytes, contents.body.count)
            try piece.bind((last + 1) << 16 | number)
            try piece.bind(contents.body[start..<end])
            try piece.bindSum()
            try piece.execute()
            (start, number) = (end, number + 1)
        }
        return last + 1
    }

    func write(_ operation: StoredOperation, of id: OperationID) throws {
        var row = operation
        // Until the attempt in flight has ended, it gives the number of attempts. So most
        // operations need no row of their own during their first attempt.
        if open[id]?.ordinal == operation.attempts { row.attempts = 0 }
        if row == StoredOperation(index: id.index), ranges[id.graph]?[id.index] == nil {
            guard mayHaveRow(id) else { return }
            let delete = try statement("DELETE FROM operations WHERE id = ?")
            try delete.bind(id.key)
            return try delete.execute()
        }
        // Note the row before it exists: if the transaction fails, a wrong note only costs a
        // lookup.
        noteRow(of: id)
        let insert = try statement(.insertOperation)
        try insert.bind(id.key)
        try insert.bind(operation.outcome, isUpToDate: operation.isUpToDate)
        try insert.bind(operation.finishedAt?.nanosecondsSince1970)
        try insert.bind(Int64(operation.round))
        try insert.bind(Int64(operation.attempts))
        try insert.bind(Int64(operation.retries))
        try insert.bind(Int64(operation.workersLost))
        try insert.bind(Int64(operation.crashes))
        try insert.bind(operation.priority.map { Int64($0.rawValue) })
        try insert.bind(operation.suspension)
        try insert.bind(operation.cancelReason)
        try insert.bind(operation.retryAt?.nanosecondsSince1970)
        try insert.bind(operation.comesBack)
        try insert.bind(operation.deadlinePassed)
        try insert.bind(operation.hasOutput)
        try insert.bindSum()
        try insert.execute()
    }

    func write(_ range: StoredRange) throws {
        let insert = try statement("INSERT INTO finished_ranges VALUES (?,?,?,?,?,?,?)")
        try insert.bind(Int64(range.operations.graph.rawValue))
        try insert.bind(Int64(range.operations.startIndex))
        try insert.bind(Int64(range.operations.count))
        try insert.bind(range.outcome, isUpToDate: false)
        try insert.bind(range.finishedAt.nanosecondsSince1970)
        try insert.bindSum()
        try insert.execute()
    }

    /// Writes the attempt of an operation that is in flight, or that there is none.
    func writeOpen(_ id: OperationID) throws {
        guard let attempt = open[id] else {
            guard openRows.contains(id) else { return }
            let delete = try statement(.deleteInFlight)
            try delete.bind(id.key)
            return try delete.execute()
        }
        let insert = try statement(.insertInFlight)
        try insert.bind(id.key)
        try insert.bind(start: attempt)
        try insert.bindSum()
        try insert.execute()
    }

    func write(ended change: StoreChanges.Attempt) throws {
        let attempt = change.attempt
        let insert = try statement(.insertAttempt)
        try insert.bind(change.operation.key)
        try insert.bind(start: attempt)
        try insert.bind(attempt.endedAt?.nanosecondsSince1970)
        try insert.bind(attempt.ending)
        try insert.bindSum()
        try insert.execute()
    }

    /// Removes an attempt that was resumed from those that have ended.
    func deleteEnded(_ attempt: AttemptID, of operation: OperationID) throws {
        let delete = try statement(
            "DELETE FROM attempts WHERE operation = ? AND epoch = ? AND number = ?"
        )
        try delete.bind(operation.key)
        try delete.bind(attempt)
        try delete.execute()
    }

    func write(_ worker: StoredWorker) throws {
        let insert = try statement("INSERT OR REPLACE INTO workers VALUES (?,?,?)")
        try insert.bind(worker.incarnation.key)
        try insert.bind(worker.name)
        try insert.bindSum()
        try insert.execute()
    }

    func writeDependency(_ record: StoreRecord) throws {
        let insert = try statement(
            "INSERT INTO dependency_changes VALUES (?, ?, ?, ?, ?)"
        )
        try insert.bind(try last(in: "dependency_changes") + 1)
        switch record {
        case .dependencyAdded(let operation, let other, let condition):
            noteChange(of: operation.graph)
            try insert.bind(operation.key)
            try insert.bind(other.key)
            try insert.bind(Int64(condition.rawValue))
        case .dependencyRemoved(let operation, let other):
            noteChange(of: operation.graph)
            try insert.bind(operation.key)
            try insert.bind(other.key)
            try insert.bind(Int64?.none)
        case .graphAdded, .operationsAdded, .graphClosed, .granted, .started, .resumed,
            .attemptEnded, .finished, .rangeFinished, .retryScheduled, .delayed, .deadlinePassed,
            .cancelled,
            .suspended, .queueDefined, .queueLimit, .queuePriority, .priority, .keyLimit,
            .rateSet, .rateUsed, .queueReset, .keyReset, .reopened, .trigger:
            return
        }
        try insert.bindSum()
        try insert.execute()
    }

    private func write(_ output: Payload?, of id: OperationID) throws {
        guard let output else {
            let delete = try statement("DELETE FROM outputs WHERE operation = ?")
            try delete.bind(id.key)
            return try delete.execute()
        }
        let insert = try statement("INSERT OR REPLACE INTO outputs VALUES (?,?,?,?)")
        try insert.bind(id.key)
        try insert.bind(output.contentType)
        try insert.bind(output.bytes)
        try insert.bindSum()
        try insert.execute()
    }

    private func write(_ entry: StoreChanges.Log) throws {
        let log = entry.log.log
        let isWhole = log.head.isEmpty && log.missing == 0
        let insert = try statement(
            isWhole
                ? "INSERT OR REPLACE INTO logs VALUES (?,?,?,?,?)"
                : "INSERT OR REPLACE INTO cut_logs VALUES (?,?,?,?,?,?,?)"
        )
        try insert.bind(entry.operation.key)
        try insert.bind(entry.log.attempt)
        if !isWhole {
            try insert.bind(log.head)
            try insert.bind(Int64(bitPattern: log.missing))
        }
        try insert.bind(log.tail)
        try insert.bindSum()
        try insert.execute()
    }

    /// Writes what a commit changes in tables that do not wait for the others.
    func writeResults(_ changes: StoreChanges) throws {
        for id in changes.outputs.keys.sorted() {
            if let output = changes.outputs[id] { try write(output, of: id) }
        }
        for (id, attempt) in changes.droppedLogs {
            for (table, _) in Self.logTables {
                let delete = try statement(
                    "DELETE FROM \(table) WHERE operation = ? AND epoch = ? AND number = ?"
                )
                try delete.bind(id.key)
                try delete.bind(attempt)
                try delete.execute()
            }
        }
        for log in changes.logs { try write(log) }
    }
}
