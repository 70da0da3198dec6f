import OperonModel
import Testing

@testable import OperonRuntime

/// What a coordinator measures of what workers tell.
@Suite struct CoordinatorLatencyTests {
    private static func seconds(_ number: Double) -> Timestamp {
        Timestamp(nanoseconds: Int64(number * 1e9))
    }

    @Test func `a start counts once, and as a time between the grant and now`() {
        var latency = CoordinatorLatency()
        let starts = [
            (said: Self.seconds(11), counts: Duration.seconds(1)),
            (said: Timestamp(nanoseconds: .min), counts: .zero),
            (said: Self.seconds(9), counts: .zero),
            (said: Timestamp(nanoseconds: .max), counts: .seconds(5)),
        ]
        for (number, start) in starts.enumerated() {
            let attempt = AttemptID(
                epoch: Epoch(rawValue: 1),
                number: UInt64(number)
            )
            latency.granted(attempt, at: Self.seconds(10))
            let now = Self.seconds(15)
            let counted = latency.started(attempt, at: start.said, toldAt: now)
            #expect(counted == start.counts, "\(start)")
            #expect(latency.started(attempt, at: start.said, toldAt: now) == nil)
        }
        #expect(latency.view.dispatch == DurationSumView(count: 4, seconds: 6))
        #expect(latency.view.sync == DurationSumView(count: 0, seconds: 0))
    }

    @Test func `an attempt that ended without a start is forgotten`() {
        var latency = CoordinatorLatency()
        let attempt = AttemptID(epoch: Epoch(rawValue: 1), number: 1)
        latency.granted(attempt, at: Self.seconds(1))
        latency.ended(attempt)
        #expect(latency.started(attempt, at: Self.seconds(2), toldAt: Self.seconds(3)) == nil)
    }
}
