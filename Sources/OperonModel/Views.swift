// The values that clients see. They are also the JSON of the HTTP API and of `--output json`.
// Within a version fields may be added, but none is renamed or removed. Times are RFC 3339 in UTC,
// durations are seconds.

/// The status of a graph.
package enum GraphStatus: String, Hashable, Sendable, Codable, CaseIterable {
    /// At least one operation is not finished.
    case running
    /// The graph is suspended and starts nothing.
    case suspended
    /// The graph was cancelled, and some operations have not ended.
    case cancelling
    /// Every operation has its outcome, and the graph is open for more.
    case idle
    /// Every operation has its outcome, none failed or was cancelled, and the graph is closed.
    case finished
    /// Every operation has its outcome, at least one failed, and the graph is closed.
    case failed
    /// Every operation has its outcome, none failed, at least one was cancelled, and the graph is
    /// closed.
    case cancelled

    /// Whether nothing of the graph will run, unless somebody retries it.
    package var isFinished: Bool {
        switch self {
        case .running, .suspended, .cancelling, .idle: false
        case .finished, .failed, .cancelled: true
        }
    }
}

/// Numbers of operations by state, and of finished operations by outcome.
package struct StateCounts: Hashable, Sendable, Codable {
    package var pending = 0
    package var ready = 0
    package var dispatched = 0
    package var executing = 0
    package var succeeded = 0
    package var failed = 0
    package var cancelled = 0
    package var skipped = 0

    package init() {}
    package var total: Int { unfinished + finished }
    package var unfinished: Int { pending + ready + dispatched + executing }
    package var finished: Int { succeeded + failed + cancelled + skipped }
}

package struct GraphView: Hashable, Sendable, Codable {
    package var id: UInt32
    package var name: String
    package var status: GraphStatus
    /// Whether operations may be added.
    package var isOpen: Bool
    package var suspension: SuspensionView?
    package var cancelReason: String?
    package var submittedBy: String?
    package var submittedAt: TimeText
    package var finishedAt: TimeText?
    package var counts: StateCounts
    /// How many external operations wait for somebody to complete them; `nil`: none.
    package var awaitingCompletion: Int?
    /// How many of those that succeeded did so without a process, because their files were up to
    /// date; `nil`: none.
    package var upToDate: Int?
    /// The exit code for a client that waits for the graph: 1 if an operation failed, even if a
    /// failure handler ran, else 3 if one was cancelled, else 7 if one was skipped for lack of a
    /// success, else 0. `nil`: the graph is open, or an operation has no outcome.
    package var exitCode: Int32?
    /// In the answer to an addition: the index of the first operation that was added.
    package var firstAdded: UInt32?
    /// In the answer to a submission or an addition: what no worker could run; `nil`: nothing.
    package var warnings: [WarningView]?

    package init(
        id: UInt32,
        name: String,
        status: GraphStatus,
        isOpen: Bool,
        submittedAt: TimeText,
        counts: StateCounts
    ) {
        self.id = id
        self.name = name
        self.status = status
        self.isOpen = isOpen
        self.submittedAt = submittedAt
        self.counts = counts
    }
}

package struct SuspensionView: Hashable, Sendable, Codable {
    package var by: String?
    package var reason: String?
    package var until: TimeText?

    package init(by: String?, reason: String?, until: TimeText?) {
        self.by = by
        self.reason = reason
        self.until = until
    }
}

/// A wall-clock time as RFC 3339 text in UTC, to the nanosecond if it has a fraction.
package struct TimeText: Hashable, Sendable, Codable, Comparable, CustomStringConvertible {
    package let time: WallTime

    package init(_ time: WallTime) { self.time = time }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let time = DateText.moment(text) else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "“\(text)” is no RFC 3339 time"
            )
        }
        self.time = time
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }

    package static func < (left: TimeText, right: TimeText) -> Bool { left.time < right.time }
    package var description: String { DateText.text(time) }
}

/// An operation with the names and numbers by which a person knows it.
package struct OperationName: Hashable, Sendable, Codable {
    package var graph: UInt32
    package var index: UInt32
    package var name: String

    package init(graph: UInt32, index: UInt32, name: String) {
        self.graph = graph
        self.index = index
        self.name = name
    }
}

