/// How much of what has ended a coordinator keeps, with outputs, logs and attempts. What is beyond
/// any of these bounds is dropped, the oldest first, a whole graph at a time; but never what an
/// operation without an outcome depends on.
///
/// Of what is dropped it stays known how each operation ended, so that others may still depend on
/// it.
public struct Retention: Hashable, Sendable {
    /// A graph that ended longer ago is dropped; `nil`: however long ago.
    public var time: Duration?
    /// So many graphs that ended are kept, and what ends between two looks: a tenth of them, and no
    /// more than 1,000; `nil`: however many.
    public var graphs: Int?
    /// A graph is dropped if those that ended after it have so many operations; `nil`: however many
    /// those have.
    public var operations: Int?
    /// The same with bytes of inputs, outputs and logs; for a store in memory only.
    package var bytes: Int?

    /// What is beyond any of these bounds is dropped; without any, all is kept for ever.
    public init(time: Duration? = nil, graphs: Int? = nil, operations: Int? = nil) {
        self.time = time
        self.graphs = graphs
        self.operations = operations
    }

    /// For a program that keeps nothing beyond its own life, and may hold on to values by its
    /// handles: the last 50,000 operations, which take about a kilobyte each beside their inputs
    /// and outputs, and no more than 64 MiB of those.
    public static var inMemory: Retention {
        var retention = Retention(operations: 50_000)
        retention.bytes = 64 << 20
        return retention
    }

    /// For a database of a program's own: 30 days, and the last 1,000,000 operations.
    public static var onDisk: Retention {
        Retention(time: .seconds(30 * 86_400), operations: 1_000_000)
    }

    /// Whether anything is ever dropped.
    package var isBounded: Bool {
        time != nil || graphs != nil || operations != nil || bytes != nil
    }
}
