package import OperonModel

extension Scheduler {
    /// What a scheduler asks the shell to do, in this order. Crash safety rests on the order:
    /// records are stored before any message leaves, so no worker ever holds an attempt that the
    /// store does not know; acknowledgements travel in messages, so no worker forgets a result that
    /// is not stored. Notices affect nothing.
    package struct Effects: Sendable {
        package var records: [Record] = []
        /// Which of the records clients with a name asked for, in ascending order.
        package internal(set) var attributions: [Attribution] = []
        package var messages: [Message] = []
        /// Numbers of ticks that the coordinator sends to itself, each through both of its queues.
        package var ticks: [UInt64] = []
        /// Requests for outputs, in order of arrival. They are answered after the messages are
        /// sent.
        package var fetches: [FetchOrder] = []
        package var refusals: [NumberedRefusal] = []
        /// What commands did: one result for each command that was not refused.
        package var results: [CommandResult] = []
        package var notices: [Notice] = []
        /// When the scheduler wants `timeReached`; `nil`: not at all.
        package var wakeAt: Timestamp?
        /// When the scheduler wants `timeReached` on the wall clock as well, even if that clock is
        /// set meanwhile; `nil`: nothing waits for a date.
        package var nextDate: WallTime?

        package init() {}

        /// Removes everything except the wake-ups, and keeps the memory.
        package mutating func removeAll() {
            records.removeAll(keepingCapacity: true)
            attributions.removeAll(keepingCapacity: true)
            messages.removeAll(keepingCapacity: true)
            ticks.removeAll(keepingCapacity: true)
            fetches.removeAll(keepingCapacity: true)
            refusals.removeAll(keepingCapacity: true)
            results.removeAll(keepingCapacity: true)
            notices.removeAll(keepingCapacity: true)
        }

        /// Takes out the effects that may be performed whether or not their records are stored;
        /// `nil`: there are none. A fetch is among them because its attempt was stored before it
        /// was dispatched.
        mutating func takeFree() -> Effects? {
            let hasFree = notices.contains { !$0.restsOnRecords }
            guard hasFree || !fetches.isEmpty else { return nil }
            var free = Effects()
            swap(&free.fetches, &fetches)
            if hasFree {
                free.notices = notices.filter { !$0.restsOnRecords }
                notices.removeAll { !$0.restsOnRecords }
            }
            return free
        }

        /// Whether there is nothing to perform.
        var isNothing: Bool {
            messages.isEmpty && ticks.isEmpty && fetches.isEmpty && notices.isEmpty
        }

        /// Appends effects that are to be performed after these and have no records.
        mutating func append(_ later: Effects) {
            messages += later.messages
            ticks += later.ticks
            fetches += later.fetches
            notices += later.notices
        }
    }

    package typealias Record = StoreRecord
    package typealias AttemptEnding = OperonModel.AttemptEnding

    package struct Message: Hashable, Sendable {
        package var destination: Destination
        package var sequence: UInt64
        package var body: Body
        /// The verdicts of a control message. The shell puts their refusals into words and adds
        /// them to the message.
        package var verdicts: [Verdict]

        package init(
            destination: Destination,
            sequence: UInt64,
            body: Body,
            verdicts: [Verdict] = []
        ) {
            self.destination = destination
            self.sequence = sequence
            self.body = body
            self.verdicts = verdicts
        }
    }

    package enum Destination: Hashable, Sendable {
        case worker(WorkerAddress)
        case everyWorker
    }

    package enum Body: Hashable, Sendable {
        /// The shell adds the contents of the operations.
        case dispatch(acknowledged: UInt64, [Grant])
        case plain(CoordinatorMessage)

        func hasRoom(forGrantsUpTo maximum: Int) -> Bool {
            switch self {
            case .dispatch(_, let grants):
                grants.count < maximum && grants.last?.announcesStart != true
            case .plain: false
            }
        }

        /// Adds a grant to a dispatch, in place.
        mutating func append(_ grant: Grant) {
            guard case .dispatch(let acknowledged, var grants) = self else { return }
            // Drops the other reference first, so that the list is not copied.
            self = .dispatch(acknowledged: acknowledged, [])
            grants.append(grant)
            self = .dispatch(acknowledged: acknowledged, grants)
        }
    }

