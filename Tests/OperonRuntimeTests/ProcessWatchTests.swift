import OperonModel
import Testing

@testable import OperonRuntime

/// What is done with a process, and when: decided without a process.
struct ProcessWatchTests {
    private func watch(timeout: Duration? = nil) -> ProcessWatch {
        ProcessWatch(startedAt: moment(0), timeout: timeout, grace: .seconds(10))
    }

    private func moment(_ seconds: Int64) -> Timestamp {
        Timestamp(nanoseconds: seconds * 1_000_000_000)
    }

    @Test func `a process without a bound has no deadline`() {
        #expect(watch().deadline == nil)
    }

    @Test func `the end of both streams and of the process finishes it, in any order`() {
        enum Fact: CaseIterable {
            case exit
            case first
            case second
        }
        let orders: [[Fact]] = [
            [.exit, .first, .second], [.first, .exit, .second], [.first, .second, .exit],
        ]
        for order in orders {
            var watch = watch()
            let steps = order.map { fact in
                switch fact {
                case .exit: watch.exited(at: moment(5))
                case .first, .second: watch.streamEnded()
                }
            }

            #expect(steps == [[], [], [.finish]])
            #expect(watch.deadline == nil)
            #expect(watch.endedAt == moment(5))
        }
    }

    @Test func `an open stream is given up when the drain time is over, and not before`() {
        var watch = watch()

        #expect(watch.exited(at: moment(5)) == [])
        #expect(watch.deadline == moment(6))
        #expect(watch.timePassed(Timestamp(nanoseconds: 5_999_999_999)) == [])
        #expect(watch.timePassed(moment(6)) == [.finish])
        #expect(watch.streamEnded() == [])
        #expect(watch.timePassed(moment(7)) == [])
        #expect(watch.deadline == nil)
    }

    @Test func `a timeout asks, the grace after it kills`() {
        var watch = watch(timeout: .seconds(5))

        #expect(watch.deadline == moment(5))
        #expect(watch.timePassed(Timestamp(nanoseconds: 4_999_999_999)) == [])
        #expect(watch.timePassed(moment(5)) == [.terminate])
        #expect(watch.stopReason == .timeout)
        #expect(watch.deadline == moment(15))
        #expect(watch.timePassed(moment(15)) == [.kill])
        #expect(watch.deadline == nil)
        #expect(watch.stopReason == .timeout)
    }

    @Test func `the first reason to stop stays`() {
        var cancelled = watch(timeout: .seconds(5))
        #expect(cancelled.requested(.cancel, at: moment(4)) == [.terminate])
        #expect(cancelled.timePassed(moment(5)) == [])
        #expect(cancelled.stopReason == .request)

        var timedOut = watch(timeout: .seconds(5))
        _ = timedOut.timePassed(moment(5))
        #expect(timedOut.requested(.cancel, at: moment(6)) == [])
        #expect(timedOut.requested(.kill, at: moment(6)) == [.kill])
        #expect(timedOut.stopReason == .timeout)
    }

    @Test func `a second request neither signals again nor moves the grace`() {
        var watch = watch()

        #expect(watch.requested(.cancel, at: moment(1)) == [.terminate])
        #expect(watch.requested(.cancel, at: moment(9)) == [])
        #expect(watch.deadline == moment(11))
        #expect(watch.requested(.kill, at: moment(10)) == [.kill])
        #expect(watch.requested(.kill, at: moment(10)) == [])
    }

    @Test func `nothing is signalled after the end`() {
        var watch = watch(timeout: .seconds(5))
        _ = watch.exited(at: moment(1))
        _ = watch.streamEnded()

        #expect(watch.requested(.cancel, at: moment(1)) == [])
        #expect(watch.requested(.kill, at: moment(1)) == [])
        #expect(watch.timePassed(Timestamp(nanoseconds: 1_500_000_000)) == [])
        #expect(watch.stopReason == nil)
    }
}
