import OperonModel

/// What the scheduler knows of one graph, in addition to the compiled graph.
struct GraphState: Sendable {
    /// Grows with additions. Of a policy that came with an addition, only the fields that its rule
    /// does not repeat are valid: its queue, its kind and its demand are numbers of the addition,
    /// not of this graph.
    var compiled: CompiledGraph
    /// One rule for each of the graph's policies.
    var rules: [PolicyRule]
    /// The scheduler's number of each key, by the graph's number.
    var keys: [Int]
    let submittedAt: Moment

    var operations: OperationTable
    /// Outcomes other than success, with their details.
    var outcomes = OutcomeDetails()
    var reasons: [UInt32: String] = [:]
    /// What each operation has lost. Never iterated.
    var losses: [UInt32: Losses] = [:]

    /// What delayed ready operations wait for. Only looked up, or sorted before iteration.
    var delays: [UInt32: Delay] = [:]
    /// Delayed operations whose last attempt returned `notYet` since this process started. Never
    /// iterated.
    var unmet: Set<UInt32> = []
    /// Suspensions of operations for which a client named itself, a reason or an end. Never
    /// iterated.
    var suspensions: [UInt32: Suspension] = [:]
    /// Operations whose priority was set by a command. Never iterated.
    var prioritised: Set<UInt32> = []
    /// Dependencies on operations of other graphs, and dependencies that were added one by one.
    /// They are listed after the others. Never iterated.
    var outer: [UInt32: [Dependency]] = [:]
    /// The number of dependencies in `outer`.
    var outerEdgeCount = 0
    /// What groups wait for because running operations added it. Never iterated.
    var joined: [UInt32: JoinedDependencies] = [:]
    /// The number of dependencies in `joined`.
    var joinedEdgeCount = 0
    /// The dependents at the other ends of the dependencies in `outer`. Never iterated.
    var outerDependents: [UInt32: OuterDependents] = [:]
    /// How often each operation was reopened. Never iterated.
    var rounds: [UInt32: UInt32] = [:]
    /// The operations that succeeded without a process, because their files were up to date. Only
    /// looked up.
    var upToDate: Set<UInt32> = []
    /// Lookup tables for additions; `nil` until the first addition.
    var growth: GraphGrowth?
    /// The graph was dropped: only the outcomes of its operations are kept, and this value stands
    /// for it.
    var isGone = false

    var unfinished: Int
    /// Operations may be added.
    var isOpen = false
    /// When the graph is closed, if it is open and nothing in it is unfinished.
    var idleness: Idleness?
    /// When the timer for `idleness` is due. The timer may have been set for an earlier idleness.
    var idleTimer: Timestamp?
    var suspension: Suspension?
    // Read for each operation that is admitted: a call would copy all of it.
    var isSuspended: Bool { @inline(__always) get { suspension != nil } }
    var isCancelled = false
    var cancelReason = ""
    var counts = OutcomeCounts()

    /// Counts operations among the finished ones.
    mutating func finish(_ indices: Range<UInt32>, _ kind: OutcomeKind) {
        operations.finish(indices, kind)
        counts[kind] += indices.count
        unfinished -= indices.count
    }

    @inline(__always) func policy(_ index: UInt32) -> OperationPolicy {
        compiled.policies[Int(compiled.policy[Int(index)])]
    }

    func rule(_ index: UInt32) -> PolicyRule { rules[Int(compiled.policy[Int(index)])] }

    func queue(_ index: UInt32) -> Int { rule(index).queue }

    func kind(_ index: UInt32) -> Int { rule(index).kind }

    /// What orders the operation in its lane, before its rank: see `ReadyEntry`.
    func urgency(_ index: UInt32) -> UInt8 {
        operations.level[index] << 1 | (operations.flags[index].contains(.comesBack) ? 1 : 0)
    }
}

/// Finds the policies and keys that a graph has already, so that equal policies are stored once.
struct GraphGrowth: Sendable {
    struct Place: Hashable, Sendable {
        var policy: OperationPolicy
        var queue: Int
        var kind: Int
        var demand: Int
    }

    var policies: [Place: UInt32] = [:]
    /// The demand classes that ask for something.
    var demands: Set<Int> = []
    /// The graph's number of each key, by the scheduler's number.
    var keys: [Int: UInt32] = [:]
}

/// How often an operation lost its worker or its own child process.
struct Losses: Sendable {
    /// Workers that were lost while they had the operation, whatever the cause.
    var workers = 0
    /// Child processes that died and ran only this operation.
    var crashes = 0
}

