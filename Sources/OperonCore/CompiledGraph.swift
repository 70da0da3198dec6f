package import OperonModel

/// A graph in the form that the scheduler uses: numbers instead of names, equal policies stored
/// once. Made from a valid description.
package struct CompiledGraph: Sendable {
    package let name: String
    package internal(set) var topology: GraphTopology
    /// Queues by name, those with settings of their own first.
    package internal(set) var queues: [QueueSettings]
    /// How many of the queues have settings of their own: the others were only named.
    package internal(set) var definedQueueCount: Int
    /// Kinds of work by name, in order of appearance.
    package internal(set) var kinds: [String]
    /// Keys by name, in order of appearance.
    package let keys: [String]
    /// The limits of `inFlight`, by the indices of the keys that stand for groups. These keys
    /// belong to the graph alone, and give no lease. Only looked up.
    package internal(set) var inFlightLimits: [UInt32: Int] = [:]
    /// What operations need of their workers, in order of appearance. The first is nothing.
    package var demands = [ResourceDemand()]
    /// The keys whose limit the graph sets.
    package var keyLimits: [KeySettings] = []
    package internal(set) var policies: [OperationPolicy]
    /// Per operation: the index into `policies`.
    package internal(set) var policy: [UInt32]
    /// Per operation: the larger goes first among equal priorities.
    package internal(set) var rank: [UInt64]
    /// Per operation: the bytes of its contents in a message; 0: few. Empty: few for all
    /// operations.
    package var bytes: [UInt32] = []
    /// Dependencies on operations of other graphs, in the order of the dependents.
    package var outer: [OuterDependency] = []
    /// Whether the first failure cancels everything that is left.
    package var failFast = false

    /// The name in `keys` of a group that `inFlight` limits; the names of users' keys have no
    /// control characters.
    package static func groupKey(_ group: String) -> String { KeyState.groupPrefix + group }

    /// Makes a key that stands for a group, for generators.
    package mutating func limitInFlight(_ key: UInt32, to limit: Int) {
        inFlightLimits[key] = limit
    }

    /// Assembles a graph whose parts are known to fit, for generators and benchmarks.
    package init(
        name: String,
        topology: GraphTopology,
        queues: [QueueSettings],
        kinds: [String],
        keys: [String],
        policies: [OperationPolicy],
        policy: [UInt32],
        rank: [UInt64]
    ) {
        precondition(policy.count == topology.operationCount, "one policy per operation")
        precondition(rank.count == topology.operationCount, "one rank per operation")
        self.name = name
        self.topology = topology
        self.queues = queues
        definedQueueCount = queues.count
        self.kinds = kinds
        self.keys = keys
        self.policies = policies
        self.policy = policy
        self.rank = rank
    }
}

/// The properties that many operations of a graph have in common.
package struct OperationPolicy: Hashable, Sendable {
    /// Index into the graph's `queues`.
    package var queue: UInt32 = 0
    /// Index into the graph's `kinds`.
    package var kind: UInt32 = 0
    /// `nil`: the priority of the queue.
    package var priority: QueuePriority?
    package var retry: RetryPolicy = .never
    package var expectedDuration: Duration?
    package var delay: Duration?
    package var notBefore: WallTime?
    package var deadline: WallTime?
    /// Indices into the graph's `keys`.
    package var keys: [UInt32] = []
    /// Index into the graph's `demands`.
    package var demand: UInt32 = 0
    /// Once the operation will be skipped, its other dependencies are cancelled.
    package var cancelsSiblings = false
    /// For an external operation, which no worker ends: the longest time that an attempt may take.
    package var timeout: Duration?

    package init() {}
}

// MARK: - Compiling

extension CompiledGraph {
    /// An operation of at most this many bytes counts as none: reaching the limit would take
    /// sixteen thousand such operations in flight at once.
    static let littleBytes = 4_096

    /// Finds an existing operation by the name that a dependency uses.
    package typealias Resolver = (String) -> OperationID?

