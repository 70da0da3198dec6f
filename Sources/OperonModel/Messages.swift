/// What every message carries, whoever sends it.
package struct Envelope<Body: Hashable & Sendable>: Hashable, Sendable {
    package var reign: Reign
    package var epoch: Epoch
    /// Counts the messages of one connection, from 1. Those of a coordinator to a worker's
    /// connection arrive in this order; a beat says how far it has come.
    package var sequence: UInt64
    /// The worker's name and incarnation; empty and zero from a coordinator.
    package var sender: WorkerIdentity
    package var body: Body

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

/// Who a worker is: the name a person knows, the life it is in, and the connection it speaks from.
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

    package static let none = WorkerIdentity(
        name: "",
        incarnation: .nobody,
        connection: 0
    )
}

/// Where a worker's connection is reached: its incarnation, and the number of the connection.
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
    /// From a coordinator to itself, through one of its own queues: see `Tick`.
    case tick(Tick)
    /// Asks for pieces of outputs: at least one.
    case fetch([OutputRequest])
}

/// What a coordinator sends itself through each of its queues before it gives anybody up: when it
/// is back, whatever was in that queue before it has been handled.
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

/// An attempt that a worker has in its hands, and whose it is.
package struct HeldAttempt: Hashable, Sendable, Codable {
    package var attempt: AttemptID
    package var operation: OperationID

    package init(attempt: AttemptID, operation: OperationID) {
        self.attempt = attempt
        self.operation = operation
    }
}

/// A worker's first word on a connection, said again every beat until it is welcomed.
package struct Hello: Hashable, Sendable {
    package var sentAt: Timestamp
    package var host: String
    package var processID: Int32
    package var slots: UInt32
    /// The queues it serves; empty: all.
    package var queues: [String]
    /// The kinds it knows, sorted.
    package var kinds: [String]
    /// It knows any kind, also those that are not among `kinds`.
    package var runsAnyKind = false
    /// Attempts without a final event.
    package var held: [HeldAttempt]
    /// The first event it still holds, and the last it has numbered. `first == last + 1`: none.
    package var firstEvent: UInt64
    package var lastEvent: UInt64
    package var isDraining: Bool
    /// The id of its state directory, whose lock it holds; empty: it has none.
    package var worker: String
    /// The life before this one on the same state directory: it is dead, and so is whatever it
    /// ran. Only the holder of the lock may say so.
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
    /// The number of the first; the others follow it one by one.
    package var firstNumber: UInt64
    /// When the worker sent this copy, on its clock.
    package var sentAt: Timestamp
    package var events: [WorkerEvent]

    package init(firstNumber: UInt64, sentAt: Timestamp, events: [WorkerEvent]) {
        self.firstNumber = firstNumber
        self.sentAt = sentAt
        self.events = events
    }
}

/// What a worker reports of an attempt. Kept until the coordinator acknowledges its number.
package enum WorkerEvent: Hashable, Sendable {
    case started(HeldAttempt, at: Timestamp)
    case finished(HeldAttempt, AttemptResult)
    /// It was not started and will not be.
    case returned(HeldAttempt)
    /// It runs, and adds operations to its graph.
    case added(HeldAttempt, AdditionRequest)
    /// It runs, and waits for others without a slot.
    case yielded(HeldAttempt, WaitRequest)
    /// It runs, and asks what another operation has left.
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
    /// The last bytes of what it printed.
    package var logTail: [UInt8]
    /// How many bytes it printed before `logTail`.
    package var logBytesDropped: UInt64

    package init(
        end: AttemptEnd,
        startedAt: Timestamp,
        endedAt: Timestamp,
        output: Payload = .empty,
        logTail: [UInt8] = [],
        logBytesDropped: UInt64 = 0
    ) {
        self.end = end
        self.startedAt = startedAt
        self.endedAt = endedAt
        self.output = output
        self.logTail = logTail
        self.logBytesDropped = logBytesDropped
    }
}

package enum AttemptEnd: Hashable, Sendable {
    case succeeded
    case failed(OperationError)
    /// It stopped because it was asked to.
    case cancelled
    /// The child process that ran it died without a result, while its worker lives.
    case crashed
    /// What it is for does not hold yet: it gives its place back, and is to be tried again when
    /// this has passed. Counts as no failure.
    case notYet(after: Duration)
}

