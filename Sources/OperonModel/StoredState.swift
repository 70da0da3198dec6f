/// Records and contents that are stored in one transaction.
package struct StoreBatch: Sendable {
    package var wall: WallTime
    package var records: [StoreRecord]
    /// The contents of the graphs and operations of `graphAdded` and `operationsAdded`, in the
    /// order of those records.
    package var graphs: [StoredContents] = []
    /// Results of attempts whose operations finish or are retried in this batch.
    package var results: [StoredResult] = []
    /// Events for clients that listen, numbered on from the last event of the previous batch.
    package var events: [StoredEvent] = []
    /// New workers, stored before attempts refer to them.
    package var workers: [StoredWorker] = []

    package init(wall: WallTime, records: [StoreRecord] = []) {
        self.wall = wall
        self.records = records
    }

    /// Whether there is nothing to store.
    package var isEmpty: Bool {
        records.isEmpty && graphs.isEmpty && results.isEmpty && events.isEmpty && workers.isEmpty
    }

    /// Appends a later batch, to be stored in the same transaction.
    package mutating func append(_ later: StoreBatch) {
        wall = later.wall
        records += later.records
        graphs += later.graphs
        results += later.results
        events += later.events
        workers += later.workers
    }
}

/// Operations that were submitted together: a graph, or an addition to a graph.
package struct StoredContents: Hashable, Sendable {
    package var graph: GraphID
    package var name: String
    /// The name of the client that submitted them; empty: it has none.
    package var submitter: String
    package var isOpen: Bool
    /// The client's idempotency key for this submission; empty: none.
    package var idempotencyKey: String
    package var traceParent: String
    /// The index of the first operation in its graph.
    package var first: UInt32
    package var operationCount: Int
    /// Other graphs that the operations depend on. They are kept whole while this graph is not
    /// finished.
    package var needs: [GraphID]
    /// The operations, encoded by the runtime. Opaque to the store.
    package var body: [UInt8]

    package init(
        graph: GraphID,
        name: String,
        submitter: String = "",
        isOpen: Bool = false,
        idempotencyKey: String = "",
        traceParent: String = "",
        first: UInt32 = 0,
        operationCount: Int,
        needs: [GraphID] = [],
        body: [UInt8]
    ) {
        self.graph = graph
        self.name = name
        self.submitter = submitter
        self.isOpen = isOpen
        self.idempotencyKey = idempotencyKey
        self.traceParent = traceParent
        self.first = first
        self.operationCount = operationCount
        self.needs = needs
        self.body = body
    }
}

package struct StoredResult: Hashable, Sendable {
    package var operation: OperationID
    package var attempt: AttemptID
    /// Empty: there was no output, or no operation will need it.
    package var output: Payload
    package var log: KeptLog
    /// Whether the attempt succeeded without a process, because its files were up to date.
    package var isUpToDate = false
    /// When the attempt started and ended, by the coordinator's wall clock.
    package var startedAt: WallTime?
    package var endedAt: WallTime

    package init(
        operation: OperationID,
        attempt: AttemptID,
        output: Payload,
        log: KeptLog,
        startedAt: WallTime?,
        endedAt: WallTime
    ) {
        self.operation = operation
        self.attempt = attempt
        self.output = output
        self.log = log
        self.startedAt = startedAt
        self.endedAt = endedAt
    }
}

package struct StoredLog: Hashable, Sendable {
    package var attempt: AttemptID
    package var log: KeptLog

    package init(attempt: AttemptID, log: KeptLog) {
        self.attempt = attempt
        self.log = log
    }
}

