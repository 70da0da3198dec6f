/// How an operation is run: every setting except its input.
///
/// An operation type provides its own in ``Operation/options``. They can be changed on a handle
/// until it is added. Values out of bounds are refused when the operation is added. No name may
/// contain a control character; no duration may be longer than 36,500 days.
public struct OperationOptions: Hashable, Sendable {
    /// The name that is shown to people, 1 to 256 bytes; need not be unique. `nil`: its kind and a
    /// number.
    public var name: String?
    /// The priority among the ready operations of its queue. `nil`: the default of its queue.
    public var queuePriority: QueuePriority?
    /// How much the operation may disturb others on its machine: see `QualityOfService`. `nil`: the
    /// default of its queue.
    public var qualityOfService: QualityOfService?
    /// The longest time that one attempt may run, at least a nanosecond; `nil`: unlimited.
    public var timeout: Duration?
    /// How often, and after which pauses, the operation is retried after its own failures.
    public var retry = RetryPolicy.never
    /// Keys that only one running operation may hold at a time in the whole cluster, unless the
    /// coordinator was given another limit. 1 to 256 bytes each.
    public var exclusive: [String] = []
    /// What an attempt takes of its worker besides a slot, for as long as it runs:
    /// `[.cpus(2), .memory(bytes: 8 << 30), .gpus(1)]`. At most 16 resources, each with an amount
    /// of 1 to 2⁵⁰ thousandths of a processor, bytes or units. Only a worker that has all of it
    /// left gets the operation. A cluster in this process refuses an operation that asks for more
    /// than the process offers (`Refusal.invalid`). Blocks and external operations need no worker
    /// and are refused if they ask for anything.
    public var resources: ResourceAmounts = []
    /// What the labels of its worker must be, at most 64 of them: `[.equals("region", "eu")]`. Only
    /// a worker that meets them all gets the operation. A cluster in this process refuses an
    /// operation whose requirements it does not meet, and every cluster refuses them for blocks and
    /// external operations (`Refusal.invalid`).
    public var workers: [WorkerRequirement] = []
    /// The pause between becoming ready and starting; 0 or less: none.
    public var delay: Duration?
    /// The operation does not start before this time.
    public var notBefore: WallTime?
    /// The operation fails if it has not finished by this time.
    public var deadline: WallTime?
    /// The expected duration, if known. The coordinator uses it to decide how much work to send
    /// ahead. Not negative.
    public var expectedDuration: Duration?
    /// A description for people, without NUL characters.
    public var summary = ""

    /// Creates options with default values.
    public init() {}

    /// Creates options from the settings that are used most often.
    public init(
        name: String? = nil,
        queuePriority: QueuePriority? = nil,
        timeout: Duration? = nil,
        retry: RetryPolicy = .never,
        exclusive: [String] = [],
        delay: Duration? = nil,
        resources: ResourceAmounts = [],
        workers: [WorkerRequirement] = []
    ) {
        self.name = name
        self.queuePriority = queuePriority
        self.timeout = timeout
        self.retry = retry
        self.exclusive = exclusive
        self.delay = delay
        self.resources = resources
        self.workers = workers
    }

    /// Whether all options have their default values.
    var isPlain: Bool { self == OperationOptions() }

    /// Copies the options into a description.
    ///
    /// - Parameter other: The quality of service to use if the options name none.
    func apply(
        to operation: inout OperationDescription,
        qualityOfService other: QualityOfService
    ) {
        operation.priority = queuePriority
        operation.qualityOfService = qualityOfService ?? other
        operation.timeout = timeout
        operation.retry = retry
        operation.exclusive = exclusive
        operation.resources = resources
        operation.workers = workers
        if let delay, delay > .zero { operation.delay = delay }
        operation.notBefore = notBefore
        operation.deadline = deadline
        operation.expectedDuration = expectedDuration
        operation.summary = summary
    }
}
