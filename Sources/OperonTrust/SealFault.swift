/// Why a message was not taken. Its receiver counts and logs that, and does nothing else.
package enum SealFault: String, Error, Hashable, Sendable, CaseIterable {
    /// It is not sealed: its sender does without trust, or is nobody that may speak here.
    case unsealed
    /// It has not the form of any message.
    case malformed
    /// It was changed on the way, or sealed by somebody else or for somebody else.
    case forged
    /// It has come before, or after one that was sent later.
    case replayed
    /// No agreement of keys with this number exists, or no longer.
    case unknownSession
    /// The key that speaks is neither the pinned one nor its successor.
    case strangeKey
    /// It answers nothing that was asked.
    case unexpected
    /// It is of an epoch before the present one.
    case earlierEpoch
    /// It speaks for another worker than its sender.
    case foreignSender
    /// Its sender may not say it.
    case notAllowed

    /// A clause that says what is wrong with the message.
    package var text: String {
        switch self {
        case .unsealed: "it is not sealed"
        case .malformed: "it has not the form of a message"
        case .forged: "it was changed, or it was sealed for somebody else"
        case .replayed: "it was received before, or comes too late"
        case .unknownSession: "no keys were agreed for it"
        case .strangeKey: "its sender is not the coordinator that this worker trusts"
        case .unexpected: "it answers nothing that was asked"
        case .earlierEpoch: "it is of an earlier start of the coordinator"
        case .notAllowed: "its sender may not say that"
        case .foreignSender: "it speaks for another worker than the one that sent it"
        }
    }
}