/// What the scheduler looks up for every operation of a policy, in its own numbers. It holds no
/// references, so a lookup counts none.
struct PolicyRule: Hashable, Sendable {
    let queue: Int
    let kind: Int
    /// The demand class.
    let demand: Int
    let lane: Int
    /// The expected run time in nanoseconds; `nil`: as long as others of its kind.
    let estimate: Int64?
    /// It has keys, or its group has a limit.
    let hasKeys: Bool
    /// It has keys of users, which give an attempt a lease.
    let isExclusive: Bool
    /// The operation is external.
    let isExternal: Bool
}

struct OperationFlags: OptionSet, Hashable, Sendable {
    let rawValue: UInt8

    /// One of its dependencies has an outcome that skips it.
    static let skipDemanded = OperationFlags(rawValue: 1)
    static let cancelRequested = OperationFlags(rawValue: 2)
    static let suspended = OperationFlags(rawValue: 4)
    /// It had an attempt already, so it goes to the front of its priority.
    static let comesBack = OperationFlags(rawValue: 8)
    /// Ready, but its start time has not come yet.
    static let delayed = OperationFlags(rawValue: 16)
    /// Ready, but one of its keys is held.
    static let parked = OperationFlags(rawValue: 32)
    /// Ready, in its lane and counted there. An operation that is ready and neither in its lane nor
    /// delayed nor parked was held back by a suspension.
    static let inLane = OperationFlags(rawValue: 64)
    static let deadlinePassed = OperationFlags(rawValue: 128)
}

struct QueueState: Sendable {
    let name: String
    var maximum: Int?
    var suspension: Suspension?
    var isSuspended: Bool { suspension != nil }
    var priority: QueuePriority = .normal
    /// How often its operations may start; `nil`: any number may.
    var bucket: StartBucket?
    var commanded: QueueCommands = []
    /// How many policy rules of graphs name it.
    var users = 0
    /// Nothing names it any more: its number may be given to another queue.
    var isFree = false
    /// Operations that are dispatched or executing, without those that wait for others.
    private(set) var inFlight = 0
    /// How many of them are external.
    private(set) var external = 0
    /// Operations whose wait for others is over and that want to go on: places are kept for them.
    private(set) var resuming = 0
    /// Operations without an outcome, in all graphs.
    var unfinished = 0
    /// Orders queues that hold equally many slots: see `QueueTurn`.
    var servedAt: UInt64 = 0

    /// The slots that its operations hold.
    var slots: Int { inFlight - external }

    var settings: QueueSettings {
        var settings = QueueSettings(name: name, maxConcurrentOperationCount: maximum)
        settings.isSuspended = isSuspended
        settings.priority = priority
        settings.rate = bucket?.rate
        return settings
    }

    /// An operation takes a place.
    mutating func take() { inFlight += 1 }

    /// An operation gives its place back.
    mutating func give() { inFlight -= 1 }

    mutating func countExternal(_ change: Int) { external += change }

    mutating func countResuming(_ change: Int) { resuming += change }

    /// Whether there is a place for an operation that goes on after a wait.
    var hasRoom: Bool {
        guard let maximum else { return true }
        return inFlight < maximum
    }

    /// Whether there is a place for a new attempt.
    var hasRoomForNew: Bool {
        guard let placesLeft else { return true }
        return placesLeft > 0
    }

    /// How many places there are for new attempts; `nil`: no limit.
    var placesLeft: Int? { maximum.map { $0 - inFlight - resuming } }
}

/// What the scheduler knows about a kind.
struct KindState: Sendable {
    let name: String
    /// Operations of this kind run in the worker's own process, so they may have killed it.
    let canKillWorker: Bool
    /// No worker runs operations of this kind.
    let isExternal: Bool
    /// The expected run time in nanoseconds. It rises at once and falls slowly. `nil`: none was
    /// measured.
    var duration: Int64?
    /// How many policy rules of graphs name it.
    var users = 0
    /// Whether it is listed in `UnusedNames.kinds`.
    var isListedUnused = false
    var isFree = false

    /// An estimate that is too short hoards operations at one worker; one that is too long only
    /// costs a round trip. So the estimate follows a longer run at once, and moves towards a
    /// shorter one by an eighth of the difference.
    mutating func measured(_ nanoseconds: Int64) {
        let sample = max(0, nanoseconds)
        guard let known = duration else {
            duration = sample
            return
        }
        duration = sample >= known ? sample : known - (known - sample) / 8
    }
}

