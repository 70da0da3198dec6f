package import OperonModel

/// The operations whose logs a client reads.
package enum LogSelector: Hashable, Sendable {
    case operation(OperationSelector)
    /// All operations of a graph.
    case graph(String)
}

/// Which part of a log a client reads.
package struct LogQuery: Hashable, Sendable {
    /// Whether to go on with what is printed later, until the operations have finished.
    package var follow: Bool
    /// Of what each operation has printed so far, only the last lines; `nil`: all that is kept.
    package var tail: Int?
    /// Only attempts that ran at this time or later.
    package var since: WallTime?
    /// Only the attempt of this number; the first is 1.
    package var attempt: UInt32?
    /// Of the log of a graph, only the elements of this repeated operation, and what adds them.
    package var repeated: String?

    package init(
        follow: Bool = false,
        tail: Int? = nil,
        since: WallTime? = nil,
        attempt: UInt32? = nil,
        repeated: String? = nil
    ) {
        self.follow = follow
        self.tail = tail
        self.since = since
        self.attempt = attempt
        self.repeated = repeated
    }
}

extension CoordinatorClient {
    /// What the attempts of an operation have printed so far.
    package func log(of operation: OperationSelector) async throws -> [LogView] {
        let stream = try await log(of: .operation(operation), LogQuery())
        return try await stream.reduce(into: []) { $0.append($1) }
    }
}
