import NIOConcurrencyHelpers
import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTestKit
import Testing

/// A wall clock that a test sets, beside the machine's monotonic clock.
private final class SetClock: Sendable {
    private struct State {
        var date = WallTime(nanosecondsSince1970: 1_767_225_600_000_000_000)
        var sleepers: [(date: WallTime, latch: Latch)] = []
    }

    private let state = NIOLockedValueBox(State())

    var date: WallTime { state.withLockedValue { $0.date } }

    func set(to date: WallTime) {
        let due = state.withLockedValue { state in
            state.date = date
            let due = state.sleepers.filter { $0.date <= date }
            state.sleepers.removeAll { $0.date <= date }
            return due
        }
        for sleeper in due { sleeper.latch.open() }
    }

    var source: TimeSource {
        TimeSource(
            now: { SystemClock.now() },
            wall: { self.date },
            sleep: { try await TimeSource.system.sleep($0) },
            sleepUntilDate: { date in
                let latch = Latch()
                self.state.withLockedValue { state in
                    if date <= state.date { return latch.open() }
                    state.sleepers.append((date, latch))
                }
                await latch.wait()
                try Task.checkCancellation()
            }
        )
    }
}

/// A coordinator keeps dates, however its wall clock is set.
@Suite(.timeLimit(.minutes(5))) struct DateAlarmTests {
    private func submission(_ change: (inout OperationDescription) -> Void) -> Submission {
        var operation = OperationDescription(name: "a", work: .external(input: .empty))
        change(&operation)
        return Submission(graph: GraphDescription(name: "g", operations: [operation]))
    }

    @Test func `a deadline that the clock is set beyond has passed`() async throws {
        let store = InMemoryStore(reign: Reign(rawValue: 5))
        let clock = SetClock()
        try await ManualCluster.run(store, isConnected: false, time: clock.source) { cluster in
            let deadline = clock.date + .seconds(8 * 3_600)
            _ = try await cluster.client.submit(submission { $0.deadline = deadline })
            clock.set(to: deadline + .seconds(-1))
            clock.set(to: deadline)
            await cluster.service.waitUntilFinished(GraphID(rawValue: 0))
            let operation = OperationID(graph: GraphID(rawValue: 0), index: 0)
            #expect(await cluster.service.query { $0.outcome(of: operation) } == .failed(.deadline))
        }
    }

    @Test func `what a restored operation waits for comes without a broker`() async throws {
        let store = InMemoryStore(reign: Reign(rawValue: 5))
        let clock = SetClock()
        let deadline = clock.date + .seconds(60)
        try await ManualCluster.run(store, isConnected: false, time: clock.source) { cluster in
            _ = try await cluster.client.submit(submission { $0.deadline = deadline })
        }
        clock.set(to: deadline)
        try await ManualCluster.run(store, isConnected: false, time: clock.source) { cluster in
            await cluster.service.waitUntilFinished(GraphID(rawValue: 0))
            let operation = OperationID(graph: GraphID(rawValue: 0), index: 0)
            #expect(await cluster.service.query { $0.outcome(of: operation) } == .failed(.deadline))
        }
    }
}
