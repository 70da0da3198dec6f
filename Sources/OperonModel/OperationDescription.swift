/// What an operation does.
public enum Work: Hashable, Sendable, Codable {
    /// Finishes at once: a join, or a measurement.
    case nothing
    /// Holds a slot for a time.
    case wait(Duration)
    /// Runs a process.
    case command(CommandDescription)
    /// Runs the code that a worker registered under this name.
    case registered(kind: String, input: Payload)
    /// Runs nowhere: once nothing keeps it, it is executing until somebody outside completes it.
    case external(input: Payload)

    /// The name that a worker must know to run it.
    public var kind: String {
        switch self {
        case .nothing: Work.nothingKind
        case .wait: Work.waitKind
        case .command: Work.commandKind
        case .registered(let kind, _): kind
        case .external: Work.externalKind
        }
    }

    /// Whether somebody outside completes it, and no worker runs it.
    package var isExternal: Bool { if case .external = self { true } else { false } }

    /// The kind of `nothing`.
    public static let nothingKind = "nothing"
    /// The kind of `wait`.
    public static let waitKind = "wait"
    /// The kind of `command`.
    public static let commandKind = "command"
    /// The kind of `external`, which no worker knows.
    public static let externalKind = "external"

    /// What every worker knows.
    public static let builtInKinds = [commandKind, nothingKind, waitKind]
    /// Names that nothing can be registered under.
    public static let reservedKinds = [commandKind, externalKind, nothingKind, waitKind]
}

/// A process to run.
public struct CommandDescription: Hashable, Sendable, Codable {
    /// The program and its arguments; the program is looked up in the `PATH` it is given.
    /// A `run:` line is `["/bin/sh", "-c", line]`.
    public var arguments: [String]
    /// Variables set for it, over those it inherits.
    public var environment: [String: String]
    /// Names of the worker's variables that it inherits.
    public var inheritEnvironment: [String]
    /// Where it starts; `nil`: where the worker started.
    public var directory: String?
    /// From SIGTERM to SIGKILL.
    public var grace: Duration
    /// How much address space each of its processes may have, in bytes (RLIMIT_AS); `nil`: no
    /// bound.
    public var memory: Int?
    /// How long each of its processes may use a processor, in whole seconds, rounded up
    /// (RLIMIT_CPU); `nil`: no bound.
    public var cpuTime: Duration?

    /// What most programs need in order to run at all, and nothing that could be a secret.
    public static let defaultInheritEnvironment = ["PATH", "HOME", "LANG", "TMPDIR", "USER"]
    /// Ten seconds.
    public static let defaultGrace = Duration.seconds(10)

    /// A command with these arguments, and defaults for the rest.
    public init(
        arguments: [String],
        environment: [String: String] = [:],
        inheritEnvironment: [String] = CommandDescription.defaultInheritEnvironment,
        directory: String? = nil,
        grace: Duration = CommandDescription.defaultGrace,
        memory: Int? = nil,
        cpuTime: Duration? = nil
    ) {
        self.memory = memory
        self.cpuTime = cpuTime
        self.arguments = arguments
        self.environment = environment
        self.inheritEnvironment = inheritEnvironment
        self.directory = directory
        self.grace = grace
    }

    /// `sh -c line`.
    public static func shell(_ line: String) -> [String] { ["/bin/sh", "-c", line] }
}

/// One line of an operation's `dependencies`.
public struct DependencyDescription: Hashable, Sendable, Codable {
    /// The name of the operation waited for, in the same graph; or, where a coordinator knows other
    /// graphs, `GRAPH/OPERATION`. Its output is given under this name.
    public var name: String
    /// By which of its outcomes it releases.
    public var condition: DependencyCondition
    /// Which operation of another graph the name meant when it was submitted: graphs that come
    /// later may have the same name. `nil`: one of its own graph.
    package var elsewhere: OperationID?

