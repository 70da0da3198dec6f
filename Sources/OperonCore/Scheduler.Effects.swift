package import OperonModel

extension Scheduler {
    /// What a scheduler asks for, to be done in this order, which is the crash-safety argument:
    /// records are stored before any message leaves, so that no worker ever holds an attempt that
    /// the store does not know; acknowledgements travel in messages, so that no worker forgets
    /// what is not stored. Notices affect nothing.
    package struct Effects: Sendable {
        package var records: [Record] = []
        package var messages: [Message] = []
        /// Numbers to send to itself, each through both of its queues.
        package var ticks: [UInt64] = []
        /// Requests for outputs, in the order in which they came; answered after the messages.
        package var fetches: [FetchOrder] = []
        /// Additions of running operations, to be compiled and given back at once.
        package var additions: [AdditionOrder] = []
        /// What running operations wait for, to be looked up and given back at once.
        package var waits: [WaitOrder] = []
        /// Likewise.
        package var reads: [ReadOrder] = []
        package var refusals: [Refusal] = []
        /// What commands did, one for each that was not refused.
        package var results: [CommandResult] = []
        package var notices: [Notice] = []
        /// When `timeReached` is wanted; `nil`: not at all.
        package var wakeAt: Timestamp?
        /// When `timeReached` is wanted by the wall clock as well, however that is set meanwhile;
        /// `nil`: nothing waits for a date.
        package var nextDate: WallTime?

        package init() {}

        /// Forgets everything but the wake-ups, keeping the memory.
        package mutating func removeAll() {
            records.removeAll(keepingCapacity: true)
            messages.removeAll(keepingCapacity: true)
            ticks.removeAll(keepingCapacity: true)
            fetches.removeAll(keepingCapacity: true)
            additions.removeAll(keepingCapacity: true)
            waits.removeAll(keepingCapacity: true)
            reads.removeAll(keepingCapacity: true)
            refusals.removeAll(keepingCapacity: true)
            results.removeAll(keepingCapacity: true)
            notices.removeAll(keepingCapacity: true)
        }

        /// Takes out what may be performed whether or not its records are kept; `nil`: nothing.
        /// Outputs are fetched for attempts that were stored before they were dispatched.
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

        /// Nothing is to be performed.
        var isNothing: Bool {
            messages.isEmpty && ticks.isEmpty && fetches.isEmpty && notices.isEmpty
        }

        /// Adds what is to be performed after this, and has no records of its own.
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

        package init(destination: Destination, sequence: UInt64, body: Body) {
            self.destination = destination
            self.sequence = sequence
            self.body = body
        }
    }

    package enum Destination: Hashable, Sendable {
        case worker(WorkerAddress)
        case everyWorker
    }

    package enum Body: Hashable, Sendable {
        /// The shell adds what the operations are made of.
        case dispatch(acknowledged: UInt64, [Grant])
        case plain(CoordinatorMessage)

        func hasRoom(forGrantsUpTo maximum: Int) -> Bool {
            switch self {
            case .dispatch(_, let grants):
                grants.count < maximum && grants.last?.announcesStart != true
            case .plain: false
            }
        }

        /// Adds to a dispatch, in place.
        mutating func append(_ grant: Grant) {
            guard case .dispatch(let acknowledged, var grants) = self else { return }
            // Gives up the other reference, so that the list is not copied.
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
        /// It may be what killed its worker: run it in a child process of its own.
        package var isIsolated = false
        /// An earlier attempt was lost and may still run: it travels alone, its start is announced.
        package var announcesStart = false
        /// It holds keys, and for how long without an answered beat.
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
        /// Operations it acted on.
        package var affected = 0
        /// Of those, the ones that ended by it at once.
        package var finished = 0
        /// Of those, the ones in flight: asked to stop, or left to go on.
        package var running = 0
        /// Operations that it let go on, or that wait on for what runs.
        package var released = 0
        /// No start is possible any more of what it cancelled or suspended.
        package var isEffective = true
        /// The first of those in flight.
        package var named: [OperationID] = []

        package init() {}

        static let namedMax = 8
    }

    /// What somebody may want to see; never affects correctness.
    package enum Notice: Hashable, Sendable {
        /// A graph has this many further operations, from this one on.
        case operationsAdded(GraphID, first: UInt32, count: UInt32)
        case ready(OperationID)
        case granted(OperationID, AttemptID, worker: Incarnation)
        case started(OperationID, AttemptID, at: Timestamp)
        /// It waits for others, and gave back its slot and its place in its queue.
        case yielded(OperationID, AttemptID)
        /// It goes on. `hasRoom`: it has them again; else it goes on without having waited to the
        /// end, and more run than may.
        case wentOn(OperationID, AttemptID, hasRoom: Bool)
        /// An attempt whose loss was told goes on.
        case resumed(OperationID, AttemptID, worker: Incarnation)
        /// `start` is `nil` for an attempt that never started or was lost before it said so.
        case attemptEnded(
            OperationID,
            AttemptID,
            AttemptEnding,
            start: Timestamp?,
            end: Timestamp
        )
        /// What a finished attempt left; before its `attemptEnded`.
        case result(OperationID, AttemptID, AttemptResult)
        case finished(OperationID, Outcome)
        case retry(OperationID, at: Timestamp)
        /// All of it is finished, and nothing can be added. Again after each `retry`.
        case graphFinished(GraphID)
        /// It was open, had nothing to do for too long, and was closed.
        case graphClosedIdle(GraphID)
        case workerJoined(WorkerIdentity, host: String, slots: Int)
        case workerLost(WorkerIdentity)
        case workerDraining(WorkerIdentity)
        /// It holds something of another reign, and was not welcomed.
        case workerBusy(WorkerIdentity, Reign)
        /// A worker follows a later coordinator of this reign: this one has to end.
        case superseded(by: Epoch)
        /// A late or repeated event that changed nothing.
        case eventRefused(AttemptID)
        case log(LogChunk)
        case progress(ProgressReport)

        /// Whether what it tells is a fact only once its records are kept.
        var restsOnRecords: Bool {
            switch self {
            case .workerBusy, .superseded, .eventRefused, .log, .progress: false
            case .operationsAdded, .ready, .granted, .started, .yielded, .wentOn, .resumed,
                .attemptEnded, .result, .finished, .retry, .graphFinished, .graphClosedIdle,
                .workerJoined, .workerLost, .workerDraining:
                true
            }
        }
    }
}
