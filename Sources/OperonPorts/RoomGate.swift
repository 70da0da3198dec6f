import NIOConcurrencyHelpers

/// Counts what waits and lets those who add to it wait while there is too much: the bound on every
/// buffer of the transports. It holds at most the limit and one message for each sender.
package final class RoomGate: Sendable {
    private struct State {
        var used = 0
        var nextID: UInt64 = 0
        var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
        var isOpen = false

        mutating func takeWaiters() -> [CheckedContinuation<Void, Never>] {
            // The order does not matter: each only learns that there is room.
            let taken = Array(waiters.values)
            waiters = [:]
            return taken
        }
    }

    private let limit: Int
    private let state = NIOLockedValueBox(State())

    /// `limit` in the unit of `add` and `remove`, usually bytes.
    package init(limit: Int) { self.limit = limit }

    package var used: Int { state.withLockedValue { $0.used } }

    package var hasRoom: Bool { state.withLockedValue { $0.used <= limit } }

    /// Returns whether there is room for more.
    @discardableResult
    package func add(_ amount: Int) -> Bool {
        state.withLockedValue {
            $0.used += amount
            return $0.used <= limit
        }
    }

    /// Returns whether this made room where there was none.
    @discardableResult
    package func remove(_ amount: Int) -> Bool {
        let (waiters, madeRoom) = state.withLockedValue { state in
            let wasFull = state.used > limit
            state.used -= amount
            let madeRoom = wasFull && state.used <= limit
            return (madeRoom ? state.takeWaiters() : [], madeRoom)
        }
        for waiter in waiters { waiter.resume() }
        return madeRoom
    }

    /// Nobody waits here any more: what is counted will never be taken.
    package func open() {
        let waiters = state.withLockedValue { state in
            state.isOpen = true
            return state.takeWaiters()
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Returns when there is room, when the gate is open for good, or when the task is cancelled.
    package func waitForRoom() async {
        let id = state.withLockedValue { state -> UInt64? in
            guard state.used > limit, !state.isOpen else { return nil }
            state.nextID += 1
            return state.nextID
        }
        guard let id else { return }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isWaiting = state.withLockedValue { state in
                    // Cancelling sets the flag first and takes the lock then, so no cancel is
                    // missed between these two lines.
                    guard state.used > limit, !state.isOpen, !Task.isCancelled else {
                        return false
                    }
                    state.waiters[id] = continuation
                    return true
                }
                if !isWaiting { continuation.resume() }
            }
        } onCancel: {
            state.withLockedValue { $0.waiters.removeValue(forKey: id) }?.resume()
        }
    }
}
