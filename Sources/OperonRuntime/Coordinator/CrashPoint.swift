/// The crash points: the places between the ordered steps of storing and sending at which tests end
/// the process.
package enum CrashPoint: String, Sendable, CaseIterable {
    /// Worker events about operations are about to be handled.
    case inHand
    /// The same, and one of the events is a request of a running operation.
    case requestInHand
    /// Decided, but nothing of it is stored.
    case decided
    case beforeCommit
    case afterCommit
    case beforeSend
    case afterSend
    case beforeSync
    /// Synced, but nobody has been told.
    case afterSync
    /// Waiting clients have their answers.
    case answered
}
