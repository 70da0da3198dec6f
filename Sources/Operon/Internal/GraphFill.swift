package import OperonModel

/// How full the graph is that a program's operations go into. What has ended is dropped by whole
/// graphs, so none may stay open for as long as the program runs.
package struct GraphFill: Hashable, Sendable {
    /// Operations that a graph gets before the next one is begun: more than most programs have
    /// waiting at once, for what depends on another graph costs more than on its own.
    package static let operationsMax = 100_000
    /// The same for a graph of which nine tenths have ended: a fifth of what is kept in memory by
    /// default, which is by so much exceeded.
    package static let operationsMaxWhenQuiet = 10_000
    /// Bytes of inputs and outputs that a graph gets before the next one is begun: a quarter of
    /// what is kept in memory by default.
    package static let bytesMax = 16 << 20
    /// How long a graph is added to: the time for which what has ended is kept begins with the end
    /// of its graph, so a day is what it may be late by.
    package static let ageMax = Duration.seconds(86_400)

    package var operationCount: Int
    /// Of inputs that were added, and of outputs that came back.
    package var bytes: Int
    package let openedAt: Timestamp

    package init(operationCount: Int, bytes: Int, openedAt: Timestamp) {
        self.operationCount = operationCount
        self.bytes = bytes
        self.openedAt = openedAt
    }

    /// Whether so many more belong into the next one.
    ///
    /// - Parameter waiting: Operations of this one that have not ended, as far as is known.
    package func isFull(for count: Int, waiting: Int, at now: Timestamp) -> Bool {
        guard operationCount > 0 else { return false }
        let isQuiet = waiting < operationCount / 10
        return operationCount + count > Self.operationsMax
            || isQuiet && operationCount >= Self.operationsMaxWhenQuiet
            || bytes >= Self.bytesMax
            || now - openedAt >= Self.ageMax
    }
}
