import DequeModule
import HeapModule
package import OperonModel

/// A worker's decisions: which operations to start or to give back, what to report to the
/// coordinator, and when to forget it. The worker's shell and the simulator drive it. It uses no
/// clock and no randomness, and does not know how an operation runs.
package struct WorkerAgent: Sendable {
    package let configuration: Configuration

    /// The reign that it belongs to; the zero reign before its first welcome.
    package internal(set) var reign = Reign(rawValue: 0)
    package internal(set) var epoch = Epoch(rawValue: 0)
    var link = Link.down
    var connection: UInt32 = 0
    /// The highest sequence number received on this connection.
    var received: UInt64 = 0
    var settings = Settings()

    /// Attempts that were dispatched and have not started, most urgent first. Some entries are out
    /// of date: `isWaiting` tells.
    var waiting = Heap<WaitingOperation>()
    var arrivals: UInt64 = 0
    /// Every attempt that it holds without a final event. Never iterated in hash order:
    /// `heldInOrder` sorts it.
    var held: [AttemptID: Holding] = [:]
    var runningCount = 0
    /// Running attempts that wait for others, without a slot.
    var yieldedCount = 0
    /// Those that have their answer and wait for a slot, in order of arrival.
    var resuming = Deque<(attempt: AttemptID, answer: RequestAnswer)>()
    /// What running attempts, and those whose inputs are fetched, have of the worker's resources.
    var allocations: WorkerAllocations
    /// Waiting attempts that have a slot and whose inputs are fetched before they start.
    var fetcher: OutputFetcher
    /// Requests of running operations that have no verdict yet, in the order in which they were
    /// made.
    var open: [OpenState] = []
    /// Running attempts whose start is not reported yet.
    var unreportedStarts = Deque<AttemptID>()
    /// Running attempts that hold keys for a limited time, in the order of their starts.
    var exclusive: [AttemptID] = []

    /// Events that are not acknowledged. The first has the number `firstEvent`.
    var events = Deque<RetainedEvent>()
    var firstEvent: UInt64 = 1
    /// How many of `events` were sent on this connection.
    var sentCount = 0
    var retainedBytes = 0
    var inFlightBytes = 0
    /// Attempts that have a final event among `events`.
    var finalAttempts: Set<AttemptID> = []

    /// When the last answered beat or hello was sent. The right to start attempts depends on it.
    var leaseProof: Timestamp?
    /// When the first unanswered beat or hello was sent.
    var unansweredSince: Timestamp?
    var nextBeat: Timestamp = .zero
    /// The last event for which a beat was sent early.
    var hastenedEvent: UInt64 = 0
    /// When the coordinator was last heard.
    var heardAt: Timestamp = .zero
    var drain = Drain.none

    package init(configuration: Configuration) {
        self.configuration = configuration
        fetcher = OutputFetcher(limits: configuration.limits)
        allocations = WorkerAllocations(configuration)
    }

    /// Handles one event and appends its effects.
    package mutating func handle(
        _ event: Event,
        at now: Timestamp,
        into effects: inout Effects
    ) {
        switch event {
        case .linkUp(let connection): linkCameUp(connection, at: now, into: &effects)
        case .linkDown: linkWentDown()
        case .returned: unansweredSince = nil
        case .message(let envelope): receive(envelope, at: now, into: &effects)
        case .ended(let attempt, let result): ended(attempt, result, into: &effects)
        case .inputs(let progress): inputsAdvanced(progress, at: now)
        case .asked(let number, let attempt, let content):
            ask(content, number: number, of: attempt, into: &effects)
        case .withdrawn(let number): withdraw(number, into: &effects)
        case .drainRequested(let deadline): startDrain(until: deadline, into: &effects)
        case .stopRequested: stopNow(at: now, into: &effects)
        case .timeReached: break  // Whatever is due is looked at below, after every event.
        }
        beatIfDue(at: now, into: &effects)
        resumeYielded(into: &effects)
        admit(at: now, into: &effects)
        endExclusive(at: now, into: &effects)
        fetchInputs(at: now, into: &effects)
        reportStarts(at: now)
        closeRequests(into: &effects)
        sendEvents(at: now, into: &effects)
        finishDrain(at: now, into: &effects)
        effects.wakeAt = nextWake()
    }
}

