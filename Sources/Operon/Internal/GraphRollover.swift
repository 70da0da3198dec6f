package import OperonModel

/// How full a program's current graph is. Finished operations are dropped by whole graphs, so no
/// graph may stay open for as long as the program runs.
package struct GraphRollover: Hashable, Sendable {
    /// The number of operations in a graph before the next one is started. It is larger than the
    /// number that most programs have waiting at once, because a dependency on another graph costs
    /// more than one within a graph.
    package static let operationsMax = 100_000
    /// The same number for a graph of which nine tenths have finished: a fifth of the number that
    /// is kept in memory by default, which may be exceeded by that much.
    package static let operationsMaxWhenQuiet = 10_000
    /// The bytes of inputs and outputs in a graph before the next one is started: a quarter of the
    /// bytes that are kept in memory by default.
    package static let bytesMax = 16 << 20
    /// How long operations are added to one graph. The time for which finished operations are kept
    /// begins with the end of their graph, so they may be dropped a day late.
    package static let ageMax = Duration.seconds(86_400)

    package var operationCount: Int
    /// Bytes of inputs that were added and of outputs that were returned.
    package var bytes: Int
    package let openedAt: Timestamp

    package init(operationCount: Int, bytes: Int, openedAt: Timestamp) {
        self.operationCount = operationCount
        self.bytes = bytes
        self.openedAt = openedAt
    }

    /// Whether this many more operations have to go into the next graph.
    ///
    /// - Parameter waiting: The operations of this graph that are not known to have finished.
    package func isFull(for count: Int, waiting: Int, at now: Timestamp) -> Bool {
        guard operationCount > 0 else { return false }
        let isQuiet = waiting < operationCount / 10
        return operationCount + count > Self.operationsMax
            || isQuiet && operationCount >= Self.operationsMaxWhenQuiet
            || bytes >= Self.bytesMax
            || now - openedAt >= Self.ageMax
    }
}
