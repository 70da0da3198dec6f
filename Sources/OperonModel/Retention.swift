/// How many finished graphs a coordinator keeps, with their outputs, logs and attempts. Graphs
/// beyond any of these bounds are dropped, oldest first, always whole. A graph that an operation
/// without an outcome depends on is never dropped.
///
/// The outcomes of the operations of a dropped graph stay known, so that other operations can still
/// depend on them.
public struct Retention: Hashable, Sendable {
    /// Graphs that finished longer ago than this are dropped; `nil`: no bound.
    public var time: Duration?
    /// How many finished graphs are kept; `nil`: no bound. Between two checks this may be exceeded
    /// by a tenth, and by no more than 1,000 graphs.
    public var graphs: Int?
    /// A graph is dropped once the graphs that finished after it have this many operations; `nil`:
    /// no bound.
    public var operations: Int?
    /// The same bound for bytes of inputs, outputs and logs; for a store in memory only.
    package var bytes: Int?

    /// Creates a retention with these bounds. Without any bound, everything is kept forever.
    public init(time: Duration? = nil, graphs: Int? = nil, operations: Int? = nil) {
        self.time = time
        self.graphs = graphs
        self.operations = operations
    }

    /// For a program that keeps nothing after it ends, and whose handles may still refer to values:
    /// the last 50,000 operations, and at most 64 MiB of inputs and outputs. Each operation takes
    /// about a kilobyte besides its input and output.
    public static var inMemory: Retention {
        var retention = Retention(operations: 50_000)
        retention.bytes = 64 << 20
        return retention
    }

    /// For a program's own database: 30 days, and the last 1,000,000 operations.
    public static var onDisk: Retention {
        Retention(time: .seconds(30 * 86_400), operations: 1_000_000)
    }

    /// Whether graphs are ever dropped.
    package var isBounded: Bool {
        time != nil || graphs != nil || operations != nil || bytes != nil
    }
}
