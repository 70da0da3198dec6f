/// What a display of a graph's progress shows.
package struct GraphProgressView: Hashable, Sendable, Codable {
    package var graph: GraphView
    /// The repeated operations that have begun and not finished, or of which an element failed: the
    /// first `repeatedMax` of them, in the order of the graph.
    package var repeated: [RepeatedProgressView]
    /// The operations that have run longest, the longest first: at most `runningMax`. `nil`: none
    /// runs, or the coordinator is of a version that does not say it.
    package var running: [RunningOperationView]?

    /// The most running operations that are named.
    package static let runningMax = 8
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
    /// Its number; `nil`: an older coordinator does not tell it.
    package var index: UInt32?
    /// When its attempt started.
    package var startedAt: TimeText
    /// Whether somebody completes it; `nil`: a worker runs it.
    package var isExternal: Bool?

    /// For a list of what runs.
    package var title: String { isExternal == true ? name + " (external)" : name }

    package init(name: String, startedAt: TimeText) {
        self.name = name
        self.startedAt = startedAt
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
