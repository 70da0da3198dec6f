internal import FoundationEssentials
internal import OperonGraphFile
internal import OperonModel
internal import OperonPorts

/// Why a graph file cannot be read or written: all problems found, up to twenty.
public struct GraphFileInvalid: Error, Hashable, Sendable, CustomStringConvertible {
    /// One problem.
    public struct Problem: Hashable, Sendable {
        /// The file name, as it was given.
        public let file: String
        /// The line, counted from 1; 0 if the problem has no place in the file.
        public let line: Int
        /// The column, counted from 1 in Unicode scalars; 0 if the problem has no place in the
        /// file.
        public let column: Int
        /// A sentence that tells a person what to fix.
        public let message: String
    }

    /// The problems in the order in which they were found; at least one.
    public let problems: [Problem]

    init(_ error: GraphFileError) {
        problems = error.problems.map {
            Problem(file: $0.file, line: $0.line, column: $0.column, message: $0.message)
        }
    }

    /// One line of the form `file:line:column: message` for each problem.
    public var description: String {
        problems.map { problem in
            let place = problem.line == 0 ? "" : "\(problem.line):\(problem.column):"
            return "\(problem.file):\(place) \(problem.message)"
        }
        .joined(separator: "\n")
    }
}

extension GraphDescription {
    /// Reads a graph file. Its suffix or its content decides whether it is YAML, JSON or JSON
    /// Lines.
    ///
    /// Relative directories in the file are relative to the folder that contains it.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - parameters: Values for the parameters that the file declares, by name, as text. The
    ///     elements of a list are separated by commas. A parameter without a value has its default.
    /// - Throws: ``GraphFileInvalid``.
    public init(contentsOf path: String, parameters: [String: String] = [:]) throws {
        do throws(GraphFileError) {
            let options = GraphFileOptions(parameters: Self.assignments(parameters))
            self = try GraphFile.read(path: path, options: options).graph
        } catch {
            throw GraphFileInvalid(error)
        }
    }

    /// Reads the text of a graph file.
    ///
    /// - Parameters:
    ///   - text: YAML, JSON or JSON Lines; the content decides which.
    ///   - name: The name of the graph, if the text does not give one.
    ///   - parameters: Values for the parameters that the text declares, by name, as text. The
    ///     elements of a list are separated by commas. A parameter without a value has its default.
    /// - Throws: ``GraphFileInvalid``.
    public init(
        text: String,
        name: String = "graph",
        parameters: [String: String] = [:]
    ) throws {
        do throws(GraphFileError) {
            let options = GraphFileOptions(parameters: Self.assignments(parameters))
            let bytes = Array(text.utf8)
            self = try GraphFile.read(bytes: bytes, file: name, options: options).graph
        } catch {
            throw GraphFileInvalid(error)
        }
    }

    private static func assignments(_ values: [String: String]) -> [ParameterAssignment] {
        values.sorted { $0.key < $1.key }.map {
            ParameterAssignment($0.key, $0.value, source: "parameters", directory: nil)
        }
    }

    /// Returns the graph as a graph file in JSON. Reading the text gives the same graph.
    ///
    /// - Throws: ``GraphFileInvalid`` if a graph file cannot express the graph.
    public func text() throws -> String {
        do throws(GraphFileError) {
            return String(decoding: try GraphFile.encodeJSON(self), as: UTF8.self)
        } catch {
            throw GraphFileInvalid(error)
        }
    }

    /// Writes the graph to a file, in JSON. An existing file is replaced atomically.
    ///
    /// - Throws: ``GraphFileInvalid``, or the error of the file system.
    public func write(to path: String) throws {
        try Data(try text().utf8).write(to: URL(filePath: path), options: .atomic)
    }
}

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
