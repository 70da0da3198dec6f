import OperonModel
import OperonPorts

/// Somebody who reads what an operation prints while it prints it.
struct LogListener: Sendable {
    let id: UInt64
    let operation: OperationID
    let queue: LogQueue
}

extension CoordinatorService {
    /// A reader may be as far behind as the tail that is kept: what is older is gone for everybody.
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

    /// It prints nothing more.
    func endListening(to operation: OperationID) {
        guard !logListeners.isEmpty else { return }
        for listener in logListeners where listener.operation == operation {
            listener.queue.finish()
        }
        logListeners.removeAll { $0.operation == operation }
    }

    func tell(_ chunk: LogChunk) {
        for listener in logListeners where listener.operation == chunk.held.operation {
            listener.queue.add(chunk)
        }
    }

    /// How many follow what operations print.
    package var logListenerCount: Int { logListeners.count }
}

/// Reads what an operation prints, one piece after the other, as its reader asks: nothing is read
/// ahead. Whoever follows no more lets go of it, and then nobody listens for it.
actor LogReader {
    private let service: CoordinatorService
    private let listener: LogListener
    private let name: OperationName
    /// Printed before, the last first.
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

    /// `nil`: it is finished, or nobody asks any more.
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
