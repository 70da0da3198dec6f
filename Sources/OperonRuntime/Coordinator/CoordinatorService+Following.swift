import DequeModule
import OperonCore
import OperonModel
import OperonPorts

/// A reader of the logs of an operation, or of all operations of a graph.
struct LogListener: Sendable {
    enum Scope: Hashable, Sendable {
        case operation(OperationID)
        case graph(GraphID)

        /// Whether it is a single operation, and one of these.
        func isOne(of operations: OperationRange) -> Bool {
            guard case .operation(let operation) = self else { return false }
            return operations.contains(operation)
        }

        func contains(_ operation: OperationID) -> Bool {
            switch self {
            case .operation(let one): one == operation
            case .graph(let graph): graph == operation.graph
            }
        }
    }

    let id: UInt64
    let scope: Scope
    /// Raised when there is a change that the reader has not taken.
    let signal = Signal()
    /// The operations that have printed something since the reader took them, each once.
    private var changed = Deque<OperationID>()
    /// The same. With the attempts that have ended meanwhile.
    private var ends: [OperationID: [LogEnd]] = [:]
    /// Whether nothing more will be printed.
    var isOver = false

    init(id: UInt64, scope: Scope) {
        self.id = id
        self.scope = scope
    }

    mutating func note(_ operation: OperationID, _ end: LogEnd? = nil) {
        if ends[operation] == nil {
            ends[operation] = []
            changed.append(operation)
        }
        if let end { ends[operation]?.append(end) }
        signal.raise()
    }

    /// The operation that changed first.
    mutating func take() -> (operation: OperationID, ends: [LogEnd])? {
        guard let operation = changed.popFirst() else { return nil }
        return (operation, ends.removeValue(forKey: operation) ?? [])
    }
}

/// The end of an attempt, for a reader of its log.
struct LogEnd: Hashable, Sendable {
    let attempt: AttemptID
    /// How many bytes it printed, as far as the coordinator knows.
    let bytes: UInt64
}

/// What an attempt that has not ended has printed.
struct LiveLogPart: Sendable {
    let attempt: AttemptID
    let pieces: [(offset: UInt64, bytes: ArraySlice<UInt8>)]
}

extension CoordinatorService {
    /// The most bytes that are kept of what attempts in flight have printed.
    static let liveLogBytes = 64 << 20
    /// How many times as much is kept of an attempt in flight as of one that has ended: a reader
    /// that follows it may be a moment late.
    package static let liveLogFactor = 8

    func listen(to scope: LogListener.Scope) -> LogListener {
        nextListener += 1
        var listener = LogListener(id: nextListener, scope: scope)
        switch scope {
        case .operation(let operation):
            listener.isOver = scheduler.state(of: operation) == .finished
        case .graph(let graph): listener.isOver = scheduler.isFinished(graph)
        }
        logListeners.append(listener)
        return listener
    }

    func scope(of selector: LogSelector) throws(ClientError) -> LogListener.Scope {
        switch selector {
        case .operation(let operation): return .operation(try find(operation))
        case .graph(let name):
            let graph = try find(name)
            guard !catalog.isDropped(graph) else { throw .dropped(graph) }
            return .graph(graph)
        }
    }

    func stopListening(_ id: UInt64) {
        for listener in logListeners where listener.id == id { listener.signal.finish() }
        logListeners.removeAll { $0.id == id }
    }

    /// Keeps what an attempt prints, for readers of its log.
    func keep(_ chunk: LogChunk) {
        // Without a store there are no clients.
        guard keeping != nil, !chunk.bytes.isEmpty else { return }
        liveLogs.add(chunk)
        noteForListeners(chunk.held.operation)
    }

    func noteForListeners(_ operation: OperationID, _ end: LogEnd? = nil) {
        for place in logListeners.indices where logListeners[place].scope.contains(operation) {
            logListeners[place].note(operation, end)
        }
    }

    /// - Parameter isStored: Whether the result of the attempt has a log.
    func endLog(of attempt: AttemptID, _ operation: OperationID, isStored: Bool) {
        let bytes = liveLogs.end(attempt, of: operation)
        guard isStored || bytes > 0 else { return }
        noteForListeners(operation, LogEnd(attempt: attempt, bytes: bytes))
    }

    /// Nothing of the scope will print any more.
    func noteOver(_ isOver: (LogListener.Scope) -> Bool) {
        for place in logListeners.indices where isOver(logListeners[place].scope) {
            logListeners[place].isOver = true
            logListeners[place].signal.raise()
        }
    }

    /// What a listener has to do next.
    enum LogStep: Sendable {
        case read(OperationID, ends: [LogEnd])
        /// Nothing has changed.
        case wait
        /// Nothing will change.
        case over
    }

    func nextStep(of listener: UInt64) -> LogStep {
        guard let place = logListeners.firstIndex(where: { $0.id == listener }) else {
            return .over
        }
        if let (operation, ends) = logListeners[place].take() {
            return .read(operation, ends: ends)
        }
        return logListeners[place].isOver ? .over : .wait
    }

    func liveLog(of operation: OperationID, after cursor: LogCursor?) -> LiveLogPart? {
        guard let attempt = liveLogs.attempt(of: operation) else { return nil }
        let start = cursor?.attempt == attempt ? cursor?.next ?? 0 : 0
        let pieces = liveLogs.pieces(of: operation, attempt, from: start)
        return LiveLogPart(attempt: attempt, pieces: pieces)
    }

    /// The stored logs of an operation and its attempts; `nil`: there is no store.
    ///
    /// - Throws: `ClientError.notFound` if its graph was dropped, also while the store was read: a
    ///   log that is gone must not look as if nothing had been printed.
    func storedLogs(
        of operation: OperationID
    ) async throws(ClientError) -> (logs: [StoredLog], attempts: [StoredAttempt])? {
        try check(operation)
        let found = try await stored { store in
            (try await store.log(of: operation), try await store.attempts(of: operation))
        }
        try check(operation)
        return found
    }

    /// The operations of a scope that have printed anything, in order.
    func printedOperations(
        of scope: LogListener.Scope
    ) async throws(ClientError) -> [OperationID] {
        switch scope {
        case .operation(let operation): return [operation]
        case .graph(let graph):
            let kept = try await stored { try await $0.loggedOperations(of: graph) } ?? []
            try check(graph)
            let live = liveLogs.operations.filter { $0.graph == graph }.map(\.index)
            return Set(kept + live).sorted().map { OperationID(graph: graph, index: $0) }
        }
    }

    /// A reader of events has come: from here on events stay in memory for a while.
    func startReading() { keeping?.readers += 1 }

    func stopReading() {
        keeping?.readers -= 1
        guard keeping?.readers == 0 else { return }
        keeping?.fresh = []
        keeping?.freshBytes = 0
        feed.removeAll()
    }

    /// The number of readers of events.
    package var eventReaderCount: Int { keeping?.readers ?? 0 }

    /// The number of readers that follow logs.
    package var logListenerCount: Int { logListeners.count }

    /// The memory of what attempts in flight have printed, in bytes.
    package var liveLogBytes: Int { liveLogs.approximateBytes }
}
