import DequeModule
import HeapModule
package import OperonModel

/// A worker's decisions: what to start, what to give back, what to tell the coordinator and when
/// to forget it. Driven by the worker's shell and by the simulator; it knows no clock, no chance,
/// and nothing of how an operation runs.
package struct WorkerAgent: Sendable {
    package let configuration: Configuration

    /// What it belongs to; the zero reign before its first welcome.
    package internal(set) var reign = Reign(rawValue: 0)
    package internal(set) var epoch = Epoch(rawValue: 0)
    var link = Link.down
    var connection: UInt32 = 0
    /// The highest sequence number received on this connection.
    var received: UInt64 = 0
    var settings = Settings()

    /// Dispatched and not started, most urgent first; out of date where `isWaiting` says so.
    var waiting = Heap<WaitingOperation>()
    var arrivals: UInt64 = 0
    /// Everything held without a final event. Only looked up; `heldInOrder` is walked.
    var held: [AttemptID: Holding] = [:]
    var runningCount = 0
    /// Running, and without a slot while they wait for others.
    var yieldedCount = 0
    /// Of these, those that have their answer and wait for a slot, first come first.
    var resuming = Deque<(attempt: AttemptID, answer: RequestAnswer)>()
    /// Those of the waiting ones that have a slot, and get their inputs before they start.
    var fetcher: OutputFetcher
    /// What running operations asked and have no verdict on, in the order they asked.
    var open: [OpenState] = []
    /// Running, and not yet reported as started.
    var unreportedStarts = Deque<AttemptID>()
    /// Running, with keys whose right may run out, in the order of their starts.
    var exclusive: [AttemptID] = []

    /// Events without an acknowledgement, the first numbered `firstEvent`.
    var events = Deque<RetainedEvent>()
    var firstEvent: UInt64 = 1
    /// How many of `events` were sent on this connection.
    var sentCount = 0
    var retainedBytes = 0
    var inFlightBytes = 0
    /// Attempts that have a final event among `events`.
    var finalAttempts: Set<AttemptID> = []

    /// When the last answered beat or hello was sent: what the right to start rests on.
    var leaseProof: Timestamp?
    /// When the first beat or hello without an answer was sent.
    var unansweredSince: Timestamp?
    var nextBeat: Timestamp = .zero
    /// The last event for whose sake a beat was sent early.
    var hastenedEvent: UInt64 = 0
    /// Last word of the coordinator.
    var heardAt: Timestamp = .zero
    var drain = Drain.none

    package init(configuration: Configuration) {
        self.configuration = configuration
        fetcher = OutputFetcher(limits: configuration.limits)
    }

    /// Takes one event and appends what follows from it.
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
        startWhatMay(at: now, into: &effects)
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
        /// The life before this one on that directory, if there was one: it is dead.
        package var predecessor: Incarnation?
        /// Queues it serves; empty: all.
        package var queues: [String] = []
        /// Kinds it knows, sorted.
        package var kinds: [String]
        /// It is given operations of every kind, also of those that are not among `kinds`.
        package var runsAnyKind = false
        /// A start is reported by itself after this long; what ends sooner reports both at once.
        package var startReportDelay: Duration = .milliseconds(100)
        /// How long what runs may go on when the coordinator asks it to drain.
        package var drainTimeout: Duration = .seconds(30)
        /// How long a drained worker waits for its last events to be acknowledged.
        package var farewell: Duration = .seconds(5)
        /// The same for one that is to end now, and for what it killed to end.
        package var lastWords: Duration = .seconds(1)
        /// Events in one message.
        package var eventsPerMessage = 256
        /// Bytes of events in one message, or one event if larger.
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
        /// A connection is up: its queue is bound and consumed.
        case linkUp(connection: UInt32)
        case linkDown
        /// The broker says that no coordinator is there to take a message: the connection works.
        case returned
        case message(CoordinatorEnvelope)
        /// What was started has ended.
        case ended(AttemptID, AttemptResult)
        /// A step towards the inputs of what is to be started was done.
        case inputs(InputProgress)
        /// A running operation asks something; the number counts from 1. Each gets one answer.
        case asked(UInt64, AttemptID, RequestContent)
        /// Whoever asked this does not wait for the answer any more; it gets one all the same.
        case withdrawn(UInt64)
        /// Start nothing more, give back what waits, and what still runs at this moment.
        case drainRequested(deadline: Timestamp)
        /// End everything now, and give it back.
        case stopRequested
        case timeReached
    }

    /// To be done in this order.
    package struct Effects: Sendable {
        package var messages: [(lane: Lane, envelope: WorkerEnvelope)] = []
        package var inputSteps: [OutputFetcher.Step] = []
        package var starts: [DispatchedOperation] = []
        package var stops: [Stop] = []
        package var answers: [RequestAnswer] = []
        /// The connection says nothing: open another.
        package var wantsReconnect = false
        /// Everything is done or given up.
        package var wantsExit = false
        package var notices: [Notice] = []
        package var wakeAt: Timestamp?

        package init() {}

        package mutating func removeAll() {
            messages.removeAll(keepingCapacity: true)
            inputSteps.removeAll(keepingCapacity: true)
            starts.removeAll(keepingCapacity: true)
            stops.removeAll(keepingCapacity: true)
            answers.removeAll(keepingCapacity: true)
            notices.removeAll(keepingCapacity: true)
            wantsReconnect = false
        }
    }

    package enum Lane: Hashable, Sendable {
        case events
        case beats
    }

    package enum Stop: Hashable, Sendable {
        /// Ask it to stop; it may take its grace, and reports how it ended.
        case cancel(AttemptID)
        /// End it at once; its end interests nobody.
        case kill(AttemptID)
    }

    package enum Notice: Hashable, Sendable {
        case welcomed(Reign, Epoch)
        /// The lease ran out before it could start what it had: given up, and asked for again.
        case leaseExpired(dropped: Int)
        case refused(RefusalReason)
        case draining(returned: Int, running: Int)
        case orphaned(Reign)
        /// A copy, or what came before a welcome: dropped, and repaired by the next beat.
        case dispatchIgnored(AttemptID)
    }

    enum Link: Hashable, Sendable {
        case down
        /// Connected; says hello every beat until it is welcomed.
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
        /// Finishing what runs, until the moment.
        case finishing(until: Timestamp)
        /// Its processes were told to end.
        case ending
        /// Nothing runs; waiting for the last acknowledgement.
        case leaving(until: Timestamp)
        /// What ran was killed; waiting for its ends and the last acknowledgement.
        case stopping(until: Timestamp)
        case left
    }

    /// What is held, in the order of arrival: for beats and for leaving, not for every event, so it
    /// is sorted when it is wanted, and an end costs the same with 4,096 slots as with one.
    var heldInOrder: [HeldAttempt] {
        held.values.sorted { $0.arrival < $1.arrival }.map(\.operation.held)
    }

    struct Holding: Sendable {
        let operation: DispatchedOperation
        let arrival: UInt64
        var state: State
        var startedAt: Timestamp?
        var isStartReported = false
        /// Its result is not wanted: the attempt is somebody else's now, or it was given back.
        var end = End.report

        enum State: Hashable, Sendable {
            case waiting
            case running
            /// Running, without a slot: it waits for others.
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

    /// Ordered as the coordinator orders: priority, rank, arrival.
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
