/// The name of a limit, as errors and configuration spell it.
public enum LimitName: String, Hashable, Sendable, Codable, CaseIterable, CustomStringConvertible {
    case operationsPerGraph
    case edgesPerGraph
    case graphFileBytes
    case yamlOperations
    case yamlDepth
    case yamlAliasExpansion
    case nameBytes
    case payloadBytes
    case inputsBytes
    case inlineInputBytes
    case chunkBytes
    case chunksAhead
    case cachedBytes
    case logBytes
    case messageBytes
    case outgoingBytes
    case dispatchedBytes
    case retainedBytes
    case eventBytesPerWorker
    case eventBytes
    case yieldedOperations
    case awaitedOperations
    case additionBytes
    case additionOperations
    case inputListBytes
    case openRequests
    case slots
    case queues
    case kinds
    case keys

    /// What it bounds, in words.
    public var description: String {
        switch self {
        case .operationsPerGraph: "operations in a graph"
        case .edgesPerGraph: "dependencies in a graph"
        case .graphFileBytes: "bytes in a graph file"
        case .yamlOperations: "operations in a YAML file (larger graphs: JSON Lines)"
        case .yamlDepth: "levels of nesting in a graph file"
        case .yamlAliasExpansion: "nodes that YAML aliases expand to"
        case .nameBytes: "bytes in a name"
        case .payloadBytes: "bytes in an input or output"
        case .inputsBytes: "bytes of outputs given to one operation"
        case .inlineInputBytes: "bytes of outputs that travel with an operation"
        case .chunkBytes: "bytes in a piece of an output"
        case .chunksAhead: "pieces of outputs on their way to a worker"
        case .cachedBytes: "bytes of outputs that a worker keeps for others"
        case .logBytes: "bytes of log kept for an operation"
        case .messageBytes: "bytes in a message"
        case .outgoingBytes: "bytes waiting to be sent"
        case .dispatchedBytes: "bytes dispatched and not finished"
        case .retainedBytes: "bytes of results that a worker keeps"
        case .eventBytesPerWorker: "bytes of events in flight from a worker"
        case .eventBytes: "bytes of events in flight"
        case .yieldedOperations: "operations of a worker that gave back their slot"
        case .awaitedOperations: "operations that one waits for at once"
        case .additionBytes: "bytes of operations added at once from inside an operation"
        case .additionOperations: "operations added at once from inside an operation"
        case .inputListBytes: "bytes that list the inputs of one operation"
        case .openRequests: "additions of running operations that a worker has open"
        case .slots: "slots of a worker"
        case .queues: "queues in a graph"
        case .kinds: "kinds of operations in a graph"
        case .keys: "keys with a limit of their own"
        }
    }
}

/// The limits of the design, each with its default. Exceeding one is
/// `Refusal.limitExceeded`, or an outcome where the operation was accepted already.
public struct Limits: Hashable, Sendable {
    /// Operations in one graph; 10⁷ may be allowed by configuration.
    public var operationsPerGraph = 1_000_000
    /// Dependencies in one graph.
    public var edgesPerGraph = 10_000_000
    /// Bytes of a graph file, read before it is parsed.
    public var graphFileBytes = 256 << 20
    /// Operations in a YAML file: its parser keeps a tree of the whole file.
    public var yamlOperations = 100_000
    /// Levels of nesting in YAML and JSON.
    public var yamlDepth = 64
    /// Nodes that the aliases of a YAML file expand to: ten for every operation that fits.
    public var yamlAliasExpansion = 1_000_000
    /// UTF-8 bytes of a name of an operation, graph, queue, kind or key.
    public var nameBytes = 256
    /// Bytes of one input or output that travels in a message.
    public var payloadBytes = 1 << 20
    /// Bytes of outputs given to one operation.
    public var inputsBytes = 1 << 30
    /// Bytes of outputs that travel inside the dispatch of one operation; beyond, the larger ones
    /// are fetched by the worker.
    public var inlineInputBytes = 64 << 10
    /// Bytes of one piece of an output that is fetched: what control may have to wait behind.
    public var chunkBytes = 256 << 10
    /// Pieces that a worker asks for before the first of them has come.
    public var chunksAhead = 4
    /// Bytes of fetched outputs that a worker holds in memory, for those who need the same.
    public var cachedBytes = 64 << 20
    /// Bytes of output kept per operation: the last ones.
    public var logBytes = 1 << 20
    /// Bytes of one message: RabbitMQ 4 refuses more than 16 MiB.
    public var messageBytes = 8 << 20
    /// Bytes encoded and not yet taken by the broker.
    public var outgoingBytes = 16 << 20
    /// Bytes of operations dispatched and not finished, in all.
    public var dispatchedBytes = 64 << 20
    /// Bytes of results that a worker keeps until they are acknowledged; beyond, it starts nothing.
    public var retainedBytes = 64 << 20
    /// Bytes of events from one worker that may be unacknowledged.
    public var eventBytesPerWorker = 1 << 20
    /// The same for all workers together.
    public var eventBytes = 256 << 20
    /// Bytes of what a running operation adds at once, as it is stored: half a message.
    public var additionBytes = 4 << 20
    /// Operations that a running operation adds at once: a few bytes of an addition become some
    /// hundred bytes once it is decoded.
    public var additionOperations = 50_000
    /// Bytes that list the inputs of one operation in a dispatch: the names of its dependencies,
    /// and for those that may leave something where that is. With the operation itself
    /// (`payloadBytes`) and what travels inline (`inlineInputBytes`) it fits a message.
    public var inputListBytes = 6 << 20
    /// Additions of running operations of one worker that have no verdict yet: a beat lists them.
    public var openRequests = 1_000
    /// Operations of one worker that wait for others without a slot.
    public var yieldedOperations = 1_000
    /// Operations that a running operation waits for at once.
    public var awaitedOperations = 10_000
    /// Slots of one worker: more is a typing error.
    public var slots = 4_096
    /// Events that a store keeps for listeners that come back: the last ones. Whoever was away
    /// for longer is shown what is, not what happened.
    package var storedEvents = 100_000
    /// Names of workers that a coordinator keeps, before it looks which of them no attempt has
    /// that is kept: each life of a worker process is one.
    package var storedWorkers = 10_000
    /// Keys of additions to one graph whose answers are remembered: those of the last ones.
    package var additionKeys = 1_000
    /// Queues named by one graph, or there are when a command makes one.
    public var queues = 10_000
    /// Kinds of operations of one graph: a worker is looked for by kind.
    public var kinds = 10_000
    /// Keys whose limit one graph names, or there are when a command names another.
    public var keys = 10_000
    /// How long an open graph may have nothing to do before it is closed.
    public var openGraphIdle = Duration.seconds(7 * 86_400)

    /// The limits of the design.
    public init() {}
}
