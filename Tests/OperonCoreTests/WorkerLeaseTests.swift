import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// What a worker does about rights that run out, and what it says of its own past.
struct WorkerLeaseTests {
    private func held(_ number: UInt64) -> HeldAttempt { WorkerBench.held(number) }

    /// Runs an operation that holds keys for a minute without an answered beat.
    private func exclusive(_ numbers: [UInt64] = [1]) -> WorkerBench {
        var bench = WorkerBench(slots: 4)
        bench.join()
        bench.dispatch(numbers) { $0.exclusiveLease = .seconds(60) }
        bench.drain()
        return bench
    }

    @Test func `what holds keys is killed a second before its right ends`() {
        var bench = exclusive()
        bench.drive(.linkDown)

        bench.advance(by: .seconds(59) - .nanoseconds(1))
        #expect(bench.drain().stops.isEmpty)
        bench.advance(by: .nanoseconds(1))

        #expect(bench.drain().stops == [.kill(held(1).attempt)])
        bench.advance(by: .seconds(1))
        #expect(bench.drain().stops.isEmpty)
    }

    @Test func `it wakes up for that though nothing happens`() throws {
        var bench = exclusive()
        bench.drive(.linkDown)
        let wake = try #require(bench.drain().wakeAt)
        #expect(wake <= bench.now + .seconds(59))
        bench.advance(by: .seconds(10))
        #expect(try #require(bench.drain().wakeAt) == bench.now + .seconds(49))
    }

    @Test func `an answered beat makes the right longer`() {
        var bench = exclusive()
        for _ in 0..<40 {
            bench.advance(by: .seconds(2))
            bench.answer()
        }
        #expect(bench.drain().stops.isEmpty)
    }

    @Test func `what was killed for its right is given back, what ended by itself counts`() {
        var bench = exclusive([1, 2])
        bench.drive(.linkDown)
        bench.advance(by: .seconds(59))
        bench.drain()
        bench.end(1, .cancelled)
        bench.end(2)

        bench.drive(.linkUp(connection: 2))
        bench.welcome()

        let ends = bench.drain().events.filter { event in
            if case .started = event { false } else { true }
        }
        #expect(ends == [.returned(held(1)), .finished(held(2), bench.result())])
    }

    @Test func `what holds no key runs on`() {
        var bench = WorkerBench(slots: 4)
        bench.join()
        bench.dispatch([1])
        bench.drain()
        bench.drive(.linkDown)
        bench.advance(by: .seconds(3_600))
        #expect(bench.drain().stops.isEmpty)
    }

    @Test func `a start that is waited for is told at once`() {
        var bench = WorkerBench()
        bench.join()
        bench.dispatch([1]) { $0.announcesStart = true }
        #expect(bench.drain().events == [.started(held(1), at: bench.now)])
    }

    @Test func `a child process that died is reported as that`() {
        var bench = WorkerBench()
        bench.join()
        bench.dispatch([1])
        bench.drain()
        bench.end(1, .crashed)
        #expect(bench.drain().events == [.finished(held(1), bench.result(.crashed))])
    }

    @Test func `each hello names the state directory and the life before`() {
        var bench = WorkerBench {
            $0.workerID = "5f0e6c9a7b1d2c34"
            $0.predecessor = Incarnation(rawValue: 9)
        }
        bench.drive(.linkUp(connection: 1))
        let hellos = bench.drain().hellos
        #expect(hellos.map(\.worker) == ["5f0e6c9a7b1d2c34"])
        #expect(hellos.map(\.predecessor) == [Incarnation(rawValue: 9)])
    }
}