    /// A stored attempt on its way to its worker.
    package struct Grant: Hashable, Sendable {
        package var held: HeldAttempt
        package var ordinal: UInt32
        package var priority: QueuePriority
        package var rank: UInt64
        /// The operation may have killed its worker: run it in a child process of its own.
        package var isIsolated = false
        /// An earlier attempt was lost and may still run: this grant travels alone, and its worker
        /// reports the start.
        package var announcesStart = false
        /// An earlier attempt may have started, and may have left files that it had not finished.
        package var isRepeat = false
        /// How long the attempt keeps its keys without an answered beat; `nil`: it holds no keys.
        package var exclusiveLease: Duration?

        package init(
            held: HeldAttempt,
            ordinal: UInt32,
            priority: QueuePriority,
            rank: UInt64
        ) {
            self.held = held
            self.ordinal = ordinal
            self.priority = priority
            self.rank = rank
        }
    }

    /// What a command did.
    package struct CommandResult: Hashable, Sendable {
        /// Operations that the command acted on.
        package var affected = 0
        /// How many of them ended at once.
        package var finished = 0
        /// How many of them are in flight: asked to stop, or left running.
        package var running = 0
        /// Operations that the command released, or that wait on for running ones.
        package var released = 0
        /// Nothing that the command cancelled or suspended can start any more.
        package var isEffective = true
        /// The first few of the operations in flight.
        package var named: [OperationID] = []

        package init() {}

        static let namedMax = 8
    }

    /// Something that a person may want to see. It never affects correctness.
    package enum Notice: Hashable, Sendable {
        /// A graph got this many more operations; `first` is the first of them.
        case operationsAdded(GraphID, first: UInt32, count: UInt32)
        case ready(OperationID)
        case granted(OperationID, AttemptID, worker: Incarnation)
        case started(OperationID, AttemptID, at: Timestamp)
        /// The operation waits for others, and gave back its slot and its place in its queue.
        case yielded(OperationID, AttemptID)
        /// The operation goes on after a wait. `hasRoom`: it has its slot and place again.
        /// Otherwise it goes on before its wait was over, and more operations run than the limits
        /// allow.
        case waitEnded(OperationID, AttemptID, hasRoom: Bool)
        /// An attempt that was reported lost goes on.
        case resumed(OperationID, AttemptID, worker: Incarnation)
        /// `start` is `nil` if the attempt never started, or was lost before its worker reported
        /// the start.
        case attemptEnded(
            OperationID,
            AttemptID,
            AttemptEnding,
            start: Timestamp?,
            end: Timestamp
        )
        /// The result of a finished attempt. It comes before its `attemptEnded`.
        case result(OperationID, AttemptID, AttemptResult)
        case finished(OperationID, Outcome)
        /// Operations with no attempt in flight finished together.
        case rangeFinished(OperationRange, Outcome)
        case retry(OperationID, at: Timestamp)
        /// Everything in the graph is finished, and nothing can be added. Sent again after each
        /// `retry`.
        case graphFinished(GraphID)
        /// An open graph had nothing to do for too long, and was closed.
        case graphClosedIdle(GraphID)
        case workerJoined(WorkerIdentity, host: String, slots: Int)
        case workerLost(WorkerIdentity)
        /// The name is that of the client that asked for it; empty: the client has none, or the
        /// worker drains by itself.
        case workerDraining(WorkerIdentity, by: String)
        /// The worker holds something of another reign, so it was not welcomed.
        case workerBusy(WorkerIdentity, Reign)
        /// A worker follows a later coordinator of this reign: this coordinator has to end.
        case superseded(by: Epoch)
        /// An event came late or twice, and changed nothing.
        case eventRefused(AttemptID)
        case log(LogChunk)
        case progress(ProgressReport)
        /// What a worker says of the sources that it watches.
        case watched(Incarnation, [WatchReport])

        /// Whether the notice is true only once its records are stored.
        var restsOnRecords: Bool {
            switch self {
            case .workerBusy, .superseded, .eventRefused, .log, .progress, .watched: false
            case .operationsAdded, .ready, .granted, .started, .yielded, .waitEnded, .resumed,
                .attemptEnded, .result, .finished, .rangeFinished, .retry, .graphFinished,
                .graphClosedIdle,
                .workerJoined, .workerLost, .workerDraining:
                true
            }
        }
    }
}
