/// The fields that every message has.
package struct Envelope<Body: Hashable & Sendable>: Hashable, Sendable {
    package var reign: Reign
    package var epoch: Epoch
    /// Counts the messages of one connection, from 1. Messages of a coordinator to one connection
    /// of a worker arrive in this order; the worker's beat reports the last one it received.
    package var sequence: UInt64
    /// The name, incarnation and connection of the worker; a coordinator sends an empty name and
    /// zeros.
    package var sender: WorkerIdentity
    package var body: Body
    /// What its sender may say; `nil`: everything. It is not sent: the receiver knows it from how
    /// the message was sealed.
    package var rights: SenderRights?

    package init(
        reign: Reign,
        epoch: Epoch,
        sequence: UInt64,
        sender: WorkerIdentity,
        body: Body
    ) {
        self.reign = reign
        self.epoch = epoch
        self.sequence = sequence
        self.sender = sender
        self.body = body
    }
}

package typealias CoordinatorEnvelope = Envelope<CoordinatorMessage>
package typealias WorkerEnvelope = Envelope<WorkerMessage>

/// Identifies a worker: its name, its incarnation, and the connection that it sends on.
package struct WorkerIdentity: Hashable, Sendable {
    package var name: String
    package var incarnation: Incarnation
    /// Counts the connections of this incarnation, from 1.
    package var connection: UInt32

    package init(name: String, incarnation: Incarnation, connection: UInt32) {
        self.name = name
        self.incarnation = incarnation
        self.connection = connection
    }

    package var address: WorkerAddress {
        WorkerAddress(incarnation: incarnation, connection: connection)
    }

    package static let none = WorkerIdentity(
        name: "",
        incarnation: .nobody,
        connection: 0
    )
}

/// Addresses one connection of a worker: its incarnation, and the number of the connection.
package struct WorkerAddress: Hashable, Sendable {
    package let incarnation: Incarnation
    package let connection: UInt32

    package init(incarnation: Incarnation, connection: UInt32) {
        self.incarnation = incarnation
        self.connection = connection
    }
}

// MARK: - From a worker

package enum WorkerMessage: Hashable, Sendable {
    case hello(Hello)
    case events(EventBatch)
    case beat(Beat)
    case log(LogChunk)
    case progress(ProgressReport)
    /// Sent by a coordinator to itself through one of its own queues: see `Tick`.
    case tick(Tick)
    /// Requests pieces of outputs: at least one.
    case fetch([OutputRequest])
    /// What it observes for triggers: at least one report.
    case watched([WatchReport])
}

/// A message that a coordinator sends to itself through each of its queues before it gives up any
/// worker. When the message is back, everything that was in that queue before it has been handled.
package struct Tick: Hashable, Sendable {
    package enum Way: UInt8, Hashable, Sendable {
        case events
        case beats
    }

    /// Counts from 1.
    package var number: UInt64
    package var way: Way

    package init(number: UInt64, way: Way) {
        self.number = number
        self.way = way
    }
}

/// An attempt that a worker holds, and the operation that the attempt belongs to.
package struct HeldAttempt: Hashable, Sendable, Codable {
    package var attempt: AttemptID
    package var operation: OperationID

    package init(attempt: AttemptID, operation: OperationID) {
        self.attempt = attempt
        self.operation = operation
    }
}

/// The first message of a worker on a connection. The worker repeats it with every beat until it
/// gets a welcome.
package struct Hello: Hashable, Sendable {
    package var sentAt: Timestamp
    package var host: String
    package var processID: Int32
    package var slots: UInt32
    /// The queues that the worker serves; empty: all.
    package var queues: [String]
    /// The kinds that the worker knows, sorted.
    package var kinds: [String]
    /// Whether the worker runs any kind, also kinds that are not in `kinds`.
    package var runsAnyKind = false
    /// Its resources and labels.
    package var offer = WorkerOffer()
    /// The attempts that the worker holds and that have no final event.
    package var held: [HeldAttempt]
    /// The first event that the worker still holds, and the last event that it has numbered.
    /// `firstEvent == lastEvent + 1`: it holds none.
    package var firstEvent: UInt64
    package var lastEvent: UInt64
    package var isDraining: Bool
    /// The id of the worker's state directory, whose lock the worker holds; empty: it has no
    /// directory.
    package var worker: String
    /// The previous incarnation with the same state directory. It is dead, and so is everything
    /// that it ran. Only the holder of the lock may report this.
    package var predecessor: Incarnation?

    package init(
        sentAt: Timestamp,
        host: String,
        processID: Int32,
        slots: UInt32,
        queues: [String],
        kinds: [String],
        held: [HeldAttempt],
        firstEvent: UInt64,
        lastEvent: UInt64,
        isDraining: Bool,
        worker: String = "",
        predecessor: Incarnation? = nil
    ) {
        self.worker = worker
        self.predecessor = predecessor
        self.sentAt = sentAt
        self.host = host
        self.processID = processID
        self.slots = slots
        self.queues = queues
        self.kinds = kinds
        self.held = held
        self.firstEvent = firstEvent
        self.lastEvent = lastEvent
        self.isDraining = isDraining
    }
}

