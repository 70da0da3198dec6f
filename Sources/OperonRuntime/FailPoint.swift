/// The places between the steps of the order of effects, where a process may die: tests end it
/// there.
package enum FailPoint: String, Sendable, CaseIterable {
    /// Decided, nothing of it kept.
    case decided
    case beforeCommit
    case afterCommit
    case beforeSend
    case afterSend
    case beforeSync
    /// On the disk; nobody was told.
    case afterSync
    /// Clients that waited have their answer.
    case answered
}