/// One row of a list of operations.
package struct OperationView: Hashable, Sendable, Codable {
    package var graph: UInt32
    package var index: UInt32
    package var name: String
    package var kind: String
    package var queue: String
    package var priority: QueuePriority
    package var state: OperationState
    package var outcome: OutcomeKind?
    /// Whether it succeeded without a process, because its files were up to date; `nil`: no.
    package var isUpToDate: Bool?
    package var error: ErrorView?
    /// Why the operation was cancelled.
    package var reason: String?
    /// The dependency that caused a skipped operation to be skipped.
    package var skippedFor: OperationName?
    package var isCancelRequested = false
    /// The number of attempts so far, in all rounds.
    package var attempts: UInt32 = 0
    package var round: UInt32 = 0
    package var finishedAt: TimeText?
    /// The latest progress of a running operation; `nil`: it reported none, or the report was lost.
    package var progress: ReportedProgress?

    package init(
        graph: UInt32,
        index: UInt32,
        name: String,
        kind: String,
        queue: String,
        priority: QueuePriority,
        state: OperationState
    ) {
        self.graph = graph
        self.index = index
        self.name = name
        self.kind = kind
        self.queue = queue
        self.priority = priority
        self.state = state
    }
}

package struct AttemptView: Hashable, Sendable, Codable {
    package var id: String
    package var number: UInt32
    /// Empty: no worker runs it, because an external party completes it.
    package var worker: String
    package var grantedAt: TimeText
    package var startedAt: TimeText?
    package var endedAt: TimeText?
    /// `succeeded`, `failed`, `cancelled`, `returned`, `lost`, `crashed`; `nil`: in flight.
    package var ending: String?
    /// Whether it succeeded without a process, because its files were up to date; `nil`: no.
    package var isUpToDate: Bool?
    package var error: ErrorView?

    package init(id: String, number: UInt32, worker: String, grantedAt: TimeText) {
        self.id = id
        self.number = number
        self.worker = worker
        self.grantedAt = grantedAt
    }
}

package struct DependencyView: Hashable, Sendable, Codable {
    package var operation: OperationName
    package var condition: DependencyCondition
    package var state: OperationState
    package var outcome: OutcomeKind?

    package init(
        operation: OperationName,
        condition: DependencyCondition,
        state: OperationState,
        outcome: OutcomeKind?
    ) {
        self.operation = operation
        self.condition = condition
        self.state = state
        self.outcome = outcome
    }
}

/// All that is known of one operation.
package struct OperationDetail: Hashable, Sendable, Codable {
    package var operation: OperationView
    package var summary: String?
    package var graphName: String
    /// The longest time that one attempt may run, in seconds; `nil`: unlimited.
    package var timeout: Double?
    /// `QualityOfService.name`; `nil`: the default.
    package var qualityOfService: String?
    /// `nil`: it is no command.
    package var command: CommandDetail?
    /// `nil`: it is not retried.
    package var retry: RetryDetail?
    /// The operation's own input, if it is text; of a long one the beginning.
    package var input: String?
    package var dependencies: [DependencyView] = []
    package var dependents: [OperationName] = []
    /// How many more dependents there are than those listed.
    package var moreDependents = 0
    package var attempts: [AttemptView] = []
    package var reasons: [ReasonView] = []

    package init(operation: OperationView, graphName: String) {
        self.operation = operation
        self.graphName = graphName
    }
}

/// One reason why an operation is not running.
package struct ReasonView: Hashable, Sendable, Codable {
    /// One of `codes`.
    package var code: String
    /// A sentence for a person.
    package var text: String
    /// The operations that the reason refers to: those it waits for, or those that hold the limit
    /// or the key.
    package var operations: [OperationName] = []
    /// How many more operations there are than those listed.
    package var more = 0
    package var until: TimeText?

    package init(code: String, text: String) {
        self.code = code
        self.text = text
    }

    /// Stable: codes are never renamed or removed.
    package static let codes: Set<String> = [
        "dependencies", "operationSuspended", "graphSuspended", "queueSuspended", "queueLimit",
        "notBefore", "retryAt", "keyHeld", "noWorkerForKind", "noWorkerForQueue",
        "noWorkerForResources", "resourcesTaken", "reserved", "noFreeSlot",
        "dispatched", "dispatchedBytes", "disconnected", "cancelRequested", "graphCancelled",
        "leaving", "awaits", "awaitsSlot", "awaitsCompletion", "notYet", "queueRate", "keyRate",
        "groupLimit",
    ]
}

