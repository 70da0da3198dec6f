import Synchronization

/// Counts waiting elements and suspends those who add more while there are too many. Every buffer
/// of the transports is bounded this way: it holds at most the limit and one message per sender.
package final class RoomGate: Sendable {
    private struct State {
        var used = 0
        var nextID: UInt64 = 0
        var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
        var isOpen = false

        mutating func takeWaiters() -> [CheckedContinuation<Void, Never>] {
            // The order does not matter: each waiter only learns that there is room.
            let taken = Array(waiters.values)
            waiters = [:]
            return taken
        }
    }

    private let limit: Int
    private let state = Mutex(State())

    /// `limit` has the unit of `add` and `remove`, usually bytes.
    package init(limit: Int) { self.limit = limit }

    package var used: Int { state.withLock { $0.used } }

    package var hasRoom: Bool { state.withLock { $0.used <= limit } }

    /// Returns whether there is room for more.
    @discardableResult
    package func add(_ amount: Int) -> Bool {
        state.withLock {
            $0.used += amount
            return $0.used <= limit
        }
    }

    /// Returns whether this call made room in a full gate.
    @discardableResult
    package func remove(_ amount: Int) -> Bool {
        let (waiters, madeRoom) = state.withLock { state in
            let wasFull = state.used > limit
            state.used -= amount
            let madeRoom = wasFull && state.used <= limit
            return (madeRoom ? state.takeWaiters() : [], madeRoom)
        }
        for waiter in waiters { waiter.resume() }
        return madeRoom
    }

    /// Ends all waiting for good: nobody will take what is counted.
    package func open() {
        let waiters = state.withLock { state in
            state.isOpen = true
            return state.takeWaiters()
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Returns when there is room, when the gate is open for good, or when the task is cancelled.
    package func waitForRoom() async {
        let id = state.withLock { state -> UInt64? in
            guard state.used > limit, !state.isOpen else { return nil }
            state.nextID += 1
            return state.nextID
        }
        guard let id else { return }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isWaiting = state.withLock { state in
                    // Cancelling sets the flag before it takes the lock, so no cancel is missed
                    // between this check and the next line.
                    guard state.used > limit, !state.isOpen, !Task.isCancelled else {
                        return false
                    }
                    state.waiters[id] = continuation
                    return true
                }
                if !isWaiting { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: id) }?.resume()
        }
    }
}
