internal import OperonModel
internal import OperonPorts

/// Operations of a submitted graph that no worker could ever run, all for one reason.
public struct SubmissionWarning: Hashable, Sendable, CustomStringConvertible {
    /// `noWorker`, `noWorkerForKind`, `noWorkerForQueue` or `noWorkerForResources`. A later version
    /// may have others.
    public let code: String
    /// A sentence for people.
    public let message: String
    /// The first few of the operations; none for `noWorker`.
    public let operations: [OperationID]
    /// How many more operations there are.
    public let moreOperations: Int

    init(_ view: WarningView) {
        code = view.code
        message = view.text
        operations = view.operations.map {
            OperationID(graph: GraphID(rawValue: $0.graph), index: $0.index)
        }
        moreOperations = view.more
    }

    /// The sentence.
    public var description: String { message }
}

/// A graph that was submitted as a whole.
public struct SubmittedGraph: Sendable {
    /// Identifies the graph in its cluster.
    public let id: GraphID
    /// The name of the graph; other graphs may have the same name.
    public let name: String
    /// The cluster that runs the graph.
    public let cluster: Cluster
    /// Operations that no worker known at the submission could ever run. They wait for one that
    /// can. Empty: none, or the coordinator is of an earlier version.
    public let warnings: [SubmissionWarning]

    /// How many of its operations have finished, and how many there are.
    ///
    /// - Throws: ``OperonError`` if the request to the coordinator fails or the graph was dropped.
    public var progress: OperationQueueProgress {
        get async throws {
            let counts = try await cluster.ask { try await $0.graph("\(id)") }.counts
            return OperationQueueProgress(
                finishedCount: counts.finished,
                totalCount: counts.total
            )
        }
    }

    /// Returns a handle for the operation of this name.
    ///
    /// - Throws: ``OperonError`` with the code `notFound`, or if the request to the coordinator
    ///   fails.
    public func operation(named name: String) async throws -> AnyOperationHandle {
        let selector = OperationSelector(graph: "\(id)", operation: name)
        let view = try await cluster.ask { try await $0.operation(selector) }.operation
        let operation = OperationID(graph: id, index: view.index)
        let queue = OperationQueue(name: view.queue, cluster: cluster)
        let handle = UnknownOperationHandle(operation, name: view.name, in: queue)
        try await cluster.follow(handle, operation)
        return handle
    }

    /// Events after which the graph may have finished.
    private static let ends = Set(ClusterEvent.Kind.allCases.filter(\.mayEndGraph))
        .union([.finished, .rangeFinished])

    /// Waits until all operations of the graph have finished.
    ///
    /// - Returns: The number of operations with each outcome.
    /// - Throws: `CancellationError`; ``OperonError`` if the request to the coordinator fails, or
    ///   with the code `closed` if the cluster was closed first.
    @discardableResult
    public func waitUntilFinished() async throws -> [OutcomeKind: Int] {
        var counts = try await cluster.ask { try await $0.graph("\(id)") }.counts
        if counts.unfinished > 0 {
            let position = try await cluster.ask { try await $0.status().lastEvent ?? 0 }
            let events = try await cluster.ask {
                try await $0.events(after: position, graph: "\(id)", kinds: Self.ends)
            }
            counts = try await cluster.ask { try await $0.graph("\(id)") }.counts
            if counts.unfinished > 0 {
                do {
                    // Asks whether the graph has finished, after a gap as well, instead of
                    // inferring it.
                    var missing = counts.unfinished
                    for try await event in events {
                        if case .event(let event) = event, event.outcome != nil {
                            // An event tells of each unfinished operation before the graph can be
                            // over.
                            missing -= Int(event.count ?? 1)
                            if missing > 0 { continue }
                        }
                        counts = try await cluster.ask { try await $0.graph("\(id)") }.counts
                        if counts.unfinished == 0 { break }
                        missing = counts.unfinished
                    }
                } catch let error as ClientError {
                    throw OperonError.from(error)
                }
                try Task.checkCancellation()
                guard counts.unfinished == 0 else {
                    throw OperonError(.closed, "The cluster was closed before “\(name)” had ended.")
                }
            }
        }
        return [
            .succeeded: counts.succeeded, .failed: counts.failed, .cancelled: counts.cancelled,
            .skipped: counts.skipped,
        ]
    }

    /// Cancels all unfinished operations of the graph.
    ///
    /// - Parameter reason: Text for people, of at most 4,096 bytes.
    /// - Throws: ``OperonError`` if the request to the coordinator fails.
    public func cancel(reason: String = "") async throws {
        var request = CancelRequest()
        request.reason = reason
        let sent = request
        _ = try await cluster.ask { try await $0.cancel(.graph("\(id)"), sent) }
    }
}

extension Cluster {
    /// Submits a whole graph, for example one from a graph file.
    ///
    /// - Parameters:
    ///   - graph: The graph to submit.
    ///   - idempotencyKey: Submitting the same graph with the same key again returns the same
    ///     answer; `nil`: each submission creates a new graph.
    /// - Throws: `Refusal` if the coordinator refuses the graph, ``OperonError`` if it cannot be
    ///   sent.
    public func submit(
        _ graph: GraphDescription,
        idempotencyKey: String? = nil
    ) async throws -> SubmittedGraph {
        try await session().backend.check(graph)
        var submission = Submission(graph: graph)
        submission.idempotencyKey = idempotencyKey ?? Session.newKey()
        let sent = submission
        let view = try await ask { try await $0.submit(sent) }
        return SubmittedGraph(
            id: GraphID(rawValue: view.id),
            name: view.name,
            cluster: self,
            warnings: (view.warnings ?? []).map { SubmissionWarning($0) }
        )
    }
}
