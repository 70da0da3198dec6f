import OperonModel

/// What the scheduler knows of one graph, one array per property. 29 bytes an operation beside the
/// compiled graph.
struct GraphState: Sendable {
    /// Grows with what is added. Of a policy that was added, only what its rule does not say is
    /// looked at: its queue and its kind are numbers of the addition.
    var compiled: CompiledGraph
    /// One for each of the graph's policies.
    var rules: [PolicyRule]
    /// Local number to the scheduler's.
    var keys: [Int]
    let submittedAt: Moment

    var state: [OperationState]
    var outcome: [OutcomeKind?]
    var flags: [OperationFlags]
    var level: [UInt8]
    /// Dependencies that have no outcome yet. Kept only while it is pending.
    var waiting: [UInt32]
    /// Place in the table of attempts; `noAttempt`.
    var attempt: [UInt32]
    /// Attempts so far.
    var ordinal: [UInt32]
    /// Further attempts after a failure of its own, so far.
    var retries: [UInt16]
    /// What belongs to an outcome that is not success. Only looked up, never walked.
    var outcomes: [UInt32: Outcome] = [:]
    var reasons: [UInt32: String] = [:]
    /// What was lost under an operation. Only looked up.
    var losses: [UInt32: Losses] = [:]

    /// What ready operations that are delayed wait for. Only looked up, or sorted first.
    var delays: [UInt32: Delay] = [:]
    /// Those of them whose last attempt said “not yet”, in this life. Only looked up.
    var unmet: Set<UInt32> = []
    /// Of suspended operations, if somebody said who, why or until when. Only looked up.
    var suspensions: [UInt32: Suspension] = [:]
    /// Those whose priority a command set. Only looked up.
    var prioritised: Set<UInt32> = []
    /// Dependencies on operations of other graphs, and those that were added one by one: listed
    /// behind the others. Only looked up.
    var outer: [UInt32: [Dependency]] = [:]
    /// How many there are in `outer`.
    var outerEdgeCount = 0
    /// The other ends. Only looked up.
    var outerDependents: [UInt32: OuterDependents] = [:]
    /// How often an operation was reopened. Only looked up.
    var rounds: [UInt32: UInt32] = [:]
    /// What additions look up; `nil` until the first.
    var growth: GraphGrowth?
    /// Nothing is kept of it but how its operations ended: this stands for it.
    var isGone = false

    var unfinished: Int
    /// Operations may be added.
    var isOpen = false
    /// Open, and with nothing unfinished: when it is closed.
    var idleness: Idleness?
    /// When its timer for that is due, which may be for an earlier idleness.
    var idleTimer: Timestamp?
    var suspension: Suspension?
    var isSuspended: Bool { suspension != nil }
    var isCancelled = false
    var cancelReason = ""
    var counts: [Int] = [0, 0, 0, 0]

    static let noAttempt = UInt32.max

    func policy(_ index: UInt32) -> OperationPolicy {
        compiled.policies[Int(compiled.policy[Int(index)])]
    }

    func rule(_ index: UInt32) -> PolicyRule { rules[Int(compiled.policy[Int(index)])] }

    func queue(_ index: UInt32) -> Int { rule(index).queue }

    func kind(_ index: UInt32) -> Int { rule(index).kind }

    /// What orders it in its lane before its rank: see `ReadyEntry`.
    func urgency(_ index: Int) -> UInt8 {
        level[index] << 1 | (flags[index].contains(.comesBack) ? 1 : 0)
    }

    func finalOutcome(_ index: UInt32) -> Outcome? {
        guard let kind = outcome[Int(index)] else { return nil }
        return kind == .succeeded ? .succeeded : outcomes[index]
    }
}

/// Where additions to a graph find what it has already, so that equal policies are stored once.
struct GraphGrowth: Sendable {
    struct Place: Hashable, Sendable {
        var policy: OperationPolicy
        var queue: Int
        var kind: Int
    }

    var policies: [Place: UInt32] = [:]
    /// The scheduler's number to the local one.
    var keys: [Int: UInt32] = [:]
}