struct WorkerState: Sendable {
    var identity: WorkerIdentity
    var host: String
    var room: WorkerRoom
    /// The queues that it serves; empty: all.
    var queueNames: [String]
    var kindNames: [String]
    /// It accepts operations of every kind.
    var runsAnyKind = false
    /// Its resources and labels.
    var offer = WorkerOffer()
    /// The same names, for lookup.
    var queueSet: Set<String> = []
    var kindSet: Set<String> = []
    /// The same, by the scheduler's numbers, as far as they were known.
    var servesQueue: [Bool] = []
    var knowsKind: [Bool] = []
    /// Whether its labels meet the demand class, and all that it offers is enough for it.
    var meets: [Bool] = []
    /// Its attempts may have taken more than it offers: a wait was withdrawn, attempts of an
    /// earlier coordinator or connection were taken over, or it offers less than before. Until they
    /// no longer take more.
    var mayBeOver = false
    /// It was welcomed, and its lease has not run out.
    var isAlive = false
    /// It has attempts of a previous epoch, and has not been heard in this one. Its lease runs from
    /// the moment at which it can be heard.
    var isExpected = false
    /// The later epoch that its last message named; `nil`: it follows this coordinator.
    var successor: Epoch?
    /// It has reported that it drains.
    var isDraining = false
    /// A client drains it. The coordinator repeats the order until the worker reports that it
    /// drains.
    var isAskedToDrain = false
    /// The name of that client; empty: it has none, or nobody asked.
    var drainedBy = ""
    /// The last sequence number that was sent on its connection.
    var sequence: UInt64 = 0
    /// The number of the last event that was handled without a gap before it.
    var handled: UInt64 = 0
    /// Bytes of events handled since the last acknowledgement was sent.
    var unacknowledgedBytes = 0
    var leaseEnd: Timestamp
    var isLeaseArmed = false
    /// When its last message was handled.
    var heardAt: Timestamp
    /// When it was welcomed, and was not alive before; `nil`: never by this coordinator.
    var aliveSince: Timestamp?
    /// The broker returned a message to its connection, and it has not been heard since.
    var isReturned = false
    /// The event window that its last welcome named.
    var eventWindow: UInt32 = 0
    /// The id of its state directory; empty: it has none.
    var workerID: String
    /// The oldest beat or hello that waits for events it names.
    var claim: Claim?
    /// `handled` when the last claim was seen: if it has not changed since, there is a gap.
    var handledAtClaim: UInt64 = 0
    /// Verdicts that it may not have received yet.
    var verdicts: [Scheduler.Verdict] = []
    /// `received` of its last beat since its last hello; `nil`: it has sent no beat yet.
    var receivedAtBeat: UInt64?

    /// Whether new attempts may be given to it.
    var takesWork: Bool { isAlive && !isDraining && !isAskedToDrain && successor == nil }

    /// Whether it serves the queue, knows the kind and meets the demand class.
    func accepts(_ demand: Demand) -> Bool {
        servesQueue[demand.queue] && knowsKind[demand.kind] && meets[demand.demand]
    }

    /// Whether its silence is watched by a lease.
    var isWatched: Bool { isAlive || isExpected }

    var address: WorkerAddress {
        WorkerAddress(incarnation: identity.incarnation, connection: identity.connection)
    }
}

/// What a worker holds according to a beat or a hello.
struct Claim: Sendable {
    var received: UInt64
    var sent: UInt64
    var held: [HeldAttempt]
    /// The claim is a hello's. Until the events that it names are handled, the coordinator does not
    /// know how much room the worker has, nor which lost operations it brings back.
    var isOfHello = false
}

/// An attempt of an external operation: it takes a place in its queue and its keys, and nothing
/// else.
struct ExternalAttempt: Sendable {
    let id: AttemptID
    let ordinal: UInt32
    /// On the coordinator's clock.
    let startedAt: Timestamp
}

/// What a running operation waits for.
struct WaitState: Sendable {
    let held: HeldAttempt
    /// The number of its request.
    let number: UInt64
    /// The number of the last event that reported the wait.
    var event: UInt64
    let awaited: [OperationID]
    /// Their first outcomes since the wait began. A later round of one of them is not waited for.
    var outcomes: [OutcomeKind?]
    /// How many of them have no outcome yet.
    var left: Int
    /// Everything it waited for has ended, and it wants to go on.
    var isResuming = false

    var unfinished: [OperationID] {
        zip(awaited, outcomes).filter { $0.1 == nil }.map(\.0)
    }
}

/// An operation that waits for another, and the index of that other one among those it waits for.
struct Waiter: Sendable {
    let operation: OperationID
    let place: Int
}

/// An attempt whose worker was given up, kept while its operation has not been started again.
struct LostAttempt: Sendable {
    let attempt: AttemptState
    /// Its owner came back with it. It goes on once the next attempt, which was granted meanwhile,
    /// is given back.
    var isBack = false
    /// The result that the owner brought, if the attempt had ended.
    var result: LateResult?
}

struct LateResult: Sendable {
    let result: AttemptResult
    let start: Timestamp
    let end: Timestamp
}

/// A tick on its way through the coordinator's own queues.
struct Probe: Sendable {
    let number: UInt64
    let sentAt: Timestamp
    /// When the first of the ticks that replaced one another was sent.
    let since: Timestamp
    var isBackFromEvents = false
    var isBackFromBeats = false
}
