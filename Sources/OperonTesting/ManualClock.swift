public import OperonModel
package import OperonRuntime
internal import Synchronization

/// A clock that stands still until a test moves it.
///
/// ```swift
/// let clock = ManualClock()
/// let cluster = Cluster.testing(clock: clock)
/// let queue = OperationQueue(cluster: cluster)
/// let reminder = try await queue.addOperation(Remind(), options: .init(delay: .seconds(86_400)))
/// clock.advance(by: .seconds(86_400))
/// try await reminder.value
/// ```
public final class ManualClock: Sendable {
    private struct Sleeper {
        let until: Timestamp
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var elapsed = Duration.zero
        var lastID: UInt64 = 0
        var sleepers: [UInt64: Sleeper] = [:]
    }

    private let state = Mutex(State())
    private let start: WallTime

    /// Creates a clock that starts at a calendar time.
    ///
    /// - Parameter start: By default the first second of 2026, in UTC.
    public init(start: WallTime = WallTime(nanosecondsSince1970: 1_767_225_600_000_000_000)) {
        self.start = start
    }

    /// How far the clock has been moved.
    public var elapsed: Duration { state.withLock { $0.elapsed } }

    /// The current calendar time of the clock.
    public var now: WallTime { start + elapsed }

    /// Moves the clock forward at once. When this returns, everything scheduled up to the new time
    /// is due and happens then; wait for the effects as usual. The clock does not go back: a
    /// negative duration changes nothing.
    public func advance(by duration: Duration) {
        guard duration > .zero else { return }
        let due = state.withLock { state in
            state.elapsed += duration
            let now = Self.moment(state.elapsed)
            let due = state.sleepers.filter { $0.value.until <= now }
            for id in due.keys { state.sleepers[id] = nil }
            return due.values.sorted { $0.until < $1.until }
        }
        for sleeper in due { sleeper.continuation.resume() }
    }

    /// Starts above zero, so that times long before the start can be represented.
    private static func moment(_ elapsed: Duration) -> Timestamp {
        Timestamp(nanoseconds: 1_000_000_000_000) + elapsed
    }

    package var source: TimeSource {
        TimeSource(
            now: { Self.moment(self.elapsed) },
            wall: { self.now },
            sleep: { try await self.sleep(until: $0) },
            // Both clocks move together.
            sleepUntilDate: { date in
                try await self.sleep(until: Self.moment(date - self.start))
            }
        )
    }

    private func sleep(until: Timestamp) async throws {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result: Result<Void, any Error>? = state.withLock { state in
                    if Task.isCancelled { return .failure(CancellationError()) }
                    if until <= Self.moment(state.elapsed) { return .success(()) }
                    state.sleepers[id] = Sleeper(until: until, continuation: continuation)
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            let sleeper = state.withLock { $0.sleepers.removeValue(forKey: id) }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }
}