/// How often an operation's worker went away under it, and whether that was its own doing.
struct Losses: Sendable {
    /// Workers lost while they had it, whoever's fault.
    var workers = 0
    /// Child processes that died of it alone.
    var crashes = 0
}

/// What the scheduler looks up for every operation of a policy, in its own numbers. Free of
/// references, so that looking is free.
struct PolicyRule: Sendable {
    let queue: Int
    let kind: Int
    let lane: Int
    /// How long one is expected to take, in nanoseconds; `nil`: as long as others of its kind.
    let estimate: Int64?
    let hasKeys: Bool
    /// Somebody outside completes it.
    let isExternal: Bool
}

struct OperationFlags: OptionSet, Hashable, Sendable {
    let rawValue: UInt8

    /// One of its dependencies had an outcome that forbids it to run.
    static let skipDemanded = OperationFlags(rawValue: 1)
    static let cancelRequested = OperationFlags(rawValue: 2)
    static let suspended = OperationFlags(rawValue: 4)
    /// It had an attempt already: it goes to the front of its priority.
    static let comesBack = OperationFlags(rawValue: 8)
    /// Ready, but its time has not come.
    static let delayed = OperationFlags(rawValue: 16)
    /// Ready, but one of its keys is held.
    static let parked = OperationFlags(rawValue: 32)
    /// Ready, but set aside by a suspension.
    static let heldBack = OperationFlags(rawValue: 64)
    static let deadlinePassed = OperationFlags(rawValue: 128)
}

struct QueueState: Sendable {
    let name: String
    var maximum: Int?
    var suspension: Suspension?
    var isSuspended: Bool { suspension != nil }
    var priority: QueuePriority = .normal
    var commanded: QueueCommands = []
    /// Ready and neither delayed nor parked nor set aside. Changed by `countReady` alone.
    var ready = 0
    /// Its place among `readyQueues`, while anything is ready.
    var readyPlace = 0
    /// How many rules of graphs name it.
    var users = 0
    /// Nobody names it any more: its number may be given to another.
    var isFree = false
    /// Dispatched or executing, but for those that wait for others.
    var inFlight = 0
    /// Of those, how many no worker has.
    var external = 0
    /// Of those that wait for others, how many want to go on: places are kept for them.
    var resuming = 0
    /// Without an outcome, in all graphs.
    var unfinished = 0
    /// Orders queues that hold equally many slots: the one served longest ago first.
    var servedAt: UInt64 = 0
    var lanes: [Int] = []

    /// What it has of the cluster: the smallest is served first.
    var share: (Int, UInt64) { (inFlight - external, servedAt) }

    var settings: QueueSettings {
        var settings = QueueSettings(name: name, maxConcurrentOperationCount: maximum)
        settings.isSuspended = isSuspended
        settings.priority = priority
        return settings
    }

    /// For one that goes on.
    var hasRoom: Bool {
        guard let maximum else { return true }
        return inFlight < maximum
    }

    /// For one more.
    var hasRoomForNew: Bool {
        guard let maximum else { return true }
        return inFlight + resuming < maximum
    }
}