    /// Checks a description and numbers it. Nothing is kept of a description that is refused.
    ///
    /// - Parameter resolve: finds what dependencies name outside the graph: operations of other
    ///   graphs.
    /// - Throws: `duplicateOperation`, `unknownOperation`, `dependencyCycle`, `invalid` or
    ///   `limitExceeded`.
    package static func compile(
        _ graph: GraphDescription,
        limits: Limits = Limits(),
        resolve: Resolver = { _ in nil }
    ) throws(Refusal) -> CompiledGraph {
        try check(graph, limits: limits)
        var compiler = GraphCompiler(limits: limits)
        try compiler.number(graph)
        try compiler.connect(graph, resolve: resolve)
        let topology = compiler.inner
        let rank = try rank(graph, topology)
        var compiled = CompiledGraph(
            name: graph.name,
            topology: topology,
            queues: compiler.queues,
            kinds: compiler.kinds.names,
            keys: compiler.keys.names,
            policies: compiler.policies,
            policy: compiler.policy,
            rank: rank
        )
        compiled.definedQueueCount = graph.queues.count
        compiled.demands = compiler.demands
        compiled.keyLimits = graph.keys
        compiled.inFlightLimits = compiler.inFlightLimits
        compiled.outer = compiler.outer
        compiled.bytes = bytes(of: graph)
        return compiled
    }

    /// The bytes of each operation that has more than `littleBytes`, or nothing if none has.
    static func bytes(of graph: GraphDescription) -> [UInt32] {
        let bytes = graph.operations.map { countedBytes($0.work.dispatchedByteCount) }
        return bytes.contains { $0 > 0 } ? bytes : []
    }

    static func countedBytes(_ count: Int) -> UInt32 {
        count > littleBytes ? UInt32(clamping: count) : 0
    }

    /// In the order of the critical path, the operation with the longest path to the end ranks
    /// first, and an unknown duration counts as one second. In the order of submission all rank
    /// alike.
    ///
    /// - Throws: `dependencyCycle`.
    static func rank(
        _ graph: GraphDescription,
        _ topology: GraphTopology
    ) throws(Refusal) -> [UInt64] {
        let order: [UInt32]
        switch topology.sorted() {
        case .order(let sorted): order = sorted
        case .cycle(let cycle):
            let names = cycle.map { graph.operations[Int($0)].name }
            throw .dependencyCycle(path: names + names.prefix(1))
        }
        switch graph.order {
        case .criticalPath:
            return topology.criticalPaths(
                durations: graph.operations.map { $0.rankDuration.rankNanoseconds },
                order: order
            )
        case .submission: return [UInt64](repeating: 0, count: graph.operations.count)
        }
    }

    static func check(_ graph: GraphDescription, limits: Limits) throws(Refusal) {
        try graph.check(limits)
        for operation in graph.operations {
            try LimitName.payloadBytes.check(operation.work.byteCount, limits.payloadBytes)
        }
        try InputList.check(graph, limits)
    }
}

extension Work {
    /// About how many bytes it takes in a message to a worker.
    package var dispatchedByteCount: Int { isExternal ? 0 : byteCount }

    /// The bytes of its contents: everything that is encoded, with `textBytes` for each text of a
    /// command.
    package var byteCount: Int {
        switch self {
        case .nothing, .wait: 0
        case .registered(_, let input), .external(let input): input.encodedByteCount
        case .command(let command): command.byteCount
        }
    }

    /// What a text costs in addition to its bytes: a pointer to it, for the program that is
    /// started. Counting it also ensures that no command within its limit has more texts than a
    /// message may have.
    fileprivate static var textBytes: Int { 8 }
}

extension Payload {
    /// The content type that nearly every payload has is not encoded.
    fileprivate var encodedByteCount: Int {
        bytes.count + (contentType == Payload.json ? 0 : contentType.utf8.count)
    }
}

extension CommandDescription {
    fileprivate var byteCount: Int {
        func size(_ text: String) -> Int { text.utf8.count + Work.textBytes }
        var bytes = arguments.reduce(0) { $0 + size($1) }
        // A sum, so the order of the dictionary does not matter.
        bytes += environment.reduce(0) { $0 + size($1.key) + size($1.value) }
        bytes += secrets.reduce(0) { $0 + size($1.key) + size($1.value) }
        bytes += inheritEnvironment.reduce(0) { $0 + size($1) }
        bytes += produces.reduce(0) { $0 + size($1) } + consumes.reduce(0) { $0 + size($1) }
        return bytes + (directory.map(size) ?? 0)
    }
}

extension Duration? {
    /// The nanoseconds that the critical path counts for this duration; `nil`: the duration is not
    /// known.
    var rankNanoseconds: UInt64 { UInt64(max(0, (self ?? .seconds(1)).nanoseconds)) }
}

extension OperationDescription {
    /// The duration that the critical path counts for it.
    package var rankDuration: Duration? {
        if let expectedDuration { return expectedDuration }
        return switch work {
        case .wait(let duration): duration
        case .nothing: .zero
        case .command, .registered, .external: nil
        }
    }
}
