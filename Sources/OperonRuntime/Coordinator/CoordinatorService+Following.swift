import OperonModel
import OperonPorts

/// A reader that follows the log of an operation while it runs.
struct LogListener: Sendable {
    let id: UInt64
    let operation: OperationID
    let queue: LogQueue
}

extension CoordinatorService {
    /// Starts following. A reader may fall behind by as many bytes as the store keeps of a log
    /// tail; older bytes are lost to every reader.
    func listen(to operation: OperationID) -> LogListener {
        nextListener += 1
        let listener = LogListener(
            id: nextListener,
            operation: operation,
            queue: LogQueue(bytesMax: limits.logBytes)
        )
        logListeners.append(listener)
        return listener
    }

    func stopListening(_ id: UInt64) {
        for listener in logListeners where listener.id == id { listener.queue.finish() }
        logListeners.removeAll { $0.id == id }
    }

    /// Ends the listeners of an operation that prints nothing more.
    func endListening(to operation: OperationID) {
        endListening { $0 == operation }
    }

    func endListening(toThoseOf operations: OperationRange) {
        endListening { operations.contains($0) }
    }

    private func endListening(to isOver: (OperationID) -> Bool) {
        guard !logListeners.isEmpty else { return }
        for listener in logListeners where isOver(listener.operation) { listener.queue.finish() }
        logListeners.removeAll { isOver($0.operation) }
    }

    func tell(_ chunk: LogChunk) {
        for listener in logListeners where listener.operation == chunk.held.operation {
            listener.queue.add(chunk)
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
}

/// Reads the log of a running operation piece by piece, as its reader asks; it does not read ahead.
/// When the last reference to it is released, its listener is removed.
actor LogReader {
    private let service: CoordinatorService
    private let listener: LogListener
    private let name: OperationName
    /// Output printed before the listener started, in reverse order.
    private var earlier: [LogView]

    init(
        _ service: CoordinatorService,
        _ listener: LogListener,
        name: OperationName,
        earlier: [LogView]
    ) {
        self.service = service
        self.listener = listener
        self.name = name
        self.earlier = earlier.reversed()
    }

    deinit {
        let (service, id) = (service, listener.id)
        Task { await service.stopListening(id) }
    }

    /// Returns `nil` if the log has ended or the task was cancelled.
    func next() async -> LogView? {
        if let view = earlier.popLast() { return view }
        guard let piece = await listener.queue.next() else { return nil }
        var view = LogView(
            operation: name,
            attempt: piece.chunk.held.attempt.description,
            text: String(decoding: piece.chunk.bytes, as: UTF8.self),
            isTail: piece.missedBytes > 0
        )
        if piece.missedBytes > 0 { view.missedBytes = piece.missedBytes }
        return view
    }
}
