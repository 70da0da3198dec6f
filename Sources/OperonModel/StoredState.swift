/// What is kept together.
package struct StoreBatch: Sendable {
    package var wall: WallTime
    package var records: [StoreRecord]
    /// What the graphs and operations of `graphAdded` and `operationsAdded` are made of, in the
    /// order of those records.
    package var graphs: [StoredContents] = []
    /// What attempts left, whose operations finish or are tried again in this batch.
    package var results: [StoredResult] = []
    /// What clients that listen are told, numbered on from the last of the batch before.
    package var events: [StoredEvent] = []
    /// Workers that came, before attempts are theirs.
    package var workers: [StoredWorker] = []

    package init(wall: WallTime, records: [StoreRecord] = []) {
        self.wall = wall
        self.records = records
    }

    /// Whether there is nothing to keep.
    package var isEmpty: Bool {
        records.isEmpty && graphs.isEmpty && results.isEmpty && events.isEmpty && workers.isEmpty
    }

    /// Adds what is to be kept behind it, in the same transaction.
    package mutating func append(_ later: StoreBatch) {
        wall = later.wall
        records += later.records
        graphs += later.graphs
        results += later.results
        events += later.events
        workers += later.workers
    }
}

/// Operations that were submitted together: a graph, or an addition to one.
package struct StoredContents: Hashable, Sendable {
    package var graph: GraphID
    package var name: String
    /// Who submitted it; empty: nobody with a name.
    package var submitter: String
    package var isOpen: Bool
    /// The client's own key for this submission; empty: none.
    package var idempotencyKey: String
    package var traceParent: String
    /// The number of the first operation.
    package var first: UInt32
    package var operationCount: Int
    /// Graphs that operations of it depend on, other than its own: they are kept whole while this
    /// one is not finished.
    package var needs: [GraphID]
    /// Opaque to the store: what the runtime needs to have the same operations again.
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
    /// Empty: it left none, or nobody will want it.
    package var output: Payload
    package var logTail: [UInt8]
    /// When the attempt started and ended, on the coordinator's calendar.
    package var startedAt: WallTime?
    package var endedAt: WallTime

    package init(
        operation: OperationID,
        attempt: AttemptID,
        output: Payload,
        logTail: [UInt8],
        startedAt: WallTime?,
        endedAt: WallTime
    ) {
        self.operation = operation
        self.attempt = attempt
        self.output = output
        self.logTail = logTail
        self.startedAt = startedAt
        self.endedAt = endedAt
    }
}

package struct StoredLog: Hashable, Sendable {
    package var attempt: AttemptID
    package var tail: [UInt8]

    package init(attempt: AttemptID, tail: [UInt8]) {
        self.attempt = attempt
        self.tail = tail
    }
}

package struct StoredAttempt: Hashable, Sendable {
    package var id: AttemptID
    package var ordinal: UInt32
    package var worker: Incarnation
    package var grantedAt: WallTime
    package var startedAt: WallTime?
    package var endedAt: WallTime?
    /// `nil`: in flight.
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

/// What a life of a worker process is called, which attempts know by its id only.
package struct StoredWorker: Hashable, Sendable {
    package var incarnation: Incarnation
    package var name: String

    package init(_ incarnation: Incarnation, name: String) {
        self.incarnation = incarnation
        self.name = name
    }
}

/// One thing that happened, as listeners are told: opaque to the store but for its number.
package struct StoredEvent: Hashable, Sendable {
    /// From 1, without gaps within a reign.
    package var sequence: UInt64
    package var body: [UInt8]

    package init(sequence: UInt64, body: [UInt8]) {
        self.sequence = sequence
        self.body = body
    }
}

/// Everything that a coordinator must know to go on.
package struct StoredState: Sendable {
    package var reign: Reign
    /// Already raised.
    package var epoch: Epoch
    package var graphs: [StoredGraph] = []
    package var queues: [StoredQueue] = []
    /// Those whose limit somebody named.
    package var keys: [StoredKey] = []
    /// Attempts that were granted and have not ended, oldest first.
    package var inFlight: [StoredInFlight] = []
    /// Number of the last event; 0: there was none.
    package var lastEvent: UInt64 = 0
    /// By their ids.
    package var workers: [StoredWorker] = []

    package init(reign: Reign, epoch: Epoch) {
        self.reign = reign
        self.epoch = epoch
    }
}

package struct StoredGraph: Hashable, Sendable {
    package var id: GraphID
    package var name: String
    /// The submission and the additions to it, in order. Empty for a tombstone.
    package var contents: [StoredContents]
    package var submittedAt: WallTime
    package var finishedAt: WallTime?
    package var isOpen: Bool
    package var isTombstone = false
    /// Of a tombstone: how its operations finished. Empty for any other.
    package var outcomes = OutcomeRuns()
    package var suspension: Suspension?
    /// The reason; `nil`: it was not cancelled.
    package var cancelReason: String?
    /// Those that are not as they were submitted, by index. Empty for a tombstone.
    package var operations: [StoredOperation] = []
    /// Dependencies added or removed since, in order.
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

/// What became of an operation so far.
package struct StoredOperation: Hashable, Sendable {
    package var index: UInt32
    package var outcome: Outcome?
    package var finishedAt: WallTime?
    /// From 0, one more at each `retry` command.
    package var round: UInt32 = 0
    /// Attempts in all, of all rounds.
    package var attempts: UInt32 = 0
    /// Further attempts after a failure of its own, in this round.
    package var retries: UInt16 = 0
    /// Workers lost under it, and children of its own that died, in this round.
    package var workersLost: UInt32 = 0
    package var crashes: UInt32 = 0
    package var priority: QueuePriority?
    package var suspension: Suspension?
    /// The reason; `nil`: nobody asked.
    package var cancelReason: String?
    package var deadlinePassed = false
    /// Ready, but not before this time (`retryScheduled`, `delayed`); `nil`: nothing was scheduled,
    /// it is over, or an attempt was granted since.
    package var retryAt: WallTime?
    /// An attempt of it ended without a result, and none was granted since: it goes to the front.
    package var comesBack = false
    /// An output of it is kept.
    package var hasOutput = false

    package init(index: UInt32) { self.index = index }
}

/// What commands set of a queue: what later graphs say of that counts no more.
package struct QueueCommands: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let limit = QueueCommands(rawValue: 1)
    package static let priority = QueueCommands(rawValue: 2)
    package static let suspension = QueueCommands(rawValue: 4)
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

    /// It is as every queue begins: a store need not have it.
    package var hasNoSettings: Bool { self == StoredQueue(name: name) }
}

package struct StoredKey: Hashable, Sendable {
    package var settings: KeySettings
    /// A command set its limit: what later graphs say of it counts no more.
    package var isCommanded: Bool

    package init(_ settings: KeySettings, isCommanded: Bool) {
        self.settings = settings
        self.isCommanded = isCommanded
    }

    /// One of this name that nobody has said anything of.
    package init(_ name: String) {
        self.init(KeySettings(name: name, limit: 1), isCommanded: false)
    }

    /// It is as every key begins: a store need not have it.
    package var hasNoSettings: Bool { self == StoredKey(settings.name) }
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
