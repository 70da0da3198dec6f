internal import FoundationEssentials
internal import OperonGraphFile
internal import OperonModel
internal import OperonPorts

/// Why a graph file cannot be read or written: everything that is wrong with it, up to twenty
/// problems.
public struct GraphFileInvalid: Error, Hashable, Sendable, CustomStringConvertible {
    /// One thing that is wrong.
    public struct Problem: Hashable, Sendable {
        /// The file, as it was named.
        public let file: String
        /// From 1; 0 where the problem has no place in the file.
        public let line: Int
        /// From 1, counted in Unicode scalars; 0 where the problem has no place in the file.
        public let column: Int
        /// A sentence that a person can act on.
        public let message: String
    }

    /// In the order in which they were found; at least one.
    public let problems: [Problem]

    init(_ error: GraphFileError) {
        problems = error.problems.map {
            Problem(file: $0.file, line: $0.line, column: $0.column, message: $0.message)
        }
    }

    /// `file:line:column: message`, a line for each.
    public var description: String {
        problems.map { problem in
            let place = problem.line == 0 ? "" : "\(problem.line):\(problem.column):"
            return "\(problem.file):\(place) \(problem.message)"
        }
        .joined(separator: "\n")
    }
}

extension GraphDescription {
    /// Reads a graph file: YAML, JSON or JSON Lines, by its suffix or its content.
    ///
    /// Relative directories in it are relative to where it lies.
    ///
    /// - Throws: ``GraphFileInvalid``.
    public init(contentsOf path: String) throws {
        do throws(GraphFileError) {
            self = try GraphFile.read(path: path).graph
        } catch {
            throw GraphFileInvalid(error)
        }
    }

    /// Reads the text of a graph file.
    ///
    /// - Parameters:
    ///   - text: YAML, JSON or JSON Lines, by its content.
    ///   - name: The graph's name, if the text gives none.
    /// - Throws: ``GraphFileInvalid``.
    public init(text: String, name: String = "graph") throws {
        do throws(GraphFileError) {
            self = try GraphFile.read(bytes: Array(text.utf8), file: name).graph
        } catch {
            throw GraphFileInvalid(error)
        }
    }

    /// As the text of a graph file, in JSON. Read again, it is the same graph.
    ///
    /// - Throws: ``GraphFileInvalid`` for what a graph file cannot say.
    public func text() throws -> String {
        do throws(GraphFileError) {
            return String(decoding: try GraphFile.encodeJSON(self), as: UTF8.self)
        } catch {
            throw GraphFileInvalid(error)
        }
    }

    /// Writes it to a file, in JSON. A file that is there is replaced as a whole.
    ///
    /// - Throws: ``GraphFileInvalid``, or what the file system says.
    public func write(to path: String) throws {
        try Data(try text().utf8).write(to: URL(filePath: path), options: .atomic)
    }
}

/// A graph that was submitted as one.
public struct SubmittedGraph: Sendable {
    /// What it is known by in its cluster.
    public let id: GraphID
    /// Its name, which others may have as well.
    public let name: String
    /// Where it runs.
    public let cluster: Cluster

    /// How its operations are, all together.
    ///
    /// - Throws: ``OperonError``, if the coordinator cannot be asked or has forgotten it.
    public var progress: OperationQueueProgress {
        get async throws {
            let counts = try await cluster.ask { try await $0.graph("\(id)") }.counts
            return OperationQueueProgress(
                finishedCount: counts.finished,
                totalCount: counts.total
            )
        }
    }

    /// The operation of this name.
    ///
    /// - Throws: ``OperonError`` with the code `notFound`; or if the coordinator cannot be asked.
    public func operation(named name: String) async throws -> AnyOperationHandle {
        let selector = OperationSelector(graph: "\(id)", operation: name)
        let view = try await cluster.ask { try await $0.operation(selector) }.operation
        let operation = OperationID(graph: id, index: view.index)
        let queue = OperationQueue(name: view.queue, cluster: cluster)
        let handle = UnknownOperationHandle(operation, name: view.name, in: queue)
        try await cluster.follow(handle, operation)
        return handle
    }

    /// Returns when every operation has its outcome.
    ///
    /// - Returns: How many ended how.
    /// - Throws: `CancellationError`; ``OperonError``, if the coordinator cannot be asked, or with
    ///   the code `closed` if the cluster was closed before.
    @discardableResult
    public func waitUntilFinished() async throws -> [OutcomeKind: Int] {
        var counts = try await cluster.ask { try await $0.graph("\(id)") }.counts
        if counts.unfinished > 0 {
            let position = try await cluster.ask { try await $0.status().lastEvent ?? 0 }
            let events = try await cluster.ask {
                try await $0.events(after: position, graph: "\(id)")
            }
            counts = try await cluster.ask { try await $0.graph("\(id)") }.counts
            if counts.unfinished > 0 {
                do {
                    // After a gap, too, whether it is over is asked and not guessed.
                    for try await event in events {
                        if case .event(let event) = event, event.kind != "finished" { continue }
                        counts = try await cluster.ask { try await $0.graph("\(id)") }.counts
                        if counts.unfinished == 0 { break }
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

    /// Cancels everything in it that has not ended.
    ///
    /// - Throws: ``OperonError``, if the coordinator cannot be asked.
    public func cancel(reason: String = "") async throws {
        var request = CancelRequest()
        request.reason = reason
        let sent = request
        _ = try await cluster.ask { try await $0.cancel(.graph("\(id)"), sent) }
    }
}

extension Cluster {
    /// Submits a whole graph: from a graph file, for example.
    ///
    /// - Parameters:
    ///   - graph: What to submit.
    ///   - idempotencyKey: The same key with the same graph gives the same answer, however often it
    ///     is submitted; `nil`: each time it is a new one.
    /// - Throws: `Refusal` if the coordinator refuses it, ``OperonError`` if it cannot be sent.
    public func submit(
        _ graph: GraphDescription,
        idempotencyKey: String? = nil
    ) async throws -> SubmittedGraph {
        try await session().backend.check(graph)
        var submission = Submission(graph: graph)
        submission.idempotencyKey = idempotencyKey ?? Session.newKey()
        let sent = submission
        let view = try await ask { try await $0.submit(sent) }
        return SubmittedGraph(id: GraphID(rawValue: view.id), name: view.name, cluster: self)
    }
}
