import Synchronization

/// Hands arriving elements to one consumer. Each batch holds everything that is waiting, so the
/// busier the consumer is, the larger its batches are.
///
/// The buffer knows what the consumer has taken, which an `AsyncStream` with a buffer of its own
/// does not. So a producer can stop while the consumer is behind.
package final class BatchBuffer<Element: Sendable>: Sendable {
    private struct State {
        var waiting: [Element] = []
        var cost = 0
        var consumer: CheckedContinuation<[Element]?, Never>?
        var isFinished = false

        mutating func take() -> ([Element], Int) {
            defer {
                waiting = []
                cost = 0
            }
            return (waiting, cost)
        }
    }

    /// Counts the cost of the waiting elements.
    package let gate: RoomGate
    private let state = Mutex(State())
    private let onRoom: Mutex<(@Sendable () -> Void)?>

    /// `onRoom` is called when the consumer has made room in a full buffer.
    package init(costLimit: Int, onRoom: (@Sendable () -> Void)? = nil) {
        gate = RoomGate(limit: costLimit)
        self.onRoom = Mutex(onRoom)
    }

    /// Sets `onRoom` later, for an owner that is created after its buffer.
    package func setOnRoom(_ onRoom: @escaping @Sendable () -> Void) {
        self.onRoom.withLock { $0 = onRoom }
    }

    /// Whether the waiting elements cost no more than the limit.
    package var hasRoom: Bool { gate.hasRoom }

    /// The arriving elements, for one consumer. After `finish` it ends with the last batch.
    package var stream: AsyncStream<[Element]> {
        AsyncStream {
            await self.next()
        } onCancel: {
            self.release()
        }
    }

    /// Returns whether there is room for more. `cost` counts until the consumer takes the elements.
    @discardableResult
    package func append(_ elements: [Element], cost: Int) -> Bool {
        guard !elements.isEmpty else { return true }
        let hasRoom = gate.add(cost)
        let (consumer, batch, paid) = state.withLock { state in
            guard !state.isFinished else {
                return (nil as CheckedContinuation<[Element]?, Never>?, [Element](), cost)
            }
            if state.waiting.isEmpty {
                state.waiting = elements
            } else {
                state.waiting.append(contentsOf: elements)
            }
            state.cost += cost
            guard let consumer = state.consumer else { return (nil, [], 0) }
            state.consumer = nil
            let (batch, paid) = state.take()
            return (consumer, batch, paid)
        }
        consumer?.resume(returning: batch)
        guard paid > 0 else { return hasRoom }
        if gate.remove(paid) { onRoom.withLock { $0 }?() }
        return true
    }

    /// Ends the stream: later elements are ignored.
    package func finish() {
        let consumer = state.withLock { state in
            state.isFinished = true
            defer { state.consumer = nil }
            return state.consumer
        }
        // A consumer waits only while the buffer is empty.
        consumer?.resume(returning: nil)
        gate.open()
    }

    private func next() async -> [Element]? {
        let batch: [Element]? = await withCheckedContinuation { continuation in
            let (answer, paid) = state.withLock { state -> ([Element]??, Int) in
                if !state.waiting.isEmpty {
                    let (batch, paid) = state.take()
                    return (.some(batch), paid)
                }
                if state.isFinished || Task.isCancelled { return (.some(nil), 0) }
                precondition(state.consumer == nil, "events have one consumer")
                state.consumer = continuation
                return (nil, 0)
            }
            if paid > 0, gate.remove(paid) { onRoom.withLock { $0 }?() }
            if let answer { continuation.resume(returning: answer) }
        }
        return batch
    }

    /// The consumer's task was cancelled while it waited.
    private func release() {
        let consumer = state.withLock { state in
            defer { state.consumer = nil }
            return state.consumer
        }
        consumer?.resume(returning: nil)
    }
}