package struct StoredAttempt: Hashable, Sendable {
    package var id: AttemptID
    package var ordinal: UInt32
    package var worker: Incarnation
    package var grantedAt: WallTime
    package var startedAt: WallTime?
    package var endedAt: WallTime?
    /// `nil`: the attempt is in flight.
    package var ending: AttemptEnding?

    package init(
        id: AttemptID,
        ordinal: UInt32,
        worker: Incarnation,
        grantedAt: WallTime,
        startedAt: WallTime? = nil,
        endedAt: WallTime? = nil,
        ending: AttemptEnding? = nil
    ) {
        self.id = id
        self.ordinal = ordinal
        self.worker = worker
        self.grantedAt = grantedAt
        self.startedAt = startedAt
        self.endedAt = endedAt
        self.ending = ending
    }
}

/// The name of an incarnation of a worker. Attempts store only the incarnation.
package struct StoredWorker: Hashable, Sendable {
    package var incarnation: Incarnation
    package var name: String

    package init(_ incarnation: Incarnation, name: String) {
        self.incarnation = incarnation
        self.name = name
    }
}

/// A cluster event for clients that listen. The store interprets only its number.
package struct StoredEvent: Hashable, Sendable {
    /// From 1, without gaps within a reign.
    package var sequence: UInt64
    package var body: [UInt8]

    package init(sequence: UInt64, body: [UInt8]) {
        self.sequence = sequence
        self.body = body
    }
}

/// Everything that a coordinator needs to resume.
package struct StoredState: Sendable {
    package var reign: Reign
    /// The epoch of this start, already raised.
    package var epoch: Epoch
    package var graphs: [StoredGraph] = []
    package var queues: [StoredQueue] = []
    /// The keys whose limit was set.
    package var keys: [StoredKey] = []
    /// The rates of queues and keys.
    package var rates: [StoredRate] = []
    /// In ascending order of their numbers.
    package var triggers: [RestoredTrigger] = []
    /// Attempts that were granted and have not ended, oldest first.
    package var inFlight: [StoredInFlight] = []
    /// The number of the last event; 0: there was none.
    package var lastEvent: UInt64 = 0
    /// The names of workers, by incarnation.
    package var workers: [StoredWorker] = []

    package init(reign: Reign, epoch: Epoch) {
        self.reign = reign
        self.epoch = epoch
    }
}

package struct StoredGraph: Hashable, Sendable {
    package var id: GraphID
    package var name: String
    /// The submission and the additions to it, in order. Empty for a dropped graph.
    package var contents: [StoredContents]
    package var submittedAt: WallTime
    package var finishedAt: WallTime?
    package var isOpen: Bool
    package var isTombstone = false
    /// The outcomes of the operations of a dropped graph. Empty for any other graph.
    package var outcomes = OutcomeRuns()
    package var suspension: Suspension?
    /// Why the graph was cancelled; `nil`: it was not.
    package var cancelReason: String?
    /// The operations that changed since their submission, by index. Empty for a dropped graph.
    package var operations: [StoredOperation] = []
    /// Dependencies added or removed since the submission, in order.
    package var dependencyChanges: [StoreRecord] = []

    package init(
        id: GraphID,
        contents: [StoredContents],
        submittedAt: WallTime,
        isOpen: Bool = false
    ) {
        self.id = id
        name = contents.first?.name ?? ""
        self.contents = contents
        self.submittedAt = submittedAt
        self.isOpen = isOpen
    }
}

/// What has happened to an operation so far.
package struct StoredOperation: Hashable, Sendable {
    package var index: UInt32
    package var outcome: Outcome?
    package var finishedAt: WallTime?
    /// The number of the round, from 0. Each `retry` command raises it by one.
    package var round: UInt32 = 0
    /// The number of attempts in all rounds.
    package var attempts: UInt32 = 0
    /// Retries after failures of its own, in this round.
    package var retries: UInt16 = 0
    /// How many workers were lost and how many child processes died while they ran it, in this
    /// round.
    package var workersLost: UInt32 = 0
    package var crashes: UInt32 = 0
    package var priority: QueuePriority?
    package var suspension: Suspension?
    /// Why it was asked to be cancelled; `nil`: it was not.
    package var cancelReason: String?
    package var deadlinePassed = false
    /// The operation is ready but does not start before this time (`retryScheduled`, `delayed`).
    /// `nil`: nothing was scheduled, the time is over, or an attempt was granted since.
    package var retryAt: WallTime?
    /// An attempt ended without a result and none was granted since, so the operation starts before
    /// others of its priority.
    package var comesBack = false
    /// Whether an output of the operation is kept.
    package var hasOutput = false
    /// Whether the operation succeeded without a process, because its files were up to date.
    package var isUpToDate = false

    package init(index: UInt32) { self.index = index }
}

