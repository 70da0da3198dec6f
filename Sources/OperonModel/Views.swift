// What clients are shown. The same values are the JSON of the HTTP API and of `--output json`:
// fields may be added, none is renamed or taken away within a version. Times are RFC 3339 in UTC,
// durations are seconds.

/// Where a graph is in its life.
package enum GraphStatus: String, Hashable, Sendable, Codable, CaseIterable {
    /// Something of it is not finished.
    case running
    /// It starts nothing.
    case suspended
    /// It was cancelled, and some of it has not ended.
    case cancelling
    /// Everything has its outcome, and more may be added.
    case idle
    /// Everything has its outcome, and nothing can be added.
    case finished
}

/// Operations by state, finished ones by outcome.
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
    /// Every operation finished, and none failed for good; a failure that a handler was there for
    /// is one still. The exit code of whoever waits: 0, 1, 3 or 7.
    package var exitCode: Int32?
    /// In the answer to an addition: the number of the first operation that was added.
    package var firstAdded: UInt32?

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

/// A moment of the calendar as RFC 3339 text in UTC, to the nanosecond if need be.
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

/// An operation named so that a person knows it.
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

/// One line of a list of operations.
package struct OperationView: Hashable, Sendable, Codable {
    package var graph: UInt32
    package var index: UInt32
    package var name: String
    package var kind: String
    package var queue: String
    package var priority: QueuePriority
    package var state: OperationState
    package var outcome: OutcomeKind?
    package var error: ErrorView?
    /// Of a cancelled operation.
    package var reason: String?
    /// The dependency that a skipped operation was skipped for.
    package var skippedFor: OperationName?
    package var isCancelRequested = false
    /// Attempts so far, of all rounds.
    package var attempts: UInt32 = 0
    package var round: UInt32 = 0
    package var finishedAt: TimeText?
    /// The latest word of one that runs; `nil`: it said nothing, or that was lost.
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
    /// Empty: no worker has it, as somebody outside is to complete it.
    package var worker: String
    package var grantedAt: TimeText
    package var startedAt: TimeText?
    package var endedAt: TimeText?
    /// `succeeded`, `failed`, `cancelled`, `returned`, `lost`, `crashed`; `nil`: in flight.
    package var ending: String?
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

/// One operation, whole.
package struct OperationDetail: Hashable, Sendable, Codable {
    package var operation: OperationView
    package var summary: String?
    package var graphName: String
    /// Seconds that one attempt may take; `nil`: any time.
    package var timeout: Double?
    /// `QualityOfService.name`, where it is not the default.
    package var qualityOfService: String?
    package var dependencies: [DependencyView] = []
    package var dependents: [OperationName] = []
    /// Dependents beyond those listed.
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
    /// The operations it is about: those it waits for, or that hold the limit or the key.
    package var operations: [OperationName] = []
    /// Operations beyond those listed.
    package var more = 0
    package var until: TimeText?

    package init(code: String, text: String) {
        self.code = code
        self.text = text
    }

    /// Stable: none is renamed or taken away.
    package static let codes: Set<String> = [
        "dependencies", "operationSuspended", "graphSuspended", "queueSuspended", "queueLimit",
        "notBefore", "retryAt", "keyHeld", "noWorkerForKind", "noWorkerForQueue", "noFreeSlot",
        "dispatched", "dispatchedBytes", "disconnected", "cancelRequested", "graphCancelled",
        "leaving", "awaits", "awaitsSlot", "awaitsCompletion", "notYet",
    ]
}

package struct Explanation: Hashable, Sendable, Codable {
    package var operation: OperationView
    /// Empty for one that is finished, or that runs and waits for nothing.
    package var reasons: [ReasonView]
    /// For a skipped operation: from its direct cause to the root of the skipping. For one that
    /// waits for others: from the first of them, by the first that each waits for in turn, to one
    /// that waits for none.
    package var chain: [OperationView] = []
    /// Operations of the chain that are left out before its last; `nil`: none.
    package var leftOut: Int?
    /// Why the last of the chain is not running; `nil`: it runs, or has ended.
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
    package var ready: Int
    /// Dispatched or executing.
    package var inFlight: Int
    /// Whatever has no outcome yet, of all graphs; what waits for others as well.
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

/// What `queue set` changes; `nil` leaves as it is.
package struct QueueChange: Hashable, Sendable, Codable {
    package var maxConcurrentOperationCount: Int?
    /// Take the limit away; not together with `maxConcurrentOperationCount`.
    package var isUnlimited: Bool?
    package var priority: QueuePriority?

    package init() {}
}

/// A name that operations hold while they run.
package struct KeyView: Hashable, Sendable, Codable {
    package var name: String
    /// How many may hold it at a time; those that had it before it was lowered keep it.
    package var limit: Int
    /// How many do.
    package var held: Int
    /// Ready operations that need it.
    package var waiting: Int
    /// Those that hold it, at most a hundred.
    package var holders: [OperationName] = []

    package init(name: String, limit: Int, held: Int, waiting: Int) {
        self.name = name
        self.limit = limit
        self.held = held
        self.waiting = waiting
    }

    /// Holders named in one answer.
    package static let holdersMax = 100
}

package struct WorkerView: Hashable, Sendable, Codable {
    package var id: String
    package var name: String
    package var host: String
    package var slots: Int
    package var busySlots: Int
    /// Attempts it holds, running or not.
    package var held: Int
    /// `alive`, `draining`, `gone`.
    package var status: String
    package var queues: [String]
    package var kinds: [String]
    /// It runs other kinds as well, whatever comes; `nil`: it does not.
    package var runsAnyKind: Bool?
    package var heardSecondsAgo: Double

    package init(
        id: String,
        name: String,
        host: String,
        slots: Int,
        busySlots: Int,
        held: Int,
        status: String,
        queues: [String],
        kinds: [String],
        heardSecondsAgo: Double
    ) {
        self.id = id
        self.name = name
        self.host = host
        self.slots = slots
        self.busySlots = busySlots
        self.held = held
        self.status = status
        self.queues = queues
        self.kinds = kinds
        self.heardSecondsAgo = heardSecondsAgo
    }
}

package struct ClusterView: Hashable, Sendable, Codable {
    package var version: String
    package var reign: String
    package var epoch: UInt32
    package var startedAt: TimeText
    package var now: TimeText
    /// `ok`, or what is wrong: a sentence.
    package var broker: String
    package var store: String
    package var workers: Int
    package var slots: Int
    package var busySlots: Int
    package var openGraphs: Int
    package var counts: StateCounts
    /// The number of the last event so far; 0: there was none; `nil`: it is not told.
    package var lastEvent: UInt64?

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

/// What a command did.
package struct CommandView: Hashable, Sendable, Codable {
    /// Operations it acted on.
    package var affected: Int
    /// Of those, the ones that ended by it at once.
    package var finished: Int
    /// Of those, the ones that run and were asked to stop, or run on.
    package var running: Int
    /// Dependents that it released or that wait on for what runs.
    package var released: Int
    /// No start is possible any more.
    package var isEffective: Bool
    /// Names, at most a few.
    package var named: [OperationName] = []

    package init(affected: Int, finished: Int, running: Int, released: Int, isEffective: Bool) {
        self.affected = affected
        self.finished = finished
        self.running = running
        self.released = released
        self.isEffective = isEffective
    }
}

/// One thing that happened.
package struct EventView: Hashable, Sendable, Codable {
    /// From 1, without gaps within a reign.
    package var sequence: UInt64
    package var at: TimeText
    /// `graphSubmitted`, `graphAdded`, `graphClosed`, `graphFinished`, `graphCancelled`,
    /// `suspended`, `resumed`, `queueSet`, `keySet`, `priority`, `ready`, `granted`, `started`,
    /// `attemptEnded`, `retry`, `finished`, `reopened`, `workerJoined`, `workerLost`,
    /// `workerDraining`, `dependencyAdded`, `dependencyRemoved`.
    package var kind: String
    package var graph: UInt32?
    package var graphName: String?
    package var operation: OperationName?
    package var outcome: OutcomeKind?
    package var attempt: String?
    package var ending: String?
    package var error: ErrorView?
    package var worker: String?
    package var queue: String?
    package var key: String?
    package var by: String?
    package var reason: String?

    package init(sequence: UInt64, at: TimeText, kind: String) {
        self.sequence = sequence
        self.at = at
        self.kind = kind
    }
}

package struct GraphPage: Hashable, Sendable, Codable {
    package var graphs: [GraphView]
    /// To be given as `after` for the next page; `nil`: this was the last.
    package var next: UInt32?

    package init(graphs: [GraphView], next: UInt32?) {
        self.graphs = graphs
        self.next = next
    }
}

package struct OperationPage: Hashable, Sendable, Codable {
    package var operations: [OperationView]
    package var next: UInt32?

    package init(operations: [OperationView], next: UInt32?) {
        self.operations = operations
        self.next = next
    }
}

/// Operations of a queue, graph by graph.
package struct QueuePage: Hashable, Sendable, Codable {
    package var operations: [OperationView]
    /// To be given as `after` for the next page; `nil`: this was the last.
    package var next: String?

    package init(operations: [OperationView], next: String?) {
        self.operations = operations
        self.next = next
    }
}

/// What an operation printed.
package struct LogView: Hashable, Sendable, Codable {
    package var operation: OperationName
    package var attempt: String
    /// The last bytes; what is no UTF-8 is replaced.
    package var text: String
    /// Bytes that were printed before and are not kept are unknown to be there or not.
    package var isTail: Bool
    /// Bytes that were printed directly before it and are not told, because whoever follows did not
    /// read them in time; `nil`: none.
    package var missedBytes: UInt64?

    package init(operation: OperationName, attempt: String, text: String, isTail: Bool) {
        self.operation = operation
        self.attempt = attempt
        self.text = text
        self.isTail = isTail
    }
}
