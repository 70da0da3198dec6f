/// The name of a limit in errors and in the configuration.
@nonexhaustive
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
    case operationFiles
    case pathBytes
    case resources
    case labels
    case labelValues
    case demands

    /// A description of what it limits.
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
        case .operationFiles: "files that one operation produces and consumes"
        case .pathBytes: "bytes in a path"
        case .resources: "resources of an operation or a worker"
        case .labels: "labels of a worker, or requirements of an operation"
        case .labelValues: "values of one requirement"
        case .demands: "different combinations of resources and requirements in a graph"
        }
    }
}

/// The limits of the design, with their defaults. Exceeding one gives `Refusal.limitExceeded` or,
/// if the operation was accepted before, a failed outcome.
public struct Limits: Hashable, Sendable {
    /// Operations in one graph: a million, and the groups of repeated ones. The configuration may
    /// allow up to 10⁷.
    public var operationsPerGraph = 1 << 20
    /// Dependencies in one graph.
    public var edgesPerGraph = 10_000_000
    /// Bytes of a graph file, which is read before it is parsed.
    public var graphFileBytes = 256 << 20
    /// Operations in a YAML file: the parser keeps a tree of the whole file.
    public var yamlOperations = 100_000
    /// Levels of nesting in YAML and JSON.
    public var yamlDepth = 64
    /// Nodes that the aliases of a YAML file expand to: ten for each operation allowed.
    public var yamlAliasExpansion = 1_000_000
    /// UTF-8 bytes of a name of an operation, graph, queue, kind or key.
    public var nameBytes = 256
    /// Bytes of one input or output that is sent in a message.
    public var payloadBytes = 1 << 20
    /// Bytes of outputs given to one operation.
    public var inputsBytes = 1 << 30
    /// Bytes of outputs that are sent inside the dispatch of one operation. If there are more, the
    /// worker fetches the larger outputs.
    public var inlineInputBytes = 64 << 10
    /// Bytes of one chunk of an output that is fetched. A control message may have to wait for one
    /// chunk.
    public var chunkBytes = 256 << 10
    /// Chunks that a worker requests before the first of them has arrived.
    public var chunksAhead = 4
    /// Bytes of fetched outputs that a worker keeps in memory for other operations that need them.
    public var cachedBytes = 64 << 20
    /// Bytes of log output that are kept per operation: the last ones.
    public var logBytes = 1 << 20
    /// Bytes of one message: RabbitMQ 4 refuses more than 16 MiB.
    public var messageBytes = 8 << 20
    /// By how many bytes sealing can make a message longer: the header, the tag, and what a worker
    /// shows to join.
    package static let sealBytes = 64 << 10
    /// Bytes that are encoded and not yet accepted by the broker.
    public var outgoingBytes = 16 << 20
    /// Bytes of all operations that are dispatched and not finished.
    public var dispatchedBytes = 64 << 20
    /// Bytes of results that a worker keeps until they are acknowledged. When there are more, the
    /// worker starts nothing.
    public var retainedBytes = 64 << 20
    /// Bytes of unacknowledged events from one worker.
    public var eventBytesPerWorker = 1 << 20
    /// Bytes of unacknowledged events from all workers together.
    public var eventBytes = 256 << 20
    /// Bytes of the operations that a running operation adds at once, in their stored form: half a
    /// message.
    public var additionBytes = 4 << 20
    /// Operations that a running operation adds at once. A few bytes of an addition become some
    /// hundred bytes once they are decoded.
    public var additionOperations = 50_000
    /// Bytes that list the inputs of one operation in a dispatch: the names of its dependencies,
    /// and the location of each output that there may be. Together with the operation itself
    /// (`payloadBytes`) and the outputs sent inline (`inlineInputBytes`), the list fits into a
    /// message.
    public var inputListBytes = 6 << 20
    /// Unanswered additions by the running operations of one worker. A beat lists them.
    public var openRequests = 1_000
    /// Operations of one worker that wait for others and occupy no slot.
    public var yieldedOperations = 1_000
    /// Operations that a running operation waits for at once.
    public var awaitedOperations = 10_000
    /// Workers of one coordinator at a time.
    public var workers = 10_000
    /// Slots of one worker. A larger number is considered a typing error.
    public var slots = 4_096
    /// Events that a store keeps for listeners that reconnect: the last ones. A listener that was
    /// away for longer gets the current state instead of the events.
    package var storedEvents = 100_000
    /// Worker names that a coordinator keeps before it removes those that no stored attempt refers
    /// to. Each run of a worker process is one name.
    package var storedWorkers = 10_000
    /// Keys of additions to one graph for which the answers are kept: the last ones.
    package var additionKeys = 1_000
    /// Queues that one graph may name, or that may exist when a command creates one.
    public var queues = 10_000
    /// Kinds of operations in one graph. Workers are selected by kind.
    public var kinds = 10_000
    /// Keys for which one graph may set limits, or that may have one when a command sets another.
    public var keys = 10_000
    /// Files that one operation produces and consumes, together. A worker looks at each of them
    /// before it starts the process.
    public var operationFiles = 10_000
    /// Bytes of the path of one such file: what Linux takes at most.
    public var pathBytes = 4_095
    /// Resources that one operation asks for, or that one worker offers.
    public var resources = 16
    /// Labels that one worker has, or that one operation has requirements on.
    public var labels = 64
    /// Values that one requirement on a label lists.
    public var labelValues = 64
    /// Different combinations of resources and requirements in one graph. Each costs a lane in each
    /// of its queues, and a look at each worker.
    public var demands = 1_000
    /// How long an open graph may be idle before it is closed.
    public var openGraphIdle = Duration.seconds(7 * 86_400)

    /// Creates the default limits.
    public init() {}
}