package struct Explanation: Hashable, Sendable, Codable {
    package var operation: OperationView
    /// Empty for an operation that is finished, or that runs and waits for nothing.
    package var reasons: [ReasonView]
    /// For a skipped operation: the chain from its direct cause to the root of the skipping. For a
    /// waiting operation: the chain from the first operation that it waits for, continued with the
    /// first operation that each of them waits for, to one that waits for none.
    package var chain: [OperationView] = []
    /// How many operations are left out before the last one of the chain; `nil`: none.
    package var leftOut: Int?
    /// Why the last operation of the chain is not running; `nil`: it runs, or has ended.
    package var rootReasons: [ReasonView]?

    package init(operation: OperationView, reasons: [ReasonView]) {
        self.operation = operation
        self.reasons = reasons
    }
}

package struct QueueView: Hashable, Sendable, Codable {
    package var name: String
    package var maxConcurrentOperationCount: Int?
    package var priority: QueuePriority
    package var suspension: SuspensionView?
    package var isSuspended: Bool
    /// How often its operations may start, such as `10/s`; `nil`: as often as there is room.
    package var rate: String?
    /// How many may start at once after a pause; only with a rate.
    package var burst: Int?
    package var ready: Int
    /// Operations that are dispatched or executing.
    package var inFlight: Int
    /// Operations without an outcome, of all graphs, including those that wait for dependencies.
    package var unfinished: Int

    package init(
        name: String,
        maxConcurrentOperationCount: Int?,
        priority: QueuePriority,
        isSuspended: Bool,
        ready: Int,
        inFlight: Int,
        unfinished: Int
    ) {
        self.name = name
        self.maxConcurrentOperationCount = maxConcurrentOperationCount
        self.priority = priority
        self.isSuspended = isSuspended
        self.ready = ready
        self.inFlight = inFlight
        self.unfinished = unfinished
    }
}

/// The changes of a `queue set` command; `nil` leaves a setting unchanged.
package struct QueueChange: Hashable, Sendable, Codable {
    package var maxConcurrentOperationCount: Int?
    /// Removes the limit; not together with `maxConcurrentOperationCount`.
    package var isUnlimited: Bool?
    package var priority: QueuePriority?
    /// A rate such as `10/s`.
    package var rate: String?
    /// Only together with `rate`.
    package var burst: Int?
    /// Removes the rate; not together with `rate`.
    package var hasNoRate: Bool?

    package init() {}
}

/// A key that operations hold while they run.
package struct KeyView: Hashable, Sendable, Codable {
    package var name: String
    /// How many operations may hold the key at a time. Operations that hold it when the limit is
    /// lowered keep it.
    package var limit: Int
    /// How often operations that hold the key may start, such as `10/s`; `nil`: as often as there
    /// is room.
    package var rate: String?
    /// How many may start at once after a pause; only with a rate.
    package var burst: Int?
    /// How many operations hold the key.
    package var held: Int
    /// How many ready operations need the key.
    package var waiting: Int
    /// The operations that hold the key, at most a hundred.
    package var holders: [OperationName] = []
    /// The first ten ready operations that need the key, by graph and place in the graph, which is
    /// not the order in which they get it; `nil`: none.
    package var waiters: [OperationName]?

    package init(name: String, limit: Int, held: Int, waiting: Int) {
        self.name = name
        self.limit = limit
        self.held = held
        self.waiting = waiting
    }

    /// The most holders that one answer lists.
    package static let holdersMax = 100
}

package struct ClusterView: Hashable, Sendable, Codable {
    package var version: String
    package var reign: String
    package var epoch: UInt32
    package var startedAt: TimeText
    package var now: TimeText
    /// `ok`, or a sentence that says what is wrong; `none` if all workers are in the coordinator's
    /// process.
    package var broker: String
    /// `ok`, or a sentence that says what is wrong.
    package var store: String
    package var workers: Int
    package var slots: Int
    package var busySlots: Int
    package var openGraphs: Int
    package var counts: StateCounts
    /// What the workers that take operations offer in all; `nil`: nothing.
    package var resources: [ResourceView]?
    /// What waits or runs, by what it asks of its worker: first what no worker could ever run, then
    /// what has the most ready operations; `nil`: nothing.
    package var demands: [DemandView]?
    /// How many more demands there are than those listed; `nil`: none.
    package var moreDemands: Int?
    /// The number of the last event; 0: there was none; `nil`: the answer does not include it.
    package var lastEvent: UInt64?
    /// `nil`: nothing is measured.
    package var latency: LatencyView?

    /// `broker` of a coordinator that needs none.
    package static let noBroker = "none"
    /// `broker` and `store` if nothing is wrong.
    package static let well = "ok"

    package init(
        version: String,
        reign: String,
        epoch: UInt32,
        startedAt: TimeText,
        now: TimeText,
        broker: String,
        store: String,
        workers: Int,
        slots: Int,
        busySlots: Int,
        openGraphs: Int,
        counts: StateCounts
    ) {
        self.version = version
        self.reign = reign
        self.epoch = epoch
        self.startedAt = startedAt
        self.now = now
        self.broker = broker
        self.store = store
        self.workers = workers
        self.slots = slots
        self.busySlots = busySlots
        self.openGraphs = openGraphs
        self.counts = counts
    }
}

