import OperonModel
import Synchronization

/// An event that happens once, and that any number of tasks may wait for.
package final class Latch: Sendable {
    private struct State {
        var isOpen = false
        var nextID: UInt64 = 0
        var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
    }

    private let state = Mutex(State())

    package init() {}

    package var isOpen: Bool { state.withLock { $0.isOpen } }

    /// Releases all tasks that wait now or later. A second call has no effect.
    package func open() {
        let waiters = state.withLock { state in
            state.isOpen = true
            // The order does not matter: each waiter is a task of its own.
            let waiters = Array(state.waiters.values)
            state.waiters = [:]
            return waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Returns when it is open, or when the task is cancelled.
    package func wait() async {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isWaiting = state.withLock { state in
                    // Cancellation sets the flag first and takes the lock afterwards, so none is
                    // missed.
                    guard !state.isOpen, !Task.isCancelled else { return false }
                    state.waiters[id] = continuation
                    return true
                }
                if !isWaiting { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: id) }?.resume()
        }
    }

    /// Returns when it is open, when the task is cancelled, or after `limit`.
    package func wait(within limit: Duration, by time: TimeSource = .system) async {
        await wait(until: time.now() + limit, by: time)
    }

    /// Returns when it is open, when the task is cancelled, or at a moment of the given clock.
    func wait(until moment: Timestamp, by time: TimeSource) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.wait() }
            group.addTask {
                // Cancelled, because the other task was first.
                do { try await time.sleep(moment) } catch {}
            }
            await group.next()
            group.cancelAll()
        }
    }
}
