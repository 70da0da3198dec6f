import DequeModule
import HeapModule
package import OperonModel

/// The coordinator's decisions: which operations are ready, which worker runs each of them, and how
/// they ended. The coordinator's shell and the simulator drive it, one event at a time. It uses no
/// clock, no randomness and no I/O, so the same events give the same effects, byte for byte.
package struct Scheduler: Sendable {
    package let configuration: Configuration
    package let reign: Reign
    package let epoch: Epoch

    var graphs = GraphTable()
    var queues = QueueTable()
    var queueNumbers: [String: Int] = [:]
    var kinds: [KindState] = []
    var kindNumbers: [String: Int] = [:]
    var keys: [KeyState] = []
    var keyNumbers: [String: Int] = [:]
    var demands = DemandTable()
    var ready = ReadyLanes()
    var line = QueueLine()
    var names = UnusedNames()

    var workers: [WorkerState] = []
    var workerNumbers: [Incarnation: Int] = [:]
    /// Some worker serves only queues that it names.
    var areWorkersSelective = false
    var isConnected = false
    var connectedAt = Timestamp.zero
    var isLeaving = false
    /// A tick that was sent through the coordinator's own queues and has not come back yet.
    var probe: Probe?
    var nextProbe: UInt64 = 1

    var attempts = AttemptTable()
    var nextAttemptNumber: UInt64 = 1
    /// The last attempt that an operation lost. It is kept until the next attempt has started,
    /// because its owner may come back. Never iterated.
    var lostAttempts: [OperationID: LostAttempt] = [:]

    /// What the graphs have in common.
    var parts = SharedParts()
    /// What running operations wait for. Never iterated.
    var waits: [OperationID: WaitState] = [:]
    /// The operations that wait for an operation, in order of arrival. Never iterated.
    var waiters: [OperationID: [Waiter]] = [:]
    /// Operations whose wait is over and that want a slot and a place in their queue again, in
    /// order of arrival.
    var resuming: [OperationID] = []
    /// Operations that started to wait, or to be waited for, by a way that is not checked for
    /// cycles beforehand. Empty between events.
    var suspects: [OperationID] = []
    /// Unfinished searches for cycles among operations that began to wait, oldest first.
    var searches = Deque<WaitSearch>()

    /// Times on the monotonic clock: leases, timeouts, and pauses that began since this process
    /// started.
    var deadlines = Heap<Deadline>()
    /// Times on the wall clock: dates, and pauses that began in a previous run.
    var dates = Heap<DateDeadline>()
    var nextDeadlineOrder: UInt64 = 0
    /// How far the wall clock was ahead of the monotonic clock when pauses were last recorded.
    var calendarOffset: Duration?
    /// When the last event was handled. Placement and `explain` measure a worker's silence against
    /// it.
    var lastEventAt = Timestamp.zero
    var servings: UInt64 = 0
    /// The bytes of all attempts in flight.
    var dispatchedBytes = 0
    /// Attempts of external operations. No worker holds them. Never iterated.
    var externals: [OperationID: ExternalAttempt] = [:]
    /// How many of `externals` each graph has. A graph without any has no entry. Never iterated.
    var awaitedCounts: [GraphID: Int] = [:]
    var generator: SeededGenerator
    let readAhead: ReadAhead
    /// Some operation was reopened, so an operation that comes back may have to wait again.
    var hasReopened = false
    /// Reused by `finish`, so that a release allocates no memory.
    var worklist: [(operation: OperationID, outcome: Outcome)] = []
    /// Workers that are kept for the first operation in line of a queue: see `Reservation`. Made
    /// anew by each admission; the last ones are kept, so that an operation keeps its worker.
    var reservations: [Reservation] = []
    /// Counts reservations that ended within an admission, and so may leave a worker to others.
    var endedReservations: UInt64 = 0
    /// Counts admissions that looked for room.
    var admissions: UInt64 = 0
    /// Operations that will be skipped and that cancel their other dependencies. Empty between
    /// events.
    var doomed: [OperationID] = []
    /// Operations and graphs that were dropped since the last sweep of their leftover entries.
    var goneSinceSweep = 0
    /// The number of entries that a sweep would visit, at the last count. A sweep is not worthwhile
    /// until `goneSinceSweep` exceeds it.
    var sweepAfter = 0
    /// Elements that searches and walks have visited so far. It decides nothing. Tests use it to
    /// check that the cost of an event does not depend on unrelated data.
    package internal(set) var visitCount = 0

    package init(configuration: Configuration, reign: Reign, epoch: Epoch) {
        self.configuration = configuration
        self.reign = reign
        self.epoch = epoch
        generator = SeededGenerator(seed: configuration.seed)
        readAhead = ReadAhead(
            count: configuration.readAheadCountMax,
            nanoseconds: configuration.readAhead.nanoseconds
        )
    }

    /// Handles one event and appends its effects.
    ///
    /// - Parameters:
    ///   - client: The name of the client whose command the event is; empty: the client has none,
    ///     or the event is no command.
    ///   - resolver: Finds what requests of running operations name.
    package mutating func handle(
        _ event: Event,
        by client: String = "",
        at now: Moment,
        resolving resolver: inout some RequestResolver,
        into effects: inout Effects
    ) {
        lastEventAt = now.monotonic
        followCalendar(at: now, into: &effects)
        switch event {
        case .graphSubmitted, .operationsAdded, .graphClosed, .queueLimitSet, .queuePrioritySet,
            .suspensionRequested, .cancelRequested, .priorityRequested, .dependencyAdded,
            .dependencyRemoved, .retryRequested, .completionRequested, .drainRequested,
            .keyLimitSet, .queueReset, .keyReset, .queueRateSet:
            let first = effects.records.count
            command(event, by: client, at: now, into: &effects)
            attribute(recordsFrom: first, of: event, to: client, in: &effects)
        case .graphsForgotten(let graphs): forget(graphs)
        case .workerMessage(let envelope):
            receive(envelope, at: now, resolving: &resolver, into: &effects)
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
        // An unfinished search continues at once, after the events that have arrived meanwhile.
        effects.wakeAt = searches.isEmpty ? deadlines.min?.time : now.monotonic
        effects.nextDate = nextDate()
    }

    /// Handles a client's command.
    private mutating func command(
        _ event: Event,
        by client: String,
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
        case .queueRateSet(let queue, let rate):
            setRate(ofQueue: queue, to: rate, at: now, into: &effects)
        case .keyLimitSet(let settings): setLimit(ofKey: settings, at: now, into: &effects)
        case .queueReset(let name): resetQueue(name, at: now, into: &effects)
        case .keyReset(let name): resetKey(name, into: &effects)
        case .suspensionRequested(let target, let suspension):
            setSuspended(target, suspension, at: now, into: &effects)
        case .cancelRequested(let target, let reason, let cascade):
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
        case .drainRequested(let worker): drain(worker, by: client, into: &effects)
        case .workerMessage, .transportUp, .transportDown, .addressReturned, .attemptUnsendable,
            .graphsForgotten, .shutdownRequested, .timeReached:
            preconditionFailure("`handle` takes what is not a client's itself")
        }
    }
}