/// Numbered events in order, without gaps.
package struct EventBatch: Hashable, Sendable {
    /// The number of the first event; the others have the numbers that follow.
    package var firstNumber: UInt64
    /// The time at which the worker sent this copy, on its clock.
    package var sentAt: Timestamp
    package var events: [WorkerEvent]

    package init(firstNumber: UInt64, sentAt: Timestamp, events: [WorkerEvent]) {
        self.firstNumber = firstNumber
        self.sentAt = sentAt
        self.events = events
    }
}

/// What a worker reports about an attempt. The worker keeps the event until the coordinator
/// acknowledges its number.
package enum WorkerEvent: Hashable, Sendable {
    case started(HeldAttempt, at: Timestamp)
    case finished(HeldAttempt, AttemptResult)
    /// The attempt was not started and will not be.
    case returned(HeldAttempt)
    /// The running attempt adds operations to its graph.
    case added(HeldAttempt, AdditionRequest)
    /// The running attempt gave up its slot and waits for other operations.
    case yielded(HeldAttempt, WaitRequest)
    /// The running attempt asks for the output of another operation.
    case read(HeldAttempt, ReadRequest)

    package var held: HeldAttempt {
        switch self {
        case .started(let held, _), .finished(let held, _), .returned(let held),
            .added(let held, _), .yielded(let held, _), .read(let held, _):
            held
        }
    }
}

/// The end of one attempt.
package struct AttemptResult: Hashable, Sendable {
    package var end: AttemptEnd
    package var startedAt: Timestamp
    package var endedAt: Timestamp
    package var output: Payload
    package var log: KeptLog
    /// Whether the attempt succeeded without a process, because its files were up to date.
    package var isUpToDate = false

    package init(
        end: AttemptEnd,
        startedAt: Timestamp,
        endedAt: Timestamp,
        output: Payload = .empty,
        log: KeptLog = .empty
    ) {
        self.end = end
        self.startedAt = startedAt
        self.endedAt = endedAt
        self.output = output
        self.log = log
    }
}

package enum AttemptEnd: Hashable, Sendable {
    case succeeded
    case failed(OperationError)
    /// The attempt stopped because it was asked to.
    case cancelled
    /// The child process that ran the attempt died without a result; the worker still runs.
    case crashed
    /// The operation cannot do its work yet. It gives up its slot and is tried again after this
    /// time. This does not count as a failure.
    case notYet(after: Duration)
}

/// The heartbeat of a worker, which lists what it holds.
package struct Beat: Hashable, Sendable {
    package var sentAt: Timestamp
    /// The highest sequence number received on this connection.
    package var received: UInt64
    /// The number of the last event sent.
    package var sent: UInt64
    /// The attempts that the worker holds and that have no final event up to `sent`.
    package var held: [HeldAttempt]
    package var isDraining: Bool
    /// Requests for outputs that have no answer yet.
    package var requests: [OutputRequest]
    /// Requests of running operations that have no verdict yet.
    package var open: [OpenRequest]

    package init(
        sentAt: Timestamp,
        received: UInt64,
        sent: UInt64,
        held: [HeldAttempt],
        isDraining: Bool,
        requests: [OutputRequest] = [],
        open: [OpenRequest] = []
    ) {
        self.requests = requests
        self.open = open
        self.sentAt = sentAt
        self.received = received
        self.sent = sent
        self.held = held
        self.isDraining = isDraining
    }
}

