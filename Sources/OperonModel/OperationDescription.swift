/// What an operation does.
public enum Work: Hashable, Sendable, Codable {
    /// Finishes at once; used as a join, or for measurements.
    case nothing
    /// Occupies a slot for a time.
    case wait(Duration)
    /// Runs a process.
    case command(CommandDescription)
    /// Runs the code that a worker registered under this name.
    case registered(kind: String, input: Payload)
    /// Runs on no worker: once nothing holds it back, it is executing until an external party
    /// completes it.
    case external(input: Payload)

    /// The name of the kind, which a worker must know to run it.
    public var kind: String {
        switch self {
        case .nothing: Work.nothingKind
        case .wait: Work.waitKind
        case .command: Work.commandKind
        case .registered(let kind, _): kind
        case .external: Work.externalKind
        }
    }

    /// Whether an external party completes it instead of a worker.
    package var isExternal: Bool { if case .external = self { true } else { false } }

    /// Whether a variable of its process is a secret.
    package var needsSecrets: Bool {
        if case .command(let command) = self { !command.secrets.isEmpty } else { false }
    }

    /// The kind of `nothing`.
    public static let nothingKind = "nothing"
    /// The kind of `wait`.
    public static let waitKind = "wait"
    /// The kind of `command`.
    public static let commandKind = "command"
    /// The kind of `external`, which no worker knows.
    public static let externalKind = "external"
    /// The kind that adds the elements of a repeated operation, one for each element of an output.
    public static let forEachKind = "forEach"

    /// The kinds that every worker knows.
    public static let builtInKinds = [commandKind, forEachKind, nothingKind, waitKind]
    /// Names that cannot be registered as kinds.
    public static let reservedKinds = [
        commandKind, externalKind, forEachKind, nothingKind, waitKind,
    ]
}

/// A process to run.
public struct CommandDescription: Hashable, Sendable, Codable {
    /// The program and its arguments. The program is looked up in the `PATH` that the process is
    /// given. A `run:` line is `["/bin/sh", "-c", line]`.
    public var arguments: [String]
    /// Environment variables set for the process; they override inherited ones.
    public var environment: [String: String]
    /// Variables whose values are secrets that only workers know: the name of the secret by the
    /// name of the variable. At most 64, none of them in `environment` as well. A name of a secret
    /// has 1…128 letters, digits, `.`, `_` and `-` of ASCII, and does not begin with a dot.
    public var secrets: [String: String] = [:]
    /// Names of the worker's environment variables that the process inherits.
    public var inheritEnvironment: [String]
    /// The directory in which the process starts; `nil`: the one in which the worker started.
    public var directory: String?
    /// The time between SIGTERM and SIGKILL.
    public var grace: Duration
    /// The address space of each of its processes, in bytes (RLIMIT_AS); `nil`: unlimited.
    public var memory: Int?
    /// The processor time of each of its processes, in whole seconds, rounded up (RLIMIT_CPU);
    /// `nil`: unlimited.
    public var cpuTime: Duration?
    /// The files that exist after the process has succeeded; otherwise the attempt fails. The paths
    /// are relative to the directory in which the process starts.
    public var produces: [String]
    /// The files that exist before the process starts; otherwise the attempt fails. The paths are
    /// relative to the directory in which the process starts.
    public var consumes: [String]
    /// Whether the process is not started while every file that it produces exists and none is
    /// older than a file that it consumes. The attempt then succeeds as up to date.
    public var skipsIfUpToDate: Bool

    /// The variables that most programs need in order to run at all; none of them is a secret.
    public static let defaultInheritEnvironment = ["PATH", "HOME", "LANG", "TMPDIR", "USER"]
    /// Ten seconds.
    public static let defaultGrace = Duration.seconds(10)

    /// Creates a command with these arguments, and defaults for the rest.
    public init(
        arguments: [String],
        environment: [String: String] = [:],
        inheritEnvironment: [String] = CommandDescription.defaultInheritEnvironment,
        directory: String? = nil,
        grace: Duration = CommandDescription.defaultGrace,
        memory: Int? = nil,
        cpuTime: Duration? = nil,
        produces: [String] = [],
        consumes: [String] = [],
        skipsIfUpToDate: Bool = false
    ) {
        self.produces = produces
        self.consumes = consumes
        self.skipsIfUpToDate = skipsIfUpToDate
        self.memory = memory
        self.cpuTime = cpuTime
        self.arguments = arguments
        self.environment = environment
        self.inheritEnvironment = inheritEnvironment
        self.directory = directory
        self.grace = grace
    }

