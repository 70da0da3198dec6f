/// How an operation is to be run: everything that may be chosen for it beside its input.
///
/// An operation type gives its own in ``Operation/options``; whoever adds one may change them on
/// its handle before it is added. What is out of bounds is refused when it is added. No name may
/// have a control character; no duration may be longer than 36,500 days.
public struct OperationOptions: Hashable, Sendable {
    /// What people call it, 1 to 256 bytes; need not be unique. `nil`: its kind and a number.
    public var name: String?
    /// The order in which ready operations of its queue start. `nil`: that of its queue.
    public var queuePriority: QueuePriority?
    /// How much it may get in the way of others on its machine: see `QualityOfService`. `nil`: that
    /// of its queue.
    public var qualityOfService: QualityOfService?
    /// The longest run of one attempt, at least a nanosecond; `nil`: no bound.
    public var timeout: Duration?
    /// How often it is tried again after a failure of its own.
    public var retry = RetryPolicy.never
    /// Names that only one running operation may hold at a time, in the whole cluster, unless the
    /// coordinator was told another limit. 1 to 256 bytes each.
    public var exclusive: [String] = []
    /// From the moment it is ready to its start; 0 or less: none.
    public var delay: Duration?
    /// Not started before.
    public var notBefore: WallTime?
    /// Fails if it has not finished by then.
    public var deadline: WallTime?
    /// How long it will take, as far as is known: tells the coordinator how much to send ahead.
    /// Not negative.
    public var expectedDuration: Duration?
    /// Free text for people, without NUL characters.
    public var summary = ""

    /// Nothing special.
    public init() {}

    /// The parts that are chosen most.
    public init(
        name: String? = nil,
        queuePriority: QueuePriority? = nil,
        timeout: Duration? = nil,
        retry: RetryPolicy = .never,
        exclusive: [String] = [],
        delay: Duration? = nil
    ) {
        self.name = name
        self.queuePriority = queuePriority
        self.timeout = timeout
        self.retry = retry
        self.exclusive = exclusive
        self.delay = delay
    }

    /// Whether they are those that everybody has who chose nothing.
    var isPlain: Bool { self == OperationOptions() }

    /// Puts them into a description.
    ///
    /// - Parameter other: where they name no quality of service.
    func apply(
        to operation: inout OperationDescription,
        qualityOfService other: QualityOfService
    ) {
        operation.priority = queuePriority
        operation.qualityOfService = qualityOfService ?? other
        operation.timeout = timeout
        operation.retry = retry
        operation.exclusive = exclusive
        if let delay, delay > .zero { operation.delay = delay }
        operation.notBefore = notBefore
        operation.deadline = deadline
        operation.expectedDuration = expectedDuration
        operation.summary = summary
    }
}
