import OperonModel
import Testing

struct TimestampTests {
    @Test func `moments add and subtract`() {
        let moment = Timestamp(nanoseconds: 5)

        #expect(moment + .nanoseconds(7) == Timestamp(nanoseconds: 12))
        #expect(moment - .nanoseconds(7) == Timestamp(nanoseconds: -2))
        #expect(moment - Timestamp(nanoseconds: 2) == .nanoseconds(3))
        #expect(Timestamp.zero < moment && moment < .distantFuture)
    }

    @Test func `sums saturate at both ends of time`() {
        let first = Timestamp(nanoseconds: .min)

        #expect(Timestamp.distantFuture + .nanoseconds(1) == .distantFuture)
        #expect(Timestamp.zero + .seconds(Int64.max) == .distantFuture)
        #expect(first + .nanoseconds(-1) == first)
        #expect(first - .nanoseconds(1) == first)
        #expect(Timestamp.distantFuture - .seconds(-1) == .distantFuture)
        #expect(Timestamp(nanoseconds: -1) - .nanoseconds(Int64.min) == .distantFuture)
    }

    @Test func `differences saturate, with the right sign`() {
        let first = Timestamp(nanoseconds: .min)

        #expect(Timestamp.distantFuture - first == .nanoseconds(Int64.max))
        #expect(first - Timestamp.distantFuture == .nanoseconds(Int64.min))
        let early = WallTime(nanosecondsSince1970: .min)
        let late = WallTime(nanosecondsSince1970: .max)
        #expect(late - early == .nanoseconds(Int64.max))
        #expect(early - late == .nanoseconds(Int64.min))
        #expect(late - WallTime(nanosecondsSince1970: .max - 1) == .nanoseconds(1))
        #expect(early < late)
    }

    @Test func `a duration is as many nanoseconds as 64 bits hold`() {
        #expect(Duration.seconds(1).nanoseconds == 1_000_000_000)
        #expect(Duration.milliseconds(-1_500).nanoseconds == -1_500_000_000)
        #expect(Duration.seconds(Int64.max).nanoseconds == .max)
        #expect(Duration.seconds(Int64.min).nanoseconds < -Int64.max / 2)
        #expect(Duration(secondsComponent: 0, attosecondsComponent: 999_999_999).nanoseconds == 0)
    }

    @Test func `a duration is a number of seconds`() {
        #expect(Duration.milliseconds(1_500).seconds == 1.5)
        #expect(Duration.milliseconds(-250).seconds == -0.25)
    }
}
