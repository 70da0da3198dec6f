package import OperonModel

/// What clients ask of a coordinator, whatever way they reach it: in the same process or over HTTP.
///
/// Graphs are named by their number, by their name (the newest of that name) or by `@latest`;
/// operations by their name or their number in their graph. Every answer is true of what is on the
/// disk: nothing is told that a power cut could take back.
package protocol CoordinatorClient: Sendable {
    func submit(_ submission: Submission) async throws(ClientError) -> GraphView
    /// Adds operations to an open graph; their dependencies may name operations that it has. The
    /// answer tells the number of the first of them.
    func add(_ addition: Submission, to graph: String) async throws(ClientError) -> GraphView
    /// Nothing can be added any more.
    func close(graph: String) async throws(ClientError) -> GraphView

    /// Newest first.
    func graphs(_ query: GraphQuery) async throws(ClientError) -> GraphPage
    func graph(_ graph: String) async throws(ClientError) -> GraphView
    /// In the order of submission.
    func operations(
        of graph: String,
        _ query: OperationQuery
    ) async throws(ClientError) -> OperationPage
    func operation(_ operation: OperationSelector) async throws(ClientError) -> OperationDetail
    func explain(_ operation: OperationSelector) async throws(ClientError) -> Explanation
    /// What it was given as its own: `nil` for one that is neither of a registered kind nor
    /// external, or has none.
    func input(of operation: OperationSelector) async throws(ClientError) -> Payload?
    /// `nil`: it left none.
    func output(of operation: OperationSelector) async throws(ClientError) -> Payload?
    /// One for each attempt whose output is kept, the last attempt last.
    func log(of operation: OperationSelector) async throws(ClientError) -> [LogView]
    /// What its attempts print from now on, until it is finished.
    func followLog(
        of operation: OperationSelector
    ) async throws(ClientError) -> AsyncThrowingStream<LogView, any Error>

    func cancel(
        _ target: TargetSelector,
        _ request: CancelRequest
    ) async throws(ClientError) -> CommandView
    func suspend(
        _ target: TargetSelector,
        _ request: SuspendRequest
    ) async throws(ClientError) -> CommandView
    func resume(_ target: TargetSelector) async throws(ClientError) -> CommandView
    /// Gives finished operations their next round, and those that were skipped because of them.
    func retry(
        graph: String,
        _ request: RetryRequest
    ) async throws(ClientError) -> CommandView
    /// Ends the attempt of an `external` operation: this one, or whichever is executing. The first
    /// one to do so does, and every other is refused.
    func complete(
        _ operation: OperationSelector,
        attempt: AttemptID?,
        with completion: Completion
    ) async throws(ClientError) -> OperationView
    func setPriority(
        of operation: OperationSelector,
        to priority: QueuePriority
    ) async throws(ClientError) -> OperationView
    /// Done, or refused with `alreadyStarted`; `on` may be an operation of another graph.
    func addDependency(
        of operation: OperationSelector,
        on dependency: OperationSelector,
        _ condition: DependencyCondition
    ) async throws(ClientError) -> OperationDetail
    func removeDependency(
        of operation: OperationSelector,
        on dependency: OperationSelector
    ) async throws(ClientError) -> OperationDetail

    func queues() async throws(ClientError) -> [QueueView]
    func queue(_ name: String) async throws(ClientError) -> QueueView
    /// Operations of a queue, of all graphs: graph by graph, each in the order of submission.
    func operations(
        ofQueue name: String,
        _ query: QueueOperationQuery
    ) async throws(ClientError) -> QueuePage
    /// Returns when nothing in the queue is unfinished, or after this many seconds.
    func waitUntilEmpty(
        queue name: String,
        within seconds: Double
    ) async throws(ClientError) -> QueueView
    /// Makes the queue if there is none of this name.
    func setQueue(_ name: String, _ change: QueueChange) async throws(ClientError) -> QueueView
    /// Takes the settings of a queue back. One that no graph names is gone then.
    func resetQueue(_ name: String) async throws(ClientError) -> QueueView
    func keys() async throws(ClientError) -> [KeyView]
    func key(_ name: String) async throws(ClientError) -> KeyView
    /// How many operations may hold a key, whatever graphs say from then on. Makes the key if there
    /// is none of this name.
    func setKey(_ settings: KeySettings) async throws(ClientError) -> KeyView
    /// Takes the limit of a key back. One that no graph names is gone then.
    func resetKey(_ name: String) async throws(ClientError) -> KeyView
    func workers() async throws(ClientError) -> [WorkerView]
    /// By its name or its id: it is given nothing more and ends when it has finished what it has.
    func drain(worker: String) async throws(ClientError) -> WorkerView
    func status() async throws(ClientError) -> ClusterView
    /// A copy of all that the coordinator keeps, with everything that it told anybody before.
    func backup() async throws(ClientError) -> StoreBackup

    /// What happens from now on, or from after a number that was seen; of one graph only, if one
    /// is named. Numbers that are not there any more are told as a gap.
    func events(
        after sequence: UInt64?,
        graph: String?
    ) async throws(ClientError) -> AsyncThrowingStream<ClientEvent, any Error>
}

package enum ClientEvent: Hashable, Sendable {
    case event(EventView)
    /// From the first to the last number of which nothing is told: these events are not kept any
    /// more. From the first of all, if what was seen is not what the coordinator has, as after its
    /// store was replaced by an older copy: then nothing that was seen counts.
    case gap(UInt64, UInt64)
}

