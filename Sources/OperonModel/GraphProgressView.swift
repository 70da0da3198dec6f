/// What a display of a graph's progress shows.
package struct GraphProgressView: Hashable, Sendable, Codable {
    package var graph: GraphView
    /// The repeated operations that have begun and not finished, or of which an element failed: the
    /// first `repeatedMax` of them, in the order of the graph.
    package var repeated: [RepeatedProgressView]
    /// The operations that have run longest, the longest first: at most `runningMax`. `nil`: none
    /// runs, or the coordinator is of a version that does not say it.
    package var running: [RunningOperationView]?
    /// What went wrong since somebody began to watch, the latest last: at most `newsMax`. `nil`:
    /// nothing, or the coordinator is of a version that does not say it.
    package var news: [ProgressNewsView]?

    /// The most running operations that are named.
    package static let runningMax = 8
    /// The most news that are kept for those who watch.
    package static let newsMax = 20
    /// The most repeated operations that are shown. More lines would fill a terminal.
    package static let repeatedMax = 8

    package init(graph: GraphView, repeated: [RepeatedProgressView]) {
        self.graph = graph
        self.repeated = repeated
    }
}

/// An operation that runs.
package struct RunningOperationView: Hashable, Sendable, Codable {
    package var name: String
    /// When its attempt started.
    package var startedAt: TimeText

    package init(name: String, startedAt: TimeText) {
        self.name = name
        self.startedAt = startedAt
    }
}

/// Something that went wrong in a graph: an operation failed, was skipped, or is tried again.
package struct ProgressNewsView: Hashable, Sendable, Codable {
    /// From 1; each is one more than the one before it.
    package var number: UInt64
    /// The operation, or the first of some that were skipped together.
    package var name: String
    /// How many were skipped together; `nil`: one operation.
    package var count: Int?
    /// `failed` or `skipped`; `nil`: another attempt follows.
    package var outcome: OutcomeKind?
    /// The error, or the name of the operation because of which it was skipped. The first
    /// `detailMax` characters.
    package var detail: String
    /// How long the attempt ran that failed, in seconds; `nil`: not known, or none did.
    package var seconds: Double?
    /// The attempt that follows; `nil`: none does.
    package var next: NextAttemptView?

    package static let detailMax = 500

    package init(name: String, outcome: OutcomeKind?, detail: String) {
        number = 0
        self.name = name
        self.outcome = outcome
        self.detail = String(detail.prefix(Self.detailMax))
    }
}

/// An attempt that follows one that failed.
package struct NextAttemptView: Hashable, Sendable, Codable {
    /// The number of the attempt, from 1.
    package var number: Int
    /// How many the operation may have.
    package var of: Int
    /// When it may start.
    package var at: TimeText

    package init(number: Int, of: Int, at: TimeText) {
        self.number = number
        self.of = of
        self.at = at
    }
}

/// The progress of a repeated operation.
package struct RepeatedProgressView: Hashable, Sendable, Codable {
    /// The name that stands for all elements, such as `render[*]`.
    package var name: String
    /// The elements by state.
    package var counts: StateCounts

    package init(name: String, counts: StateCounts) {
        self.name = name
        self.counts = counts
    }

    /// Whether the operation has begun and not finished, or an element failed.
    package static func isShown(_ counts: StateCounts) -> Bool {
        counts.failed > 0 || counts.pending < counts.total && counts.finished < counts.total
    }
}