/// Operations that finished together and have not changed otherwise: a store has one row for them.
package struct StoredRange: Hashable, Sendable {
    package var operations: OperationRange
    package var outcome: Outcome
    package var finishedAt: WallTime

    package init(_ operations: OperationRange, _ outcome: Outcome, finishedAt: WallTime) {
        self.operations = operations
        self.outcome = outcome
        self.finishedAt = finishedAt
    }

    /// One of the operations.
    package func operation(_ index: UInt32) -> StoredOperation {
        var operation = StoredOperation(index: index)
        operation.outcome = outcome
        operation.finishedAt = finishedAt
        return operation
    }
}

/// The settings of a queue that commands have set. Later graphs do not change these settings.
package struct QueueCommands: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let limit = QueueCommands(rawValue: 1)
    package static let priority = QueueCommands(rawValue: 2)
    package static let suspension = QueueCommands(rawValue: 4)
    package static let rate = QueueCommands(rawValue: 8)
}

package struct StoredQueue: Hashable, Sendable {
    package var name: String
    package var maximum: Int?
    package var priority: QueuePriority
    package var suspension: Suspension?
    package var commanded: QueueCommands

    package init(
        name: String,
        maximum: Int? = nil,
        priority: QueuePriority = .normal,
        suspension: Suspension? = nil,
        commanded: QueueCommands = []
    ) {
        self.name = name
        self.maximum = maximum
        self.priority = priority
        self.suspension = suspension
        self.commanded = commanded
    }

    /// Whether the queue has its initial settings, so that a store need not keep it.
    package var hasNoSettings: Bool { self == StoredQueue(name: name) }
}

package struct StoredKey: Hashable, Sendable {
    package var settings: KeySettings
    /// Whether a command has set the limit. Later graphs do not change it then.
    package var isCommanded: Bool

    package init(_ settings: KeySettings, isCommanded: Bool) {
        self.settings = settings
        self.isCommanded = isCommanded
    }

    /// A key with this name and no settings.
    package init(_ name: String) {
        self.init(KeySettings(name: name, limit: 1), isCommanded: false)
    }

    /// Whether the key has its initial settings, so that a store need not keep it.
    package var hasNoSettings: Bool { self == StoredKey(settings.name) }
}

/// The rate of a queue or a key.
package struct StoredRate: Hashable, Sendable {
    package var scope: RateScope
    /// `nil`: it has none, so a store need not keep it.
    package var rate: StartRate?
    /// When the bucket is full again; `nil`: nothing has started yet.
    package var fullAt: WallTime?

    package init(_ scope: RateScope, _ rate: StartRate? = nil, fullAt: WallTime? = nil) {
        self.scope = scope
        self.rate = rate
        self.fullAt = fullAt
    }
}

package struct StoredInFlight: Hashable, Sendable {
    package var attempt: AttemptID
    package var operation: OperationID
    package var ordinal: UInt32
    package var worker: Incarnation
    package var hasStarted: Bool
    package var startedAt: WallTime?

    package init(
        attempt: AttemptID,
        operation: OperationID,
        ordinal: UInt32,
        worker: Incarnation,
        hasStarted: Bool,
        startedAt: WallTime? = nil
    ) {
        self.attempt = attempt
        self.operation = operation
        self.ordinal = ordinal
        self.worker = worker
        self.hasStarted = hasStarted
        self.startedAt = startedAt
    }
}