/// A piece of what an operation prints. It may be lost.
package struct LogChunk: Hashable, Sendable {
    package var held: HeldAttempt
    package var stream: LogStream
    /// How many bytes of this stream came before this piece.
    package var offset: UInt64
    /// How many bytes of both streams came before this piece; `nil`: the worker is of a version
    /// that does not say it.
    package var position: UInt64?
    package var bytes: [UInt8]

    package init(
        held: HeldAttempt,
        stream: LogStream,
        offset: UInt64,
        position: UInt64? = nil,
        bytes: [UInt8]
    ) {
        self.held = held
        self.stream = stream
        self.offset = offset
        self.position = position
        self.bytes = bytes
    }
}

/// The progress that a running operation reports. It may be lost; only the latest report counts.
package struct ProgressReport: Hashable, Sendable {
    package var held: HeldAttempt
    package var progress: ReportedProgress

    package init(held: HeldAttempt, progress: ReportedProgress) {
        self.held = held
        self.progress = progress
    }
}

package struct ReportedProgress: Hashable, Sendable, Codable {
    /// From 0 to 1.
    package var fraction: Double
    /// What the operation is doing now, for people; at most `Limits.nameBytes`.
    package var text: String?

    package init(fraction: Double, text: String?) {
        self.fraction = fraction
        self.text = text
    }
}

package enum LogStream: UInt8, Hashable, Sendable {
    case output = 0
    case error = 1
}

// MARK: - From a coordinator

package enum CoordinatorMessage: Hashable, Sendable {
    case welcome(Welcome)
    case dispatch(Dispatch)
    case control(Control)
    /// Asks all workers to say hello.
    case resync
    /// The worker's message came from a connection or an incarnation that is no longer the latest.
    case refused(RefusalReason)
    /// Answers to requests for outputs, at least one. They have no sequence number, because any
    /// other message may overtake them.
    case chunks([OutputChunk])
    /// What the worker is to watch for triggers: at least one order, without a sequence number.
    case watch([WatchOrder])
}

package enum RefusalReason: UInt8, Hashable, Sendable {
    /// A newer incarnation, or a newer connection of the same incarnation, uses this name.
    case newIncarnation = 0
    /// Two living workers use the same name.
    case nameTaken = 1
    /// The coordinator has as many workers as it takes.
    case tooManyWorkers = 2
}

/// The answer to a hello: from here on the worker belongs to this reign and epoch.
package struct Welcome: Hashable, Sendable {
    /// `sentAt` of the hello that this answers.
    package var answers: Timestamp
    package var lease: Duration
    package var beat: Duration
    /// How many bytes of events the worker may have in flight.
    package var eventWindow: UInt32
    /// How long a worker keeps working for this reign without hearing from it.
    package var orphanAfter: Duration
    /// The coordinator has handled all events up to this number.
    package var acknowledged: UInt64
    /// Orders for attempts in the hello that must not start or must end. The worker obeys them
    /// before it starts anything: if it was given up in the meantime, it may list attempts whose
    /// operations another worker runs by now.
    package var orders: [Order]

    package init(
        answers: Timestamp,
        lease: Duration,
        beat: Duration,
        eventWindow: UInt32,
        orphanAfter: Duration,
        acknowledged: UInt64,
        orders: [Order] = []
    ) {
        self.orders = orders
        self.answers = answers
        self.lease = lease
        self.beat = beat
        self.eventWindow = eventWindow
        self.orphanAfter = orphanAfter
        self.acknowledged = acknowledged
    }
}

/// Operations for one worker, each as a stored attempt of its own.
package struct Dispatch: Hashable, Sendable {
    package var acknowledged: UInt64
    package var operations: [DispatchedOperation]
    /// Operations that arrived but that this process cannot read. Never sent: only decoding fills
    /// this.
    package var unreadable: [UnreadableOperation]

    package init(
        acknowledged: UInt64,
        operations: [DispatchedOperation],
        unreadable: [UnreadableOperation] = []
    ) {
        self.acknowledged = acknowledged
        self.operations = operations
        self.unreadable = unreadable
    }
}

/// An attempt that its worker cannot read. It ends as `failed(undecodable)`, so that it is not
/// dispatched to the same worker forever.
package struct UnreadableOperation: Hashable, Sendable {
    package var held: HeldAttempt
    /// One sentence for a person.
    package var why: String

    package init(held: HeldAttempt, why: String) {
        self.held = held
        self.why = why
    }
}

