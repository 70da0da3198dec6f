/// What a display of a graph's progress shows.
package struct GraphProgressView: Hashable, Sendable, Codable {
    package var graph: GraphView
    /// The repeated operations that have begun and not finished, or of which an element failed: the
    /// first `repeatedMax` of them, in the order of the graph.
    package var repeated: [RepeatedProgressView]

    /// The most repeated operations that are shown. More lines would fill a terminal.
    package static let repeatedMax = 8

    package init(graph: GraphView, repeated: [RepeatedProgressView]) {
        self.graph = graph
        self.repeated = repeated
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