    /// The arguments of `sh -c line`.
    public static func shell(_ line: String) -> [String] { ["/bin/sh", "-c", line] }

    private enum CodingKeys: String, CodingKey {
        case arguments, environment, secrets, inheritEnvironment, directory, grace, memory, cpuTime
        case produces, consumes, skipsIfUpToDate
    }

    /// Reads what an earlier version has written, too.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        arguments = try container.decode([String].self, forKey: .arguments)
        environment = try container.decode([String: String].self, forKey: .environment)
        secrets = try container.decodeIfPresent([String: String].self, forKey: .secrets) ?? [:]
        inheritEnvironment = try container.decode([String].self, forKey: .inheritEnvironment)
        directory = try container.decodeIfPresent(String.self, forKey: .directory)
        grace = try container.decode(Duration.self, forKey: .grace)
        memory = try container.decodeIfPresent(Int.self, forKey: .memory)
        cpuTime = try container.decodeIfPresent(Duration.self, forKey: .cpuTime)
        produces = try container.decode([String].self, forKey: .produces)
        consumes = try container.decode([String].self, forKey: .consumes)
        skipsIfUpToDate = try container.decode(Bool.self, forKey: .skipsIfUpToDate)
    }
}

/// One entry of an operation's `dependencies`.
public struct DependencyDescription: Hashable, Sendable, Codable {
    /// The name of the dependency: an operation of the same graph or, where a coordinator knows
    /// other graphs, `GRAPH/OPERATION`. The dependent finds the output under this name.
    public var name: String
    /// The outcomes that release the dependent.
    public var condition: DependencyCondition
    /// The operation of another graph that the name meant at submission: a later graph may have the
    /// same name. `nil`: an operation of the same graph.
    package var resolvedID: OperationID?
    /// Whether the dependent takes the outputs of the group's elements. They are added while the
    /// graph runs, so no description can name them.
    package var takesElements = false

    /// Creates a dependency on the operation of this name.
    public init(_ name: String, _ condition: DependencyCondition = .unlessFailed) {
        self.name = name
        self.condition = condition
    }

    private enum CodingKeys: String, CodingKey {
        case name, condition, resolvedID, takesElements
    }

    /// Reads what an earlier version has written, too.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        name = try container.decode(String.self, forKey: .name)
        condition = try container.decode(DependencyCondition.self, forKey: .condition)
        resolvedID = try container.decodeIfPresent(OperationID.self, forKey: .resolvedID)
        takesElements = try container.decodeIfPresent(Bool.self, forKey: .takesElements) ?? false
    }
}

/// An operation as a person describes it, before it is submitted. Names must not contain control
/// characters; durations are 0…36,500 days.
public struct OperationDescription: Hashable, Sendable, Codable {
    /// The name, unique in its graph. 1…256 bytes.
    public var name: String
    /// What the operation does.
    public var work: Work
    /// A description for people, without NUL characters.
    public var summary: String = ""
    /// The dependencies. One that is listed twice counts once.
    public var dependencies: [DependencyDescription] = []
    /// Whether the dependencies belong together: once one of them ends in a way that skips this
    /// operation, the others are cancelled.
    public var cancelSiblings = false
    /// The name of its queue. A queue that is not defined anywhere has no limit.
    public var queue: String = QueueSettings.defaultName
    /// The priority; `nil`: the default of its queue.
    public var priority: QueuePriority?
    /// How much the operation may disturb others on its machine.
    public var qualityOfService: QualityOfService = .default
    /// The longest time that one attempt may run, from its start, at least a nanosecond; `nil`:
    /// unlimited.
    public var timeout: Duration?
    /// Whether and when the operation is retried after its own failures.
    public var retry: RetryPolicy = .never
    /// The duration assumed for its rank; `nil`: unknown.
    public var expectedDuration: Duration?
    /// Keys that only a limited number of running operations may hold at a time: one, unless
    /// `KeySettings` set another limit.
    public var exclusive: [String] = []
    /// How many operations like it may be in the cluster at once; `nil`: any number.
    public var inFlight: InFlightLimit?
    /// The pause between its release and its first start.
    public var delay: Duration?
    /// The operation does not start before this time.
    public var notBefore: WallTime?
    /// The operation fails if it has not finished by this time.
    public var deadline: WallTime?