struct WorkerState: Sendable {
    var identity: WorkerIdentity
    var host: String
    var slots: Int
    /// Empty: all.
    var queueNames: [String]
    var kindNames: [String]
    /// It knows any kind.
    var runsAnyKind = false
    /// The same, to be looked up.
    var queueSet: Set<String> = []
    var kindSet: Set<String> = []
    /// By the scheduler's numbers, as far as they were known.
    var servesQueue: [Bool] = []
    var knowsKind: [Bool] = []
    /// Welcomed, and its lease has not run out.
    var isAlive = false
    /// It has attempts of an earlier epoch, and nothing was heard of it in this one. Its lease runs
    /// from the moment at which it can be heard.
    var isExpected = false
    /// The later epoch that it named in its last message; `nil`: it follows this coordinator.
    var successor: Epoch?
    /// It takes nothing more, by its own word.
    var isDraining = false
    /// A client wants it to leave: it is told so until it says that it drains.
    var isAskedToDrain = false
    /// The last number sent on its connection.
    var sequence: UInt64 = 0
    /// The highest contiguous event handled.
    var handled: UInt64 = 0
    /// Bytes of events handled since the last acknowledgement went out.
    var unacknowledgedBytes = 0
    var leaseEnd: Timestamp
    var isLeaseArmed = false
    /// When its last message was handled.
    var heardAt: Timestamp
    /// The broker returned a message to its connection, and nothing was heard of it since.
    var isReturned = false
    /// The event window that its last welcome named.
    var eventWindow: UInt32 = 0
    /// The id of its state directory; empty: none.
    var workerID: String
    /// Attempts that are its own, newest first, as a list through the table of attempts.
    var firstAttempt = GraphState.noAttempt
    /// Those of them that have a slot, or will.
    var held = 0
    /// Those that wait for others without one.
    var yielded = 0
    /// Of these, those that want to go on.
    var resuming = 0
    /// What the attempts it holds are expected to take, in nanoseconds, saturating.
    var backlog: Int64 = 0
    /// The oldest beat or hello that waits for events it names.
    var claim: Claim?
    /// `handled` when the last claim was seen: no progress since means a gap.
    var handledAtClaim: UInt64 = 0
    /// Verdicts that it may not have yet.
    var verdicts: [Verdict] = []
    /// An addition of it is being compiled: nothing else that it said is handled.
    var isJudging = false
    /// What it said behind that.
    var rest: EventBatch?
    /// `received` of the last beat since the last hello; `nil`: there was none yet.
    var receivedAtBeat: UInt64?

    /// Something may be given to it.
    var takesWork: Bool { isAlive && !isDraining && !isAskedToDrain && successor == nil }

    /// Its silence will be noticed.
    var isWatched: Bool { isAlive || isExpected }

    var address: WorkerAddress {
        WorkerAddress(incarnation: identity.incarnation, connection: identity.connection)
    }
}

/// What a beat or a hello says a worker holds.
struct Claim: Sendable {
    var received: UInt64
    var sent: UInt64
    var held: [HeldAttempt]
    /// Until the events that a hello names are handled, it is not known what the worker has room
    /// for, nor which of the operations that it lost it brings back.
    var isOfHello = false
}

struct AttemptState: Sendable {
    enum Recall: Sendable {
        case none
        case recall
        case cancel
    }

    let id: AttemptID
    let operation: OperationID
    let ordinal: UInt32
    var worker: Int
    /// The number of the message that carried it last.
    var sequence: UInt64
    var hasStarted = false
    /// On the coordinator's clock.
    var startedAt: Timestamp?
    var recall = Recall.none
    /// Its worker is gone, and it is still waited for.
    var isAwaited = false
    /// It waits for others, and has neither a slot nor a place in its queue.
    var isYielded = false
    /// What it is expected to take, in nanoseconds.
    let estimate: Int64
    var next = GraphState.noAttempt
    var previous = GraphState.noAttempt
}

/// An attempt that no worker has: it takes a place in its queue and its keys, and nothing else.
struct ExternalAttempt: Sendable {
    let id: AttemptID
    let ordinal: UInt32
    /// On the coordinator's clock.
    let startedAt: Timestamp
}

/// What a running operation waits for.
struct WaitState: Sendable {
    let held: HeldAttempt
    /// That of its request.
    let number: UInt64
    /// The number of the event that told of it last.
    var event: UInt64
    let awaited: [OperationID]
    /// How they ended, the first time they did: another round of one of them is not waited for.
    var outcomes: [OutcomeKind?]
    /// Those without.
    var left: Int
    /// It has all it waited for, and wants to go on.
    var isResuming = false

    var unfinished: [OperationID] {
        zip(awaited, outcomes).filter { $0.1 == nil }.map(\.0)
    }
}

/// Who waits for an operation, and which of those it waits for that is.
struct Waiter: Sendable {
    let operation: OperationID
    let place: Int
}

/// An attempt whose worker was given up, while its operation has not been started again.
struct LostAttempt: Sendable {
    let attempt: AttemptState
    /// Its owner came back with it: it goes on once the next attempt, which was granted meanwhile,
    /// is given back.
    var isBack = false
    /// What the owner brought, if it had ended.
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
    /// When the first of those that were sent one for another left.
    let since: Timestamp
    var isBackFromEvents = false
    var isBackFromBeats = false
}
