import DequeModule
import HeapModule
package import OperonModel

/// The coordinator's decisions: which operations are ready, which worker runs which, what became
/// of them. Driven by the coordinator's shell and by the simulator, one event at a time; it knows
/// no clock, no chance and no I/O, and the same events give the same effects, byte for byte.
package struct Scheduler: Sendable {
    package let configuration: Configuration
    package let reign: Reign
    package let epoch: Epoch

    var graphs = GraphTable()
    var queues: [QueueState] = []
    var queueNumbers: [String: Int] = [:]
    var kinds: [KindState] = []
    var kindNumbers: [String: Int] = [:]
    var keys: [KeyState] = []
    var keyNumbers: [String: Int] = [:]
    var lanes: [Lane] = []
    var laneNumbers: [LanePlace: Int] = [:]
    /// Those of which something is ready, in no order.
    var readyQueues: [Int] = []
    var names = UnusedNames()

    var workers: [WorkerState] = []
    var workerNumbers: [Incarnation: Int] = [:]
    var isConnected = false
    var connectedAt = Timestamp.zero
    var isLeaving = false
    /// A tick through its own queues that is not back yet.
    var probe: Probe?
    var nextProbe: UInt64 = 1

    /// Attempts in flight; free places are listed behind.
    var attempts: [AttemptState?] = []
    var freeAttempts: [UInt32] = []
    var nextAttemptNumber: UInt64 = 1
    /// The last attempt that an operation lost, until the next one has started: its owner may come
    /// back. Only looked up.
    var lostAttempts: [OperationID: LostAttempt] = [:]

    /// What running operations wait for. Only looked up.
    var waits: [OperationID: WaitState] = [:]
    /// Who waits for an operation, first come first. Only looked up.
    var waiters: [OperationID: [Waiter]] = [:]
    /// Those that have all they waited for, and want a slot and a place again, first come first.
    var resuming: [OperationID] = []
    /// Operations that came to wait for others, or to be waited for, by other ways than those that
    /// are checked first. Empty between events.
    var suspects: [OperationID] = []
    /// Whether those that began to wait wait in a circle: what is not decided yet, oldest first.
    var searches = Deque<WaitSearch>()

    /// What the monotonic clock decides: leases, timeouts, and pauses that began in this life.
    var deadlines = Heap<Deadline>()
    /// What the wall clock decides: dates, and pauses that began in an earlier life.
    var dates = Heap<DateDeadline>()
    var nextDeadlineOrder: UInt64 = 0
    /// How far the wall clock was ahead of the monotonic one when pauses were last recorded.
    var calendarOffset: Duration?
    /// When the last event was handled. Placement and `explain` judge silence by it.
    var lastEventAt = Timestamp.zero
    var servings: UInt64 = 0
    /// Of all attempts in flight.
    var dispatchedBytes = 0
    /// What somebody outside is to complete: attempts that no worker has. Only looked up.
    var externals: [OperationID: ExternalAttempt] = [:]
    /// The lanes of such operations in which anything stands.
    var externalLanes: [Int] = []
    var generator: SeededGenerator
    let readAheadNanoseconds: Int64
    /// Some operation was reopened: one that comes back may have to wait again.
    var hasReopened = false
    /// Reused by `finish`, so that a release allocates nothing.
    var worklist: [(operation: OperationID, outcome: Outcome)] = []
    /// Those that will be skipped, and cancel what else they wait for. Empty between events.
    var doomed: [OperationID] = []
    /// Operations and graphs that were dropped since what they left was last swept out.
    var goneSinceSweep = 0
    /// How many there were at the last count of what a sweep would walk: not worth one before.
    var sweepAfter = 0
    /// Elements that searches and walks looked at so far. Decides nothing: tests count it, where
    /// what an event costs must not depend on what it does not concern.
    package internal(set) var visitCount = 0

    package init(configuration: Configuration, reign: Reign, epoch: Epoch) {
        self.configuration = configuration
        self.reign = reign
        self.epoch = epoch
        generator = SeededGenerator(seed: configuration.seed)
        readAheadNanoseconds = configuration.readAhead.nanoseconds
    }

    /// Takes one event and appends what follows from it.
    package mutating func handle(
        _ event: Event,
        at now: Moment,
        into effects: inout Effects
    ) {
        lastEventAt = now.monotonic
        followCalendar(at: now, into: &effects)
        switch event {
        case .graphSubmitted, .operationsAdded, .graphClosed, .queueLimitSet, .queuePrioritySet,
            .suspensionRequested, .cancelRequested, .priorityRequested, .dependencyAdded,
            .dependencyRemoved, .retryRequested, .completionRequested, .drainRequested,
            .keyLimitSet, .queueReset, .keyReset:
            command(event, at: now, into: &effects)
        case .graphsForgotten(let graphs): forget(graphs)
        case .workerMessage(let envelope): receive(envelope, at: now, into: &effects)
        case .additionJudged(let order, let judgement):
            judge(order, judgement, at: now, into: &effects)
        case .waitJudged(let order, let judgement):
            judge(order, judgement, at: now, into: &effects)
        case .readJudged(let order, let judgement):
            judge(order, judgement, at: now, into: &effects)
        case .transportUp: transportCameUp(at: now, into: &effects)
        case .transportDown:
            isConnected = false
            probe = nil
        case .addressReturned(let address): setAside(address)
        case .attemptUnsendable(let attempt, let error):
            giveUpUnsendable(attempt, error, at: now, into: &effects)
        case .shutdownRequested(let kill): shutDown(kill: kill, into: &effects)
        case .timeReached:
            timeReached(now, into: &effects)
            continueSearches(into: &effects)
        }
        if !doomed.isEmpty { cancelSiblings(at: now, into: &effects) }
        breakCycles(into: &effects)
        admit(at: now, into: &effects)
        // A search goes on at once, behind what has arrived meanwhile.
        effects.wakeAt = searches.isEmpty ? deadlines.min?.time : now.monotonic
        effects.nextDate = nextDate()
    }

    /// What a client asked for.
    private mutating func command(
        _ event: Event,
        at now: Moment,
        into effects: inout Effects
    ) {
        switch event {
        case .graphSubmitted(let graph, let isOpen):
            submit(graph, isOpen: isOpen, at: now, into: &effects)
        case .operationsAdded(let graph, let addition):
            add(addition, to: graph, at: now, into: &effects)
        case .graphClosed(let graph): closeOnRequest(graph, into: &effects)
        case .queueLimitSet(let queue, let maximum):
            setLimit(of: queue, to: maximum, into: &effects)
        case .queuePrioritySet(let queue, let priority):
            setPriority(ofQueue: queue, to: priority, into: &effects)
        case .keyLimitSet(let settings): setLimit(ofKey: settings, into: &effects)
        case .queueReset(let name): resetQueue(name, at: now, into: &effects)
        case .keyReset(let name): resetKey(name, into: &effects)
        case .suspensionRequested(let target, let suspension):
            setSuspended(target, suspension, at: now, into: &effects)
        case .cancelRequested(let target, let reason, let cascade, let client):
            let record = Record.cancelled(target, reason: reason, cascade: cascade, by: client)
            cancel(target, as: record, reason, cascade, at: now, into: &effects)
        case .priorityRequested(let operation, let priority):
            setPriority(of: operation, to: priority, into: &effects)
        case .dependencyAdded(let operation, let dependency, let condition):
            let added = Dependency(operation: dependency, condition: condition)
            addDependency(of: operation, added, at: now, into: &effects)
        case .dependencyRemoved(let operation, let dependency):
            removeDependency(of: operation, on: dependency, at: now, into: &effects)
        case .retryRequested(let graph, let operations, let cancelled):
            reopen(operations, of: graph, cancelled: cancelled, at: now, into: &effects)
        case .completionRequested(let operation, let attempt, let completion):
            complete(operation, attempt: attempt, completion, at: now, into: &effects)
        case .drainRequested(let worker): drain(worker, into: &effects)
        case .workerMessage, .additionJudged, .waitJudged, .readJudged, .transportUp,
            .transportDown, .addressReturned, .attemptUnsendable, .graphsForgotten,
            .shutdownRequested, .timeReached:
            preconditionFailure("`handle` takes what is not a client's itself")
        }
    }
}

