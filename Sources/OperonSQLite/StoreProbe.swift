/// What a test does to a store: it ends the process at a crash point, or breaks a rule.
package struct StoreProbe: Sendable {
    /// Called at each crash point. An error that it throws ends the call of the store.
    package var passed: @Sendable (JournalPoint) throws -> Void = { _ in }
    package var mutation: JournalMutation?

    package init() {}
}

/// The crash points in the life of the journal: a commit appends to it, a sync follows, the tables
/// get what is pending, and rows that nobody needs are removed.
package enum JournalPoint: String, Sendable, CaseIterable {
    /// The rows of a commit are appended, and the transaction has not ended.
    case beforeCommit
    /// Committed and not synced.
    case afterCommit
    case beforeSync
    /// Synced, but nobody has been told.
    case afterSync
    case beforeProjection
    /// The tables have the pending rows, and `projection` does not say so yet.
    case inProjection
    /// `projection` is written, and rows of the journal are not removed yet.
    case beforeTrimming
    /// Rows are removed, and the transaction has not ended.
    case afterTrimming
    /// The transaction has ended, and memory still has the rows as pending.
    case afterProjection
    /// A start has replayed a row of the journal, and has not written what it changed.
    case inReplay
}

/// Rules of the journal that a test breaks on purpose. The simulation must notice each of them.
package enum JournalMutation: String, Sendable, CaseIterable {
    /// Reports a sync without one.
    case answersBeforeSync
    /// Commits each record of a batch in a transaction of its own.
    case commitsRecordByRecord
    /// Leaves the last record of a batch out of its row.
    case losesLastRecord
    /// Removes rows whose changes the tables do not have.
    case trimsBeforeProjection
    /// Notes in a transaction of its own how far the tables are, before they are.
    case notesBeforeWriting
    /// Notes in a transaction of its own how far the tables are, after they are.
    case notesAfterWriting
    /// Replays a row that the tables have.
    case replaysTwice
    /// Stores outputs and logs in a transaction before that of their batch.
    case storesResultsFirst
}