/// The effect of a command.
package struct CommandView: Hashable, Sendable, Codable {
    /// How many operations the command applied to.
    package var affected: Int
    /// How many of those the command finished at once.
    package var finished: Int
    /// How many of those are in flight: they were asked to stop, or continue.
    package var running: Int
    /// How many dependents the command released or left waiting for operations in flight.
    package var released: Int
    /// Whether no further start is possible.
    package var isEffective: Bool
    /// The names of a few of the operations.
    package var named: [OperationName] = []

    package init(affected: Int, finished: Int, running: Int, released: Int, isEffective: Bool) {
        self.affected = affected
        self.finished = finished
        self.running = running
        self.released = released
        self.isEffective = isEffective
    }
}

/// One cluster event.
package struct EventView: Hashable, Sendable, Codable {
    /// The number of the event, from 1, without gaps within a reign.
    package var sequence: UInt64
    package var at: TimeText
    package var kind: EventKind
    package var graph: UInt32?
    package var graphName: String?
    /// Of several operations, the first.
    package var operation: OperationName?
    /// The number of operations with successive indices that the event is about; `nil`: at most
    /// one.
    package var count: UInt32?
    package var outcome: OutcomeKind?
    /// Whether it succeeded without a process, because its files were up to date; `nil`: no.
    package var isUpToDate: Bool?
    package var attempt: String?
    package var ending: String?
    package var error: ErrorView?
    package var worker: String?
    package var queue: String?
    package var key: String?
    package var trigger: String?
    /// The number of the firing of that trigger, from 1; `nil`: the event is about none.
    package var firing: UInt64?
    /// The name of the client that asked for what the event reports; `nil`: nobody did, or the
    /// client has no name.
    package var by: String?
    package var reason: String?

    package init(sequence: UInt64, at: TimeText, kind: EventKind) {
        self.sequence = sequence
        self.at = at
        self.kind = kind
    }
}

/// The kind of an event by its name. The name of a kind that only a later version knows is kept.
package struct EventKind: RawRepresentable, Hashable, Sendable, Codable {
    package let rawValue: String

    package init(rawValue: String) { self.rawValue = rawValue }

    package init(_ kind: ClusterEvent.Kind) { rawValue = kind.name }

    /// `nil`: only a later version knows the kind.
    package var known: ClusterEvent.Kind? { Self.byName[rawValue] }

    private static let byName = Dictionary(
        uniqueKeysWithValues: ClusterEvent.Kind.allCases.map { ($0.name, $0) }
    )
}

package struct GraphPage: Hashable, Sendable, Codable {
    package var graphs: [GraphView]
    /// The value of `after` for the next page; `nil`: this was the last page.
    package var next: UInt32?

    package init(graphs: [GraphView], next: UInt32?) {
        self.graphs = graphs
        self.next = next
    }
}

package struct OperationPage: Hashable, Sendable, Codable {
    package var operations: [OperationView]
    package var next: UInt32?
    /// The title of the box of the picture that was asked for; `nil`: none was.
    package var box: String?

    package init(operations: [OperationView], next: UInt32?) {
        self.operations = operations
        self.next = next
    }
}

/// One page of the operations of a queue, ordered by graph.
package struct QueuePage: Hashable, Sendable, Codable {
    package var operations: [OperationView]
    /// The value of `after` for the next page; `nil`: this was the last page.
    package var next: String?

    package init(operations: [OperationView], next: String?) {
        self.operations = operations
        self.next = next
    }
}
