package import OperonModel

/// Whether the log says that the store takes no records, or takes them again. On a disk that is
/// nearly full, one commit fits and the next one does not.
package struct StoreNews {
    /// Trouble is told at most once in this time.
    package static let interval = Duration.seconds(60)

    private var isTold = false
    private var toldAt: Timestamp?

    package init() {}

    /// Whether to log it now. Asked at each try of a commit, so trouble that lasts is logged.
    package mutating func shows(isInTrouble: Bool, at now: Timestamp) -> Bool {
        guard isInTrouble != isTold else { return false }
        if isInTrouble {
            if let toldAt, now - toldAt < Self.interval { return false }
            toldAt = now
        }
        isTold = isInTrouble
        return true
    }
}