/// A graph, or an addition to one, on its way to a coordinator.
package struct Submission: Sendable {
    package var graph: GraphDescription
    /// Further operations may be added later.
    package var isOpen = false
    /// The same key with the same graph gives the same answer, with another graph a refusal. Of
    /// additions to one graph the last `Limits.additionKeys` are remembered.
    package var idempotencyKey: String?
    /// W3C trace context of whoever submits.
    package var traceParent: String?

    package init(graph: GraphDescription) { self.graph = graph }
}

package struct OperationSelector: Hashable, Sendable {
    package var graph: String
    /// A name, or a number where no operation has that name; or `@7`, which is number 7 whatever
    /// the others are called.
    package var operation: String

    package init(graph: String, operation: String) {
        self.graph = graph
        self.operation = operation
    }

    /// By its numbers alone.
    package init(_ id: OperationID) {
        self.init(graph: "\(id.graph)", operation: "@\(id.index)")
    }

    /// Of `@7`; `nil`: a name, or what may be one.
    package var number: UInt32? {
        operation.hasPrefix("@") ? UInt32(operation.dropFirst()) : nil
    }
}

package enum TargetSelector: Hashable, Sendable {
    case operation(OperationSelector)
    case graph(String)
    case queue(String)
}

package struct GraphQuery: Hashable, Sendable {
    package var status: GraphStatus?
    package var name: String?
    /// The `next` of the page before.
    package var after: UInt32?
    package var limit = 50
    package init() {}
}

package struct OperationQuery: Hashable, Sendable {
    package var state: OperationState?
    package var outcome: OutcomeKind?
    package var queue: String?
    package var after: UInt32?
    package var limit = 100
    package init() {}
}

package struct QueueOperationQuery: Hashable, Sendable {
    /// `nil`: those that are not finished, unless an outcome is named.
    package var state: OperationState?
    package var outcome: OutcomeKind?
    /// The `next` of the page before.
    package var after: String?
    package var limit = 100
    package init() {}

    /// Whether it asks for finished operations.
    package var wantsFinished: Bool { state == .finished || state == nil && outcome != nil }
}

package struct CancelRequest: Hashable, Sendable, Codable {
    package var reason = ""
    package var cascade = false
    /// Seconds to wait until it is effective and what ran has ended; `nil`: not at all.
    package var wait: Double?
    package init() {}
}

package struct SuspendRequest: Hashable, Sendable, Codable {
    package var reason = ""
    package var until: TimeText?
    /// Seconds to wait until it is effective.
    package var wait: Double?
    package init() {}
}

package struct RetryRequest: Hashable, Sendable, Codable {
    /// By name; empty: every operation that failed.
    package var operations: [String] = []
    /// Those that were cancelled, too.
    package var cancelled = false
    package init() {}
}

/// How graphs travel and are kept as text: the graph file.
package protocol GraphCodec: Sendable {
    /// In pieces, so that a large graph is never a second time in memory as one text.
    func encode(_ graph: GraphDescription) throws -> any Sequence<[UInt8]> & Sendable
    /// - Parameter contentType: `application/json`, `application/jsonl` or `application/yaml`.
    /// - Throws: an error whose description names line and thing.
    func decode(_ bytes: [UInt8], contentType: String, name: String) throws -> GraphDescription
}

/// Why a client got no answer.
package struct ClientError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Code: String, Hashable, Sendable, Codable {
        /// The request makes no sense; `refusal` says why.
        case invalid
        /// There is no such object.
        case notFound
        /// It cannot be done to what is there: started, finished, closed, another use of a key.
        case conflict
        /// A limit.
        case tooLarge
        /// No token, or not a good one.
        case unauthorized
        /// The token does not allow it.
        case forbidden
        /// The coordinator cannot do it now: its store is full, or it leaves.
        case unavailable
        /// Nobody answers there.
        case unreachable
        /// Not done in the time that was given.
        case timedOut
        /// A mistake of the program.
        case `internal`
    }

    package var code: Code
    /// A sentence for a person that says what to do.
    package var message: String
    package var refusal: Refusal?
    /// It is this program that wants no answer any more: `closed`.
    package private(set) var isClosed = false
    /// The task that asked was cancelled: `givenUp`.
    package private(set) var isGivenUp = false

    package init(_ code: Code, _ message: String, refusal: Refusal? = nil) {
        self.code = code
        self.message = message
        self.refusal = refusal
    }

    /// What was refused, as a client is told it.
    package init(_ refusal: Refusal) {
        let code: Code =
            switch refusal {
            case .alreadySubmitted, .alreadyStarted, .alreadyFinished, .graphClosed: .conflict
            case .limitExceeded: .tooLarge
            case .unreachable: .unavailable
            case .dependencyCycle, .unknownOperation, .duplicateOperation, .invalid: .invalid
            }
        var message = "\(refusal)"
        if code == .conflict {
            // A sentence by itself; any other stands behind a place in a file.
            message = message.prefix(1).uppercased() + message.dropFirst() + "."
        }
        self.init(code, message, refusal: refusal)
    }

    /// The client was shut down, here: asking again is of no use.
    package static let closed: ClientError = {
        var error = ClientError(
            .conflict,
            "The client was closed: whether what was being asked then was done is not known."
        )
        error.isClosed = true
        return error
    }()

    /// The task that asked was cancelled, here: whoever can throw `CancellationError` does.
    package static let givenUp: ClientError = {
        var error = ClientError(
            .timedOut,
            "The call was cancelled: whether what it asked was done is not known."
        )
        error.isGivenUp = true
        return error
    }()

    package var description: String { message }
}
