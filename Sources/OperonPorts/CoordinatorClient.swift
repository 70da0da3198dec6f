package import OperonModel

/// The requests that clients make to a coordinator, in the same process or over HTTP.
///
/// A graph is named by its number, by its name (the newest graph of that name) or by `@latest`; an
/// operation by its name or its number within its graph. Every answer reflects synced state only,
/// so a power cut cannot make it untrue.
package protocol CoordinatorClient: Sendable {
    func submit(_ submission: Submission) async throws(ClientError) -> GraphView
    /// Adds operations to an open graph. Their dependencies may name operations that the graph
    /// already has. The answer contains the number of the first added operation.
    func add(_ addition: Submission, to graph: String) async throws(ClientError) -> GraphView
    /// Submits an edited form of a finished graph: what succeeded in that graph and is the same
    /// stays, everything else runs.
    func resubmit(
        _ submission: Submission,
        of graph: String,
        _ options: ResubmitOptions
    ) async throws(ClientError) -> ContinuationView
    /// The same with the graph as it was submitted, and the dependencies that it has now.
    func rerun(
        graph: String,
        _ request: RerunRequest
    ) async throws(ClientError) -> ContinuationView
    /// Closes an open graph: it accepts no more operations from clients.
    func close(graph: String) async throws(ClientError) -> GraphView

    /// Newest first.
    func graphs(_ query: GraphQuery) async throws(ClientError) -> GraphPage
    func graph(_ graph: String) async throws(ClientError) -> GraphView
    /// The progress of a graph: as it is, and from then on at a pace whenever it has changed. The
    /// end of the last operation comes at once; the stream goes on after it. The first value is the
    /// last one of other readers, if there are any, and may be from before a retry.
    func progress(of graph: String) async throws(ClientError) -> ProgressUpdates
    /// In the order of submission.
    func operations(
        of graph: String,
        _ query: OperationQuery
    ) async throws(ClientError) -> OperationPage
    /// What is known of operations and their attempts, many at a time.
    ///
    /// - Parameter after: The `next` of the page before; `nil`: from the first.
    func records(
        of graph: String,
        after: UInt32?,
        limit: Int
    ) async throws(ClientError) -> RecordPage
    /// The states of all operations of a graph.
    func states(of graph: String) async throws(ClientError) -> StateRunsView
    func operation(_ operation: OperationSelector) async throws(ClientError) -> OperationDetail
    func explain(_ operation: OperationSelector) async throws(ClientError) -> Explanation
    /// The operation's own input. `nil` if it has none, or if its kind is built in and it is not
    /// external.
    func input(of operation: OperationSelector) async throws(ClientError) -> Payload?
    /// `nil` if the operation left no output.
    func output(of operation: OperationSelector) async throws(ClientError) -> Payload?
    /// What operations have printed, and if the query follows, what they print later. Attempts of
    /// an operation are in order; each byte comes once, or is counted as missing. What attempts in
    /// flight print is shown before it is stored.
    func log(
        of selector: LogSelector,
        _ query: LogQuery
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
    /// Starts the next round of finished operations and of those that were skipped because of them.
    func retry(
        graph: String,
        _ request: RetryRequest
    ) async throws(ClientError) -> CommandView
    /// Ends an attempt of an `external` operation: the given attempt, or the executing one if none
    /// is given. The first completion counts; every later one is refused.
    func complete(
        _ operation: OperationSelector,
        attempt: AttemptID?,
        with completion: Completion
    ) async throws(ClientError) -> OperationView
    func setPriority(
        of operation: OperationSelector,
        to priority: QueuePriority
    ) async throws(ClientError) -> OperationView
    /// Adds the dependency, or refuses with `alreadyStarted`. `on` may be an operation of another
    /// graph.
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
    /// The operations of a queue in all graphs, graph by graph, each in the order of submission.
    func operations(
        ofQueue name: String,
        _ query: QueueOperationQuery
    ) async throws(ClientError) -> QueuePage
    /// Returns when every operation in the queue is finished, or after this many seconds.
    func waitUntilEmpty(
        queue name: String,
        within seconds: Double
    ) async throws(ClientError) -> QueueView
    /// Creates the queue if none has this name.
    func setQueue(_ name: String, _ change: QueueChange) async throws(ClientError) -> QueueView
    /// Removes the settings of a queue. A queue that no graph names then ceases to exist.
    func resetQueue(_ name: String) async throws(ClientError) -> QueueView
    func keys() async throws(ClientError) -> [KeyView]
    func key(_ name: String) async throws(ClientError) -> KeyView
    /// Sets how many operations may hold a key. From then on graphs cannot change this limit.
    /// Creates the key if none has this name.
    func setKey(_ settings: KeySettings) async throws(ClientError) -> KeyView
    /// Removes the limit of a key. A key that no graph names then ceases to exist.
    func resetKey(_ name: String) async throws(ClientError) -> KeyView
    func workers() async throws(ClientError) -> [WorkerView]
    /// Drains a worker, given by its name or its id: it gets no more attempts and ends when those
    /// it has are finished.
    func drain(worker: String) async throws(ClientError) -> WorkerView
    func status() async throws(ClientError) -> ClusterView
    /// The status of the cluster: as it is, and from then on at a pace whenever something has
    /// happened. The first value is the last one of other readers, if there are any.
    func statusUpdates() async throws(ClientError) -> StatusUpdates
    /// A code with which a browser can log in once, with the rights of this client. `nil`: this
    /// coordinator needs no login.
    func sessionCode() async throws(ClientError) -> SessionCodeView?
    /// A copy of the coordinator's store. It contains everything that the coordinator has reported
    /// to any client before.
    func backup() async throws(ClientError) -> StoreBackup

    /// By name.
    func triggers() async throws(ClientError) -> [TriggerView]
    func trigger(_ name: String) async throws(ClientError) -> TriggerView
    /// Adds a trigger: a trigger file in which graphs are texts. The same trigger again has no
    /// effect; another one of its name is refused, unless it replaces it.
    func addTrigger(
        _ body: [UInt8],
        contentType: String,
        replace: Bool
    ) async throws(ClientError) -> TriggerView
    /// Returns the trigger as it was. What it has submitted runs on.
    func removeTrigger(_ name: String) async throws(ClientError) -> TriggerView
    /// Fires a trigger on `event`. The same key fires it once.
    ///
    /// - Parameter data: JSON; empty: none.
    func fireTrigger(
        _ name: String,
        data: [UInt8],
        idempotencyKey: String?
    ) async throws(ClientError) -> FiringView
    func suspendTrigger(
        _ name: String,
        _ request: SuspendRequest
    ) async throws(ClientError) -> TriggerView
    func resumeTrigger(_ name: String) async throws(ClientError) -> TriggerView
    /// The newest first.
    func firings(ofTrigger name: String, limit: Int) async throws(ClientError) -> [FiringView]
    func nextTicks(ofTrigger name: String, count: Int) async throws(ClientError) -> [TickView]
    func explain(trigger name: String) async throws(ClientError) -> TriggerExplanation
    /// Fires a trigger on `webhook`, if the signature of the request is valid.
    func deliver(
        _ delivery: WebhookDelivery,
        toTrigger name: String
    ) async throws(ClientError) -> FiringView

    /// Events from now on, or those after a number that the caller has seen. Events that are no
    /// longer stored are reported as a gap.
    func events(_ query: EventQuery) async throws(ClientError) -> EventBatches
}

package enum ClientEvent: Hashable, Sendable {
    case event(EventView)
    /// The first and the last number of a range of events that are no longer stored. The range
    /// starts at the first event of all if the caller has seen events that the coordinator does not
    /// have, for instance because an older copy replaced its store. In that case the caller must
    /// discard everything it has seen.
    case gap(UInt64, UInt64)

    /// The number of the event, or the first number of the gap.
    package var first: UInt64 {
        switch self {
        case .event(let event): event.sequence
        case .gap(let first, _): first
        }
    }

    /// The number of the event, or the last number of the gap: a stream that continues after it
    /// misses and repeats nothing.
    package var last: UInt64 {
        switch self {
        case .event(let event): event.sequence
        case .gap(_, let last): last
        }
    }

    package var isGap: Bool {
        if case .gap = self { true } else { false }
    }

    /// The graph that the event is about.
    package var graph: UInt32? {
        if case .event(let event) = self { event.graph } else { nil }
    }
}

/// A graph, or an addition to a graph, that is submitted to a coordinator.
package struct Submission: Sendable {
    package var graph: GraphDescription
    /// Whether operations may be added later.
    package var isOpen = false
    /// A submission with the same key and the same graph gets the same answer; one with the same
    /// key and another graph is refused. For additions, each graph remembers the last
    /// `Limits.additionKeys` keys.
    package var idempotencyKey: String?
    /// The W3C trace context of the submitter.
    package var traceParent: String?

    package init(graph: GraphDescription) { self.graph = graph }
}

package struct OperationSelector: Hashable, Sendable {
    package var graph: String
    /// A name; or a number, if no operation has that name; or `@7`, which always means number 7.
    package var operation: String

    package init(graph: String, operation: String) {
        self.graph = graph
        self.operation = operation
    }

    /// Selects an operation by its numbers alone.
    package init(_ id: OperationID) {
        self.init(graph: "\(id.graph)", operation: "@\(id.index)")
    }

    /// The number in a selector such as `@7`; `nil` if `operation` is a name or could be one.
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
    /// The `next` of the previous page.
    package var after: UInt32?
    package var limit = 50
    package init() {}
}

package struct OperationQuery: Hashable, Sendable {
    package var state: OperationState?
    package var outcome: OutcomeKind?
    package var queue: String?
    /// What the name begins with, byte for byte.
    package var namePrefix: String?
    /// Only operations of these numbers, in ascending order; `nil`: all. Those that the graph does
    /// not have are passed over.
    package var numbers: [UInt32]?
    package var after: UInt32?
    package var limit = 100
    package init() {}

    /// The most numbers that a request over HTTP may name.
    package static let numbersMax = 1_000
}

package struct QueueOperationQuery: Hashable, Sendable {
    /// `nil` selects unfinished operations, unless `outcome` is set.
    package var state: OperationState?
    package var outcome: OutcomeKind?
    /// What the name of the operation begins with, byte for byte.
    package var namePrefix: String?
    /// The `next` of the previous page.
    package var after: String?
    package var limit = 100
    package init() {}

    /// Whether the query asks for finished operations.
    package var wantsFinished: Bool { state == .finished || state == nil && outcome != nil }
}

package struct CancelRequest: Hashable, Sendable, Codable {
    package var reason = ""
    package var cascade = false
    /// Seconds to wait until the cancel is effective and running attempts have ended; `nil`: do not
    /// wait.
    package var wait: Double?
    package init() {}
}

package struct SuspendRequest: Hashable, Sendable, Codable {
    package var reason = ""
    package var until: TimeText?
    /// Seconds to wait until the suspension is effective.
    package var wait: Double?
    package init() {}
}

package struct ResubmitOptions: Hashable, Sendable {
    /// The names of operations that run even if they succeeded and are the same.
    package var again: [String] = []
    /// Whether it is only asked what would happen.
    package var isDryRun = false
    package init() {}
}

package struct RerunRequest: Hashable, Sendable, Encodable {
    /// The names of the operations that run again, at least one.
    package var operations: [String]
    /// Whether it is only asked what would happen.
    package var isDryRun = false
    /// As for a submission.
    package var idempotencyKey: String?
    package var traceParent: String?

    package init(_ operations: [String]) { self.operations = operations }

    // The others are headers.
    private enum CodingKeys: String, CodingKey {
        case operations
        case isDryRun = "dryRun"
    }
}

package struct RetryRequest: Hashable, Sendable, Codable {
    /// Names of operations; if empty, every failed operation.
    package var operations: [String] = []
    /// Whether cancelled operations are retried as well.
    package var cancelled = false
    package init() {}
}

/// Converts graphs to and from text, in the format of the graph file.
package protocol GraphCodec: Sendable {
    /// Returns the text in pieces, so that a large graph is not in memory a second time as one
    /// text.
    func encode(_ graph: GraphDescription) throws -> any Sequence<[UInt8]> & Sendable
    /// - Parameter contentType: `application/json`, `application/jsonl` or `application/yaml`.
    /// - Parameter parameters: A JSON object with values for the parameters that the text declares;
    ///   `nil`: none.
    /// - Throws: an error whose description names the line and the item.
    func decode(
        _ bytes: [UInt8],
        contentType: String,
        name: String,
        parameters: String?
    ) throws -> GraphDescription
}

/// Converts triggers to and from text, and the graphs that they submit from text.
package protocol TriggerCodec: Sendable {
    /// A trigger as JSON, with the texts of its graphs in it. Equal triggers give equal bytes.
    func encode(_ trigger: TriggerDescription) -> [UInt8]
    /// - Parameter contentType: `application/json` or `application/yaml`.
    /// - Throws: an error whose description names the line and the item.
    func decodeTrigger(_ bytes: [UInt8], contentType: String) throws -> TriggerDescription
    /// Checks that data can be a part of an event: JSON within the bounds of its reader.
    func checkData(_ json: [UInt8]) throws
    /// The graph that a trigger submits.
    ///
    /// - Parameters:
    ///   - parameters: The values of its parameters: a JSON object in which `${event.…}` stands for
    ///     a part of the event.
    ///   - event: What fired the trigger: a JSON object.
    /// - Throws: `UnsafeEventError` if a shell would interpret a part of the event,
    ///   `TriggerValuesError` if the values of parameters are to blame, else an error whose
    ///   description names the line and the item.
    func graph(
        _ graph: TriggerGraph,
        parameters: String,
        event: String
    ) throws -> GraphDescription
    /// A sentence for each name in these values that is no parameter of the graph, whatever the
    /// event is.
    func unknownParameters(_ parameters: String, of graph: TriggerGraph) -> [String]
}

/// The values that a trigger gives to the parameters of its graph do not fit.
package struct TriggerValuesError: Error, Hashable, Sendable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

/// A shell would interpret a part of what fired a trigger, so this firing never submits a graph.
package struct UnsafeEventError: Error, Hashable, Sendable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

/// Why a client did not get what it asked for.
package struct ClientError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Code: String, Hashable, Sendable, Codable {
        /// The request is not valid; `refusal` says why.
        case invalid
        /// There is no such object.
        case notFound
        /// The state of the object does not allow it: it has started, is finished or closed, or the
        /// idempotency key was used for something else.
        case conflict
        /// The request exceeds a limit.
        case tooLarge
        /// The token is missing or not valid.
        case unauthorized
        /// The token does not allow it.
        case forbidden
        /// The coordinator cannot do it now: its store is full, or it is stopping.
        case unavailable
        /// There is no answer from that address.
        case unreachable
        /// It was not done within the given time.
        case timedOut
        /// A defect of the program.
        case `internal`
    }

    package var code: Code
    /// A sentence for a person; it says what to do.
    package var message: String
    package var refusal: Refusal?
    /// Whether this program shut the client down: see `closed`.
    package private(set) var isClosed = false
    /// Whether the calling task was cancelled: see `givenUp`.
    package private(set) var isGivenUp = false

    package init(_ code: Code, _ message: String, refusal: Refusal? = nil) {
        self.code = code
        self.message = message
        self.refusal = refusal
    }

    /// The error that a client gets for a refusal.
    package init(_ refusal: Refusal) {
        let code: Code =
            switch refusal {
            case .alreadySubmitted, .alreadyStarted, .alreadyFinished, .graphClosed: .conflict
            case .limitExceeded: .tooLarge
            case .unreachable: .unavailable
            case .dependencyCycle, .unknownOperation, .duplicateOperation, .invalid: .invalid
            }
        self.init(code, refusal.sentence, refusal: refusal)
    }

    /// This program shut the client down, so asking again cannot help.
    package static let closed: ClientError = {
        var error = ClientError(
            .conflict,
            "The client was closed: whether what was being asked then was done is not known."
        )
        error.isClosed = true
        return error
    }()

    /// The calling task was cancelled. Callers that can throw `CancellationError` throw that
    /// instead.
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
