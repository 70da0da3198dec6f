internal import Logging
internal import OperonModel
internal import OperonPorts
internal import OperonRuntime

/// The implementation of a ``Cluster``: a coordinator for requests, and reports of finished
/// operations.
protocol ClusterBackend: Sendable {
    /// The client for all other requests.
    var client: any CoordinatorClient { get }

    /// How long requests to a coordinator that does not answer are repeated.
    var patience: Duration { get }

    /// The clock for measuring the age of a graph.
    var time: TimeSource { get }

    /// Starts to serve or to listen. Called once, before anything else.
    ///
    /// - Parameter sink: Receives finished operations, in order; called from one task at a time.
    func start(_ sink: EndedSink) async throws

    /// Registers a kind, so that a worker in this process can run the operations that are added.
    func register(_ kind: OperationKind)

    /// Checks whether a whole graph can be submitted, so that all backends refuse the same graphs
    /// with the same messages.
    func check(_ graph: GraphDescription) throws(Refusal)

    /// Checks whether an operation can be added that has no name in a graph yet.
    func check(_ operation: OperationDescription, named name: String) throws(Refusal)

    /// Receives messages for operators.
    var logger: Logger { get }

    /// A position in the event stream before everything that is submitted from now on.
    func position() async throws -> UInt64?

    /// Reports the operations of this graph that finish after this position.
    func follow(graph: GraphID, after position: UInt64?)

    /// Ends. Operations that run in this process have this long to finish; then they are asked to
    /// stop.
    ///
    /// - Parameter others: Returns, within the same time, when nobody except the workers needs the
    ///   backend.
    func close(within time: Duration, behind others: () async -> Void) async
}

extension ClusterBackend {
    var time: TimeSource { .system }

    func check(_ operation: OperationDescription, named name: String) throws(Refusal) {}

    /// Sends a request, and repeats it while the coordinator does not answer. All requests are safe
    /// to repeat.
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

/// The pauses between requests to a coordinator that does not answer: nothing signals its return.
struct Backoff {
    /// A coordinator that is restarted answers within some tenths of a second.
    private static let first = Duration.milliseconds(100)
    /// The longest delay until the coordinator's return is noticed. With this pause, a thousand
    /// waiting programs send two hundred requests a second.
    private static let longest = Duration.seconds(5)

    /// The next pause.
    private(set) var pause = first

    /// - Throws: `CancellationError`.
    mutating func wait() async throws {
        try await Task.sleep(for: pause)
        pause = min(pause * 2, Self.longest)
    }

    /// Called when the coordinator has answered.
    mutating func reset() { pause = Self.first }
}

/// A finished operation.
struct EndedOperation: Sendable {
    let id: OperationID
    let outcome: Outcome
    /// `nil`: there may be an output, which has to be fetched.
    let output: Payload?
}

/// The functions that a backend calls to report.
struct EndedSink: Sendable {
    let deliver: @Sendable ([EndedOperation]) -> Void
    /// Reports that an external operation started to execute. May be called twice for one start;
    /// without the attempt, if it is not known.
    let started: @Sendable (OperationID, AttemptID?) -> Void
    /// Returns the operations of a graph that are not known to have finished, when reports may have
    /// been missed; `nil`: unknown, because some are still being added.
    let unfinished: @Sendable (GraphID) -> [UInt32]?
    /// Reports that nothing more will be known of a graph, or of any graph if it is `nil`. The
    /// error is for tasks that wait for the graph's operations; `nil`: the cluster was closed.
    let gone: @Sendable (GraphID?, OperonError?) -> Void
}

extension OperonError {
    /// The public error for a call that the coordinator refused or that could not reach it. A
    /// refusal is returned as the `Refusal`.
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