/// Everything a worker needs to run an attempt.
package struct DispatchedOperation: Hashable, Sendable {
    package var held: HeldAttempt
    /// Counts the attempts of this operation, from 1: `OPERON_ATTEMPT`.
    package var ordinal: UInt32
    package var graphName: String
    package var name: String
    package var queue: String
    package var work: Work
    package var priority: QueuePriority
    /// Orders operations of the same priority: larger first.
    package var rank: UInt64
    package var timeout: Duration?
    package var qualityOfService: QualityOfService
    /// The outputs of its direct dependencies, in the order they are listed. An entry whose
    /// `output` and `reference` are both `nil` has no output, or one that was dropped.
    package var inputs: [NamedInput]
    /// The operation may kill the process that runs it, so the worker runs it in a child process.
    package var isIsolated: Bool
    /// Whether the worker must report the start at once, because an earlier attempt may still run
    /// elsewhere.
    package var announcesStart: Bool
    /// An earlier attempt may have started, and may have left files that it had not finished.
    package var isRepeat = false
    /// For an operation that holds keys: its right to run ends this long after the worker sent the
    /// last beat that was answered. The worker ends it a second before that. `nil`: it holds no
    /// keys.
    package var exclusiveLease: Duration?
    /// The trace that the operation belongs to, in W3C format; empty: none.
    package var traceParent: String
    /// What it takes of its worker besides a slot.
    package var resources: ResourceAmounts = []
    /// Whether its worker must hold it to the processors and the memory among them.
    package var isEnforced = false
    /// What its worker gave it of that. Not sent: the worker sets it at the start.
    package var allocation = Allocation()

    package init(
        held: HeldAttempt,
        ordinal: UInt32,
        graphName: String,
        name: String,
        queue: String,
        work: Work,
        priority: QueuePriority,
        rank: UInt64,
        timeout: Duration?,
        qualityOfService: QualityOfService,
        inputs: [NamedInput],
        isIsolated: Bool = false,
        announcesStart: Bool = false,
        exclusiveLease: Duration? = nil,
        traceParent: String = ""
    ) {
        self.traceParent = traceParent
        self.isIsolated = isIsolated
        self.announcesStart = announcesStart
        self.exclusiveLease = exclusiveLease
        self.held = held
        self.ordinal = ordinal
        self.graphName = graphName
        self.name = name
        self.queue = queue
        self.work = work
        self.priority = priority
        self.rank = rank
        self.timeout = timeout
        self.qualityOfService = qualityOfService
        self.inputs = inputs
    }
}

/// The output of a dependency, under the name of the dependency.
package struct NamedInput: Hashable, Sendable {
    package var name: String
    package var output: Payload?
    /// Where to fetch the output from; `nil`: it is already here, or there is none. An operation
    /// that was started has no references left.
    package var reference: OutputReference?
    /// Whether the dependency succeeded but its output is no longer kept. It is then unknown
    /// whether there was an output.
    package var isDropped = false

    package init(name: String, output: Payload?, reference: OutputReference? = nil) {
        self.name = name
        self.output = output
        self.reference = reference
    }

    /// The size of the output in bytes, whether it is here or must be fetched.
    package var byteCount: Int { reference?.byteCount ?? output?.bytes.count ?? 0 }
}

/// Orders, acknowledgements, and the answer to a beat.
package struct Control: Hashable, Sendable {
    /// `sentAt` of the beat that this answers; `nil`: it answers none.
    package var answers: Timestamp?
    package var acknowledged: UInt64
    /// The worker resends its events from this number on, because that event did not arrive.
    package var resendFrom: UInt64?
    package var orders: [Order]
    /// Answers to the requests of running operations.
    package var verdicts: [Verdict]

    package init(
        answers: Timestamp? = nil,
        acknowledged: UInt64,
        resendFrom: UInt64? = nil,
        orders: [Order] = [],
        verdicts: [Verdict] = []
    ) {
        self.verdicts = verdicts
        self.answers = answers
        self.acknowledged = acknowledged
        self.resendFrom = resendFrom
        self.orders = orders
    }
}

package enum Order: Hashable, Sendable {
    /// Returns the attempt if it has not started; otherwise the worker reports that it started.
    case recall(HeldAttempt)
    /// Like `recall`; if the attempt has started, the worker also asks it to stop.
    case cancel(HeldAttempt)
    /// The attempt no longer belongs to this worker: end it at once and report nothing. No effect
    /// on an attempt that the worker does not hold.
    case stop(HeldAttempt)
    /// Take no more attempts, and leave when the running ones have ended.
    case drain
}