/// What a worker holds, every beat.
package struct Beat: Hashable, Sendable {
    package var sentAt: Timestamp
    /// The highest sequence number received on this connection.
    package var received: UInt64
    /// The number of the last event sent.
    package var sent: UInt64
    /// Attempts without a final event up to `sent`.
    package var held: [HeldAttempt]
    package var isDraining: Bool
    /// Those for outputs that have no answer yet.
    package var requests: [OutputRequest]
    /// Those of operations that have no verdict yet.
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

/// A piece of what an operation prints; may be lost.
package struct LogChunk: Hashable, Sendable {
    package var held: HeldAttempt
    package var stream: LogStream
    /// How many bytes of this stream came before.
    package var offset: UInt64
    package var bytes: [UInt8]

    package init(held: HeldAttempt, stream: LogStream, offset: UInt64, bytes: [UInt8]) {
        self.held = held
        self.stream = stream
        self.offset = offset
        self.bytes = bytes
    }
}

/// How far a running operation says it is; may be lost, and only the latest counts.
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
    /// What it is at, for people; at most `Limits.nameBytes`.
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
    /// To all workers: say hello.
    case resync
    /// Your hello or message was of a connection or life that is no longer the latest.
    case refused(RefusalReason)
    /// Answers to requests for outputs, at least one. Not numbered, because everything else may
    /// overtake it.
    case chunks([OutputChunk])
}

package enum RefusalReason: UInt8, Hashable, Sendable {
    /// A newer incarnation, or a newer connection of it, speaks under this name.
    case newIncarnation = 0
    /// Two living workers use one name.
    case nameTaken = 1
}

/// The answer to a hello: from here on the worker belongs to this reign and epoch.
package struct Welcome: Hashable, Sendable {
    /// `sentAt` of the hello that it answers.
    package var answers: Timestamp
    package var lease: Duration
    package var beat: Duration
    /// Bytes of events in flight.
    package var eventWindow: UInt32
    /// How long a worker without word from this reign stays true to it.
    package var orphanAfter: Duration
    /// Events up to this number are handled.
    package var acknowledged: UInt64
    /// What of the attempts in the hello must not be started, or is to end: obeyed before anything
    /// is started, since a worker that was given up meanwhile may list what is another's by now.
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

/// Operations for one worker, each a stored attempt of its own.
package struct Dispatch: Hashable, Sendable {
    package var acknowledged: UInt64
    package var operations: [DispatchedOperation]
    /// Those that arrived and cannot be read here. Never sent: only decoding fills it.
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

/// An attempt that a worker was given and cannot read: it ends `failed(undecodable)`, so that it is
/// not dispatched to the same worker for ever.
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
    /// Orders operations of one priority: larger first.
    package var rank: UInt64
    package var timeout: Duration?
    package var qualityOfService: QualityOfService
    /// The outputs of its direct dependencies, in the order they are listed; `nil`: it has none.
    package var inputs: [NamedInput]
    /// It may kill the process that runs it: run it in a child process of its own.
    package var isIsolated: Bool
    /// Report its start at once: an earlier attempt may still run elsewhere.
    package var announcesStart: Bool
    /// It holds keys: the right to run ends this long after the last answered beat was sent, and
    /// the worker ends it a second before. `nil`: it holds none.
    package var exclusiveLease: Duration?
    /// The trace that it belongs to, as W3C writes it; empty: none.
    package var traceParent: String

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

/// The output of a dependency, by its name.
package struct NamedInput: Hashable, Sendable {
    package var name: String
    package var output: Payload?
    /// Where to fetch it from; `nil`: it is here, or there is none. What is started has none left.
    package var reference: OutputReference?
    /// It succeeded, and what it left is not kept any more: not even whether it left anything.
    package var isDropped = false

    package init(name: String, output: Payload?, reference: OutputReference? = nil) {
        self.name = name
        self.output = output
        self.reference = reference
    }

    /// Of the output, wherever it is.
    package var byteCount: Int { reference?.byteCount ?? output?.bytes.count ?? 0 }
}

/// Orders, acknowledgements, and the answer to a beat.
package struct Control: Hashable, Sendable {
    /// `sentAt` of the beat this answers; `nil`: it answers none.
    package var answers: Timestamp?
    package var acknowledged: UInt64
    /// Send again from this event number on: it did not arrive.
    package var resendFrom: UInt64?
    package var orders: [Order]
    /// On requests of operations.
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
    /// Give it back if it has not started, say so if it has.
    case recall(HeldAttempt)
    /// As recall, and if it has started ask it to stop.
    case cancel(HeldAttempt)
    /// It is not yours any more: end it at once, report nothing. A no-op for what is not held.
    case stop(HeldAttempt)
    /// Take nothing more, and leave when what runs has ended.
    case drain
}
