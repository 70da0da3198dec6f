import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// What a worker starts, and what it tells about it.
struct WorkerAgentTests {
    private func held(_ number: UInt64) -> HeldAttempt { WorkerBench.held(number) }

    // MARK: Starting

    @Test func `what was dispatched is started while there are slots`() {
        var bench = WorkerBench(slots: 2)
        bench.join()

        bench.dispatch([1, 2, 3])

        #expect(bench.effects.started == [1, 2])
        bench.drain()
        bench.end(2)
        let effects = bench.drain()
        #expect(effects.started == [3])
        #expect(effects.events == [.finished(held(2), bench.result())])
        #expect(effects.messages.count == 1)
        #expect(effects.stops.isEmpty && effects.notices.isEmpty)
    }

    @Test func `the order of starts is priority, then rank, then arrival`() {
        var bench = WorkerBench(slots: 1)
        bench.join()
        bench.dispatch([1])
        bench.dispatch([2, 3])
        bench.dispatch([4]) { $0.rank = 9 }
        bench.dispatch([5]) { $0.priority = .high }
        bench.dispatch([6]) {
            $0.priority = .low
            $0.rank = 99
        }

        for number: UInt64 in [1, 5, 4, 2, 3] { bench.end(number) }

        #expect(bench.effects.started == [1, 5, 4, 2, 3, 6])
    }

    @Test func `nothing starts between a hello and the welcome, and dispatches are dropped`() {
        var bench = WorkerBench()
        bench.join()
        bench.drive(.linkDown)
        bench.drive(.linkUp(connection: 2))
        bench.drain()

        bench.dispatch([1])

        let effects = bench.drain()
        #expect(effects.starts.isEmpty)
        #expect(effects.notices == [.dispatchIgnored(held(1).attempt)])
        bench.welcome()
        #expect(bench.drain().starts.isEmpty)
    }

    @Test func `a copy of what it holds or has finished is not started again`() {
        var bench = WorkerBench()
        bench.join()
        bench.dispatch([1])
        bench.drain()

        bench.dispatch([1])
        #expect(bench.drain().notices == [.dispatchIgnored(held(1).attempt)])
        bench.end(1)
        bench.drain()
        bench.dispatch([1])
        let effects = bench.drain()
        #expect(effects.starts.isEmpty)
        #expect(effects.notices == [.dispatchIgnored(held(1).attempt)])
    }

    @Test func `a copy that comes with the acknowledgement of its end is not started again`() {
        var bench = WorkerBench()
        bench.join()
        bench.dispatch([1])
        bench.end(1)
        bench.drain()

        // The coordinator has joined a copy and a later operation, which acknowledges the end.
        bench.dispatch([1, 2], acknowledged: 1)

        let effects = bench.drain()
        #expect(effects.started == [2])
        #expect(effects.notices == [.dispatchIgnored(held(1).attempt)])
    }

    @Test func `nothing starts on a lease with less than a second left`() {
        var bench = WorkerBench(slots: 1)
        bench.join()
        bench.dispatch([1, 2])
        bench.drain()
        // The last answer is to what left five seconds ago.
        bench.now = bench.now + .seconds(5)

        bench.end(1)

        let effects = bench.drain()
        #expect(effects.starts.isEmpty)
        #expect(effects.notices == [.leaseExpired(dropped: 1)])
        #expect(effects.hellos.map(\.held) == [[]])
        bench.welcome(acknowledged: 1)
        bench.dispatch([2], acknowledged: 1)
        #expect(bench.effects.started == [2])
    }

    @Test func `an answered beat renews the right to start`() {
        var bench = WorkerBench(slots: 1)
        bench.join()
        bench.dispatch([1, 2])
        for _ in 0..<5 {
            bench.advance(by: .seconds(2))
            bench.answer()
        }
        bench.drain()

        bench.now = bench.now + .seconds(5) - .nanoseconds(1)
        bench.end(1)

        #expect(bench.effects.started == [2])
    }

    @Test func `a worker that keeps too many results starts nothing more`() {
        var bench = WorkerBench(slots: 1) { $0.limits.retainedBytes = 1_000 }
        bench.join()
        bench.dispatch([1, 2, 3])
        bench.end(1, output: 900)
        #expect(bench.effects.started == [1, 2])
        bench.end(2, output: 900)
        #expect(bench.effects.started == [1, 2])

        bench.answer(acknowledged: 2)
        #expect(bench.effects.started == [1, 2, 3])
    }

    // MARK: Events

    @Test func `a long run reports its start, a short one only its end`() {
        var bench = WorkerBench()
        bench.join()
        let start = bench.now
        bench.dispatch([1, 2])
        bench.end(2)
        #expect(bench.effects.events == [.finished(held(2), bench.result())])
        #expect(bench.effects.wakeAt == start + .milliseconds(100))
        bench.drain()

        bench.advance(by: .milliseconds(100))
        #expect(bench.drain().events == [.started(held(1), at: start)])
        bench.advance(by: .milliseconds(100))
        #expect(bench.drain().isEmpty)
    }

    @Test func `events are numbered, and kept until they are acknowledged`() {
        var bench = WorkerBench()
        bench.join()
        bench.dispatch([1, 2])
        bench.end(1)
        bench.end(2)
        #expect(bench.effects.batches.map(\.firstNumber) == [1, 2])

        bench.answer(acknowledged: 1)
        bench.drain()
        bench.drive(.linkDown)
        bench.drive(.linkUp(connection: 2))
        let hello = bench.drain().hellos
        #expect(hello.map(\.firstEvent) == [2] && hello.map(\.lastEvent) == [2])
        bench.sequence = 0
        bench.welcome(acknowledged: 1)
        let batches = bench.drain().batches
        #expect(batches.map(\.firstNumber) == [2])
        #expect(batches.first?.events.map(\.held) == [held(2)])
    }