extension WorkerAgent {
    package struct Configuration: Hashable, Sendable {
        package var name: String
        package var incarnation: Incarnation
        package var host: String
        package var processID: Int32
        package var slots: Int
        /// The id of its state directory, whose lock it holds; empty: it has none.
        package var workerID = ""
        /// The previous incarnation on that directory, if there was one: it is dead.
        package var predecessor: Incarnation?
        /// The queues it serves; empty: all.
        package var queues: [String] = []
        /// The kinds it knows, sorted.
        package var kinds: [String]
        /// Whether it accepts operations of every kind, including kinds that are not in `kinds`.
        package var runsAnyKind = false
        /// The resources and labels that it offers.
        package var offer = WorkerOffer()
        /// The processors that it may use, by the kernel's numbers, ascending; empty: operations
        /// are not bound to processors.
        package var processors: [Int] = []
        /// Its graphics processors, as their driver names them: as many as it offers.
        package var gpus: [String] = []
        /// A start is reported separately after this long. If the attempt ends sooner, start and
        /// end are reported together.
        package var startReportDelay: Duration = .milliseconds(100)
        /// How long running attempts may go on when the coordinator asks it to drain.
        package var drainTimeout: Duration = .seconds(30)
        /// How long a drained worker waits for its last events to be acknowledged.
        package var farewell: Duration = .seconds(5)
        /// The same for a worker that has to end now, which includes the time for killed attempts
        /// to end.
        package var lastWords: Duration = .seconds(1)
        /// How many events one message carries at most.
        package var eventsPerMessage = 256
        /// How many bytes of events one message carries at most. A larger event travels alone.
        package var eventBytesPerMessage = 256 << 10
        package var limits = Limits()
        package var violation: PlantedViolation?

        package init(
            name: String,
            incarnation: Incarnation,
            host: String,
            processID: Int32,
            slots: Int,
            kinds: [String]
        ) {
            self.name = name
            self.incarnation = incarnation
            self.host = host
            self.processID = processID
            self.slots = slots
            self.kinds = kinds.sorted()
        }
    }

    package enum Event: Sendable {
        /// A connection is up: the worker's queue is bound and consumed.
        case linkUp(connection: UInt32)
        case linkDown
        /// The broker reports that no coordinator can receive a message, so the connection works.
        case returned
        case message(CoordinatorEnvelope)
        /// An attempt that was started has ended.
        case ended(AttemptID, AttemptResult)
        /// The shell completed a step of getting an attempt's inputs.
        case inputs(InputProgress)
        /// A running operation makes a request. Requests are numbered from 1, and each gets one
        /// answer.
        case asked(UInt64, AttemptID, RequestContent)
        /// The requester no longer waits for the answer. The request gets one all the same.
        case withdrawn(UInt64)
        /// Start nothing more, give back waiting attempts, and at the deadline those that still
        /// run.
        case drainRequested(deadline: Timestamp)
        /// End everything now, and give it back.
        case stopRequested
        case timeReached
    }

