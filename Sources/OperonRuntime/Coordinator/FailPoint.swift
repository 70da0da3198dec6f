/// The places between the steps of the order of effects, where a process may die: tests end it
/// there.
package enum FailPoint: String, Sendable, CaseIterable {
    /// Something that workers told of operations is about to be handled.
    case inHand
    /// The same, and a running operation asks for something in it.
    case requestInHand
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
