internal import OperonModel
internal import OperonPorts
internal import OperonRuntime

/// What a ``Cluster`` is made of: a coordinator to ask, and word of what became of operations.
protocol ClusterBackend: Sendable {
    /// Where everything else is asked.
    var client: any CoordinatorClient { get }

    /// How long a coordinator that does not answer is asked again.
    var patience: Duration { get }

    /// Tells how old a graph is.
    var time: TimeSource { get }

    /// Begins to serve, or to listen. Called once, before anything else.
    ///
    /// - Parameter sink: takes what ended, in order; called from one task at a time.
    func start(_ sink: EndedSink) async throws

    /// What a worker in this process has to know to run operations of a kind that are added.
    func register(_ kind: OperationKind)

    /// Whether a whole graph can be submitted: the same graphs are refused wherever the coordinator
    /// is, in the same words.
    func check(_ graph: GraphDescription) throws(Refusal)

    /// A place in the stream of events before anything that is submitted from now on.
    func position() async throws -> UInt64?

    /// Tells of what ends in this graph from this place on.
    func follow(graph: GraphID, after position: UInt64?)

    /// Ends. What runs here has this long to finish, then it is asked to stop.
    ///
    /// - Parameter others: Returns when nobody needs it any more who is none of its workers;
    ///   within the same time.
    func close(within time: Duration, behind others: () async -> Void) async
}

extension ClusterBackend {
    var time: TimeSource { .system }

    /// Asks, and asks again while nobody answers: everything that is asked may be asked twice.
    ///
    /// - Throws: `Refusal`, ``OperonError``, or `CancellationError` if the task is cancelled.
    func asked<Answer: Sendable>(
        _ question: (any CoordinatorClient) async throws -> Answer
    ) async throws -> Answer {
        let end = ContinuousClock.now + patience
        var backoff = Backoff()
        while true {
            do {
                return try await question(client)
            } catch let error as ClientError {
                guard error.code == .unreachable || error.code == .unavailable,
                    ContinuousClock.now + backoff.pause < end
                else { throw OperonError.from(error) }
                try await backoff.wait()
            }
        }
    }
}

/// The pauses between questions to a coordinator that is away: nothing tells when it is back.
struct Backoff {
    /// A coordinator that is started again answers within some tenths of a second.
    private static let first = Duration.milliseconds(100)
    /// How late its return is noticed at most. A thousand programs that wait for it are two hundred
    /// questions a second.
    private static let longest = Duration.seconds(5)

    /// The next one.
    private(set) var pause = first

    /// - Throws: `CancellationError`.
    mutating func wait() async throws {
        try await Task.sleep(for: pause)
        pause = min(pause * 2, Self.longest)
    }

    /// Somebody answered.
    mutating func reset() { pause = Self.first }
}

/// An operation that has its outcome.
struct EndedOperation: Sendable {
    let id: OperationID
    let outcome: Outcome
    /// `nil`: it may have left something, which is to be asked for.
    let output: Payload?
}

/// Where a backend tells of what ended.
struct EndedSink: Sendable {
    let deliver: @Sendable ([EndedOperation]) -> Void
    /// It is the turn of an operation that no worker runs. May be told twice; without the attempt,
    /// if that is not known.
    let started: @Sendable (OperationID, AttemptID?) -> Void
    /// Operations of a graph may have ended without a word: these are not known to have; `nil`: it
    /// is not known which they are, for some are on their way.
    let unfinished: @Sendable (GraphID) -> [UInt32]?
    /// Nothing will be heard of a graph any more; `nil`: of none. With what those are told who
    /// wait for its operations; `nil`: the cluster was closed.
    let gone: @Sendable (GraphID?, OperonError?) -> Void
}

extension OperonError {
    /// What a coordinator, or the way to it, has against a call. What it refuses is thrown as the
    /// `Refusal`.
    static func from(_ error: ClientError) -> any Error {
        if let refusal = error.refusal { return refusal }
        if error.isGivenUp { return CancellationError() }
        if error.isClosed { return OperonError(.closed, "The cluster was closed.") }
        let code: Code =
            switch error.code {
            case .invalid: .invalid
            case .notFound: .notFound
            case .conflict, .tooLarge: .refused
            case .unauthorized, .forbidden: .forbidden
            case .unavailable, .unreachable: .unreachable
            case .timedOut: .timedOut
            case .internal: .system
            }
        return OperonError(code, error.message)
    }
}