    /// What the shell is to do, in this order.
    package struct Effects: Sendable {
        package var messages: [(lane: Lane, envelope: WorkerEnvelope)] = []
        package var inputSteps: [OutputFetcher.Step] = []
        package var starts: [DispatchedOperation] = []
        package var stops: [Stop] = []
        package var answers: [RequestAnswer] = []
        package var watchOrders: [WatchOrder] = []
        /// The connection is silent: open another one.
        package var wantsReconnect = false
        /// Everything is finished or given up.
        package var wantsExit = false
        package var notices: [Notice] = []
        package var wakeAt: Timestamp?

        package init() {}

        package mutating func removeAll() {
            // Before each event, when most of them are empty, which is quicker to see than to make.
            if !messages.isEmpty { messages.removeAll(keepingCapacity: true) }
            if !inputSteps.isEmpty { inputSteps.removeAll(keepingCapacity: true) }
            if !starts.isEmpty { starts.removeAll(keepingCapacity: true) }
            if !stops.isEmpty { stops.removeAll(keepingCapacity: true) }
            if !answers.isEmpty { answers.removeAll(keepingCapacity: true) }
            if !watchOrders.isEmpty { watchOrders.removeAll(keepingCapacity: true) }
            if !notices.isEmpty { notices.removeAll(keepingCapacity: true) }
            wantsReconnect = false
        }
    }

    package enum Lane: Hashable, Sendable {
        case events
        case beats
    }

    package enum Stop: Hashable, Sendable {
        /// Ask the attempt to stop. It may use its grace period, and reports how it ended.
        case cancel(AttemptID)
        /// End the attempt at once. Its result is ignored.
        case kill(AttemptID)
    }

    package enum Notice: Hashable, Sendable {
        case welcomed(Reign, Epoch)
        /// The lease ran out before waiting attempts could start. The worker dropped them, and asks
        /// for them again.
        case leaseExpired(dropped: Int)
        case refused(RefusalReason)
        case draining(returned: Int, running: Int)
        case orphaned(Reign)
        /// A duplicate, or a dispatch before the welcome: dropped. The next beat repairs it.
        case dispatchIgnored(AttemptID)
    }

    enum Link: Hashable, Sendable {
        case down
        /// Connected. The worker sends a hello every beat until it is welcomed.
        case greeting
        case welcomed
    }

    struct Settings: Hashable, Sendable {
        var lease: Duration = .seconds(6)
        var beat: Duration = .seconds(2)
        var eventWindow = 1 << 20
        var orphanAfter: Duration = .seconds(60)
    }

    enum Drain: Hashable, Sendable {
        case none
        /// Running attempts may finish until this time.
        case finishing(until: Timestamp)
        /// Processes of running attempts were told to end.
        case ending
        /// Nothing runs. The worker waits for the last acknowledgement.
        case leaving(until: Timestamp)
        /// Running attempts were killed. The worker waits for their ends and the last
        /// acknowledgement.
        case stopping(until: Timestamp)
        case left
    }

    /// The held attempts in order of arrival, for beats and for leaving. They are sorted when
    /// needed instead of at every event, so an end costs the same with 4,096 slots as with one.
    var heldInOrder: [HeldAttempt] {
        held.values.sorted { $0.arrival < $1.arrival }.map(\.operation.held)
    }

    struct Holding: Sendable {
        let operation: DispatchedOperation
        let arrival: UInt64
        var state: State
        var startedAt: Timestamp?
        var isStartReported = false
        /// What to report when it ends. Its result is not wanted if it belongs to another worker by
        /// now, or was given back.
        var end = End.report

        enum State: Hashable, Sendable {
            case waiting
            case running
            /// Running without a slot, because it waits for others.
            case yielded
        }

        enum End: Hashable, Sendable {
            /// Report how it ended.
            case report
            /// Report that it was given back.
            case giveBack
            /// Report nothing.
            case silent
        }
    }

    struct RetainedEvent: Sendable {
        let event: WorkerEvent
        let byteCount: Int
    }

    /// In the same order as at the coordinator: priority, rank, arrival.
    struct WaitingOperation: Comparable, Sendable {
        let priority: QueuePriority
        let rank: UInt64
        let arrival: UInt64
        let attempt: AttemptID

        static func < (left: WaitingOperation, right: WaitingOperation) -> Bool {
            if left.priority != right.priority { return left.priority < right.priority }
            if left.rank != right.rank { return left.rank < right.rank }
            return left.arrival > right.arrival
        }
    }
}