    @Test func `a number that is asked for is sent again, and what follows it`() {
        var bench = WorkerBench(slots: 3)
        bench.join()
        bench.dispatch([1, 2, 3])
        for number: UInt64 in 1...3 { bench.end(number) }
        bench.drain()

        bench.say(.control(Control(acknowledged: 1, resendFrom: 2)))

        let batches = bench.drain().batches
        #expect(batches.map(\.firstNumber) == [2])
        #expect(batches.first?.events.map(\.held) == [held(2), held(3)])
    }

    @Test func `asking for what is forgotten, or not yet sent, does no harm`() {
        var bench = WorkerBench()
        bench.join()
        bench.dispatch([1])
        bench.end(1)
        bench.drain()
        for number in [0, 9, UInt64.max] {
            bench.say(.control(Control(acknowledged: 0, resendFrom: number)))
            #expect(bench.drain().messages.isEmpty)
        }
        bench.say(.control(Control(acknowledged: .max)))
        bench.say(.control(Control(acknowledged: 0, resendFrom: 1)))
        #expect(bench.drain().messages.isEmpty)
    }

    @Test func `no more than a window is in flight, but one event may exceed it`() {
        var bench = WorkerBench(slots: 3)
        bench.drive(.linkUp(connection: 1))
        bench.welcome(window: 1_000)
        bench.drain()
        bench.dispatch([1, 2, 3])
        bench.drain()

        bench.end(1, output: 5_000)
        #expect(bench.drain().events.count == 1)
        bench.end(2, output: 600)
        bench.end(3, output: 600)
        #expect(bench.drain().events.isEmpty)

        bench.answer(acknowledged: 1)
        #expect(bench.drain().events.map(\.held) == [held(2)])
        bench.answer(acknowledged: 2)
        #expect(bench.drain().events.map(\.held) == [held(3)])
    }

    @Test func `a beat lists what has no final event among those sent`() {
        var bench = WorkerBench(slots: 2)
        bench.drive(.linkUp(connection: 1))
        bench.welcome(window: 100)
        bench.dispatch([1, 2, 3])
        bench.end(1, output: 500)
        bench.end(2, output: 500)
        bench.drain()

        bench.advance(by: .seconds(2))

        let beats = bench.drain().beats
        #expect(beats.map(\.sent) == [1])
        #expect(beats.map(\.received) == [2])
        // 2 has ended, but its event waits for room.
        #expect(beats.first.map { Set($0.held) } == [held(2), held(3)])
    }

    @Test func `4,096 slots are filled and emptied`() {
        var bench = WorkerBench(slots: 4_096)
        bench.join()
        let numbers = Array(UInt64(1)...4_096)
        bench.dispatch(numbers)
        #expect(bench.effects.started == numbers)
        bench.drain()
        for number in numbers.reversed() { bench.end(number) }
        #expect(bench.effects.events.count == 4_096)
        bench.advance(by: .seconds(2))
        #expect(bench.drain().beats.map(\.held) == [[]])
    }

    // MARK: Orders

    @Test func `a recall returns what waits, and what it never saw`() {
        var bench = WorkerBench(slots: 1)
        bench.join()
        bench.dispatch([1, 2])
        bench.drain()

        bench.order(.recall(held(2)), .recall(held(9)))

        #expect(bench.drain().events == [.returned(held(2)), .returned(held(9))])
        bench.dispatch([9])
        bench.end(1)
        #expect(bench.drain().starts.isEmpty)
    }

    @Test func `a recall of what runs is answered by its start, at once`() {
        var bench = WorkerBench(slots: 1)
        bench.join()
        bench.dispatch([1])
        bench.drain()

        bench.order(.recall(held(1)))

        let effects = bench.drain()
        #expect(effects.events == [.started(held(1), at: bench.now)])
        #expect(effects.stops.isEmpty)
        bench.order(.recall(held(1)))
        #expect(bench.drain().isEmpty)
    }

    @Test func `a recall of what has ended is answered by its end`() {
        var bench = WorkerBench(slots: 1)
        bench.join()
        bench.dispatch([1])
        bench.end(1)
        bench.drain()

        bench.order(.recall(held(1)), .cancel(held(1)))

        #expect(bench.drain().isEmpty)
    }

    @Test func `a cancel asks what runs to stop, and its end is reported as it was`() {
        var bench = WorkerBench(slots: 1)
        bench.join()
        bench.dispatch([1])
        bench.drain()

        bench.order(.cancel(held(1)))
        #expect(bench.drain().stops == [.cancel(held(1).attempt)])
        bench.end(1, .succeeded)
        #expect(bench.drain().events == [.finished(held(1), bench.result(.succeeded))])
    }

    @Test func `what it is told to stop is killed, and its end interests nobody`() {
        var bench = WorkerBench(slots: 1)
        bench.join()
        bench.dispatch([1, 2])
        bench.drain()

        bench.order(.stop(held(1)), .stop(held(2)), .stop(held(7)))
        let effects = bench.drain()
        #expect(effects.stops == [.kill(held(1).attempt)])
        // The next coordinator must know that it had started: its number is not used again.
        #expect(effects.events.map(\.held) == [held(1)])
        bench.advance(by: .seconds(2))
        #expect(bench.drain().beats.map(\.held) == [[]])
        bench.end(1, .cancelled)
        #expect(bench.drain().isEmpty)
    }
}