    /// What the operation takes of its worker while it runs, in addition to a slot. The worker must
    /// have that much left when the operation starts.
    public var resources: ResourceAmounts = []
    /// What the labels of its worker must be: all of these. One requirement for each label.
    public var workers: [WorkerRequirement] = []
    /// Whether the worker holds the processes of the operation to the processors and the memory
    /// that it asks for, with a control group. Only for a command that asks for one of them; it
    /// runs only on a worker that may make control groups.
    public var enforcesResources = false

    /// Creates an operation that does this, with defaults for the rest.
    public init(name: String, work: Work) {
        self.name = name
        self.work = work
    }
}

/// How many operations of a graph that name the same group may be dispatched or executing at once,
/// in the whole cluster. The elements of a repeated operation name their group.
public struct InFlightLimit: Hashable, Sendable, Codable {
    /// The name of the group, 1…256 bytes without control characters. Groups of different graphs
    /// have nothing in common.
    public var group: String
    /// 1…2,147,483,647, the same for all operations of the group.
    public var limit: Int

    /// Creates a limit of the group of this name.
    public init(group: String, limit: Int) {
        self.group = group
        self.limit = limit
    }
}

/// Which of several ready operations of the same priority starts first.
public enum OperationOrder: UInt8, Hashable, Sendable, Codable, CaseIterable {
    /// The one followed by the longest path to the end of the graph, by expected durations.
    case criticalPath = 0
    /// The one that was submitted first.
    case submission = 1
}

/// Operations that are submitted together.
public struct GraphDescription: Hashable, Sendable, Codable {
    /// A name for people; at most 256 bytes, without control characters.
    public var name: String
    /// Settings of its queues. Queues that need none may be left out.
    public var queues: [QueueSettings] = []
    /// Settings of the keys that more than one operation may hold at a time.
    public var keys: [KeySettings] = []
    /// Which of its ready operations of the same priority starts first.
    public var order = OperationOrder.criticalPath
    /// The operations in the order of submission, which breaks ties.
    public var operations: [OperationDescription]

    /// Creates a graph of these operations.
    public init(name: String, operations: [OperationDescription] = []) {
        self.name = name
        self.operations = operations
    }
}

/// The settings of an operation queue, which its operations share.
public struct QueueSettings: Hashable, Sendable, Codable {
    /// The name, 1…256 bytes without control characters.
    public var name: String
    /// How many of its operations may run at once in the whole cluster; `nil`: as many as there are
    /// slots; 0: none.
    public var maxConcurrentOperationCount: Int?
    /// Whether the queue is suspended: it starts nothing until it is resumed.
    public var isSuspended: Bool = false
    /// The default for operations that set no priority.
    public var priority: QueuePriority = .normal
    /// How often its operations may start; `nil`: as often as there is room.
    public var rate: StartRate?

    /// The name of the queue for operations that name none.
    public static let defaultName = "default"

    /// Creates settings with this limit, not suspended, with normal priority.
    public init(name: String, maxConcurrentOperationCount: Int? = nil) {
        self.name = name
        self.maxConcurrentOperationCount = maxConcurrentOperationCount
    }
}

/// The settings of a key: how many running operations may hold it at a time in the whole cluster.
public struct KeySettings: Hashable, Sendable, Codable {
    /// The name, 1…256 bytes without control characters.
    public var name: String
    /// How many operations may hold the key at a time; 1 or more.
    public var limit: Int
    /// How often operations that hold the key may start; `nil`: as often as there is room.
    public var rate: StartRate?

    /// Creates settings for a key with this limit and rate.
    public init(name: String, limit: Int = 1, rate: StartRate? = nil) {
        self.name = name
        self.limit = limit
        self.rate = rate
    }
}