    /// A dependency on the operation of this name.
    public init(_ name: String, _ condition: DependencyCondition = .unlessFailed) {
        self.name = name
        self.condition = condition
    }
}

/// An operation as a person describes it, before it is submitted. No name may have a control
/// character; durations are 0…36,500 days.
public struct OperationDescription: Hashable, Sendable, Codable {
    /// Unique in its graph. 1…256 bytes.
    public var name: String
    /// What it does.
    public var work: Work
    /// Free text for people, without NUL characters.
    public var summary: String = ""
    /// What it waits for. One that is listed twice counts once.
    public var dependencies: [DependencyDescription] = []
    /// What it waits for belongs together: once one of them ends in a way that skips this
    /// operation, the others are cancelled.
    public var cancelSiblings = false
    /// The queue it belongs to; one that is defined nowhere has no limit.
    public var queue: String = QueueSettings.defaultName
    /// `nil`: that of its queue.
    public var priority: QueuePriority?
    /// How much it may get in the way of others on its machine.
    public var qualityOfService: QualityOfService = .default
    /// Longest run of one attempt, from its start, at least a nanosecond; `nil`: no bound.
    public var timeout: Duration?
    /// What happens after a failure of its own.
    public var retry: RetryPolicy = .never
    /// What its rank assumes until it is measured; `nil`: unknown.
    public var expectedDuration: Duration?
    /// Names that only so many running operations may hold at a time: one, unless `KeySettings` say
    /// otherwise.
    public var exclusive: [String] = []
    /// From its release to its first start.
    public var delay: Duration?
    /// Not started before.
    public var notBefore: WallTime?
    /// Fails if it has not finished by then.
    public var deadline: WallTime?

    /// An operation that does this, with defaults for the rest.
    public init(name: String, work: Work) {
        self.name = name
        self.work = work
    }
}

/// Which of several ready operations of one priority starts first.
public enum OperationOrder: UInt8, Hashable, Sendable, Codable, CaseIterable {
    /// The one with the longest path to the end of the graph behind it, by expected durations.
    case criticalPath = 0
    /// The one that was submitted first.
    case submission = 1
}

/// Operations submitted together.
public struct GraphDescription: Hashable, Sendable, Codable {
    /// For people; at most 256 bytes, without control characters.
    public var name: String
    /// Settings of its queues; those that need none may be left out.
    public var queues: [QueueSettings] = []
    /// Settings of keys that more than one operation may hold at a time.
    public var keys: [KeySettings] = []
    /// Which of its operations starts first among equal priorities.
    public var order = OperationOrder.criticalPath
    /// In the order of submission, which breaks ties.
    public var operations: [OperationDescription]

    /// A graph of these operations.
    public init(name: String, operations: [OperationDescription] = []) {
        self.name = name
        self.operations = operations
    }
}

/// An operation queue: what its operations have in common.
public struct QueueSettings: Hashable, Sendable, Codable {
    /// The name, 1…256 bytes without control characters.
    public var name: String
    /// How many of its operations may run at once in the whole cluster; `nil`: as many as there are
    /// slots; 0 holds them all.
    public var maxConcurrentOperationCount: Int?
    /// Whether it starts nothing until it is resumed.
    public var isSuspended: Bool = false
    /// For operations that name none.
    public var priority: QueuePriority = .normal

    /// The queue of operations that name none.
    public static let defaultName = "default"

    /// A queue with this limit, not suspended, of normal priority.
    public init(name: String, maxConcurrentOperationCount: Int? = nil) {
        self.name = name
        self.maxConcurrentOperationCount = maxConcurrentOperationCount
    }
}

/// A name that operations hold while they run: how many of them at a time, in the whole cluster.
public struct KeySettings: Hashable, Sendable, Codable {
    /// The name, 1…256 bytes without control characters.
    public var name: String
    /// 1 or more.
    public var limit: Int

    /// A key of this name that so many operations may hold at a time.
    public init(name: String, limit: Int = 1) {
        self.name = name
        self.limit = limit
    }
}