/// What is known of a kind of work.
struct KindState: Sendable {
    let name: String
    /// It runs in its worker's own process, and may be what killed it.
    let canKillWorker: Bool
    /// No worker runs it.
    let isExternal: Bool
    /// How long one takes, in nanoseconds, rising at once and falling slowly; `nil`: none was seen.
    var duration: Int64?
    /// How many rules of graphs name it.
    var users = 0
    /// It is listed among `UnusedNames.kinds`.
    var isListedUnused = false
    var isFree = false

    /// An estimate that is too short hoards work at one worker; one that is too long only costs a
    /// round trip. So it follows longer runs at once and shorter ones by an eighth.
    mutating func measured(_ nanoseconds: Int64) {
        let sample = max(0, nanoseconds)
        guard let known = duration else {
            duration = sample
            return
        }
        duration = sample >= known ? sample : known - (known - sample) / 8
    }
}

/// A name that only so many operations in flight may hold.
struct KeyState: Sendable {
    let name: String
    var limit = 1
    /// A command set the limit: what later graphs say of it counts no more.
    var isCommanded = false
    /// How many graphs name it.
    var users = 0
    var isFree = false
    /// In the order in which they took it.
    var holders: [OperationID] = []

    var hasRoom: Bool { holders.count < limit }
    /// Ready operations that came up while it had no room, by the lane they came from. When it has
    /// room, one of each lane goes back to it: the lanes compete as if all had, and a release costs
    /// as many steps as there are lanes, not as there are operations that wait.
    var parked: [ParkedLane] = []
}

/// What waits for a key and belongs to one lane.
struct ParkedLane: Sendable {
    let lane: Int
    /// Those that do not wait any more stay until they come up.
    var heap = Heap<ReadyEntry>()
}
