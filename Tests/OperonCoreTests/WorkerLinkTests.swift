import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// Whom a worker believes, and how it leaves.
struct WorkerLinkTests {
    private func held(_ number: UInt64) -> HeldAttempt { WorkerBench.held(number) }

    // MARK: Hello

    @Test func `a hello is said again every beat until the welcome`() {
        var bench = WorkerBench(slots: 3)
        bench.drive(.linkUp(connection: 1))
        let first = bench.drain()
        #expect(
            first.hellos == [
                Hello(
                    sentAt: bench.now,
                    host: "bench",
                    processID: 1,
                    slots: 3,
                    queues: [],
                    kinds: Work.builtInKinds,
                    held: [],
                    firstEvent: 1,
                    lastEvent: 0,
                    isDraining: false
                )
            ]
        )
        #expect(first.messages.map(\.lane) == [.events])
        #expect(first.wakeAt == bench.now + .seconds(2))
        bench.advance(by: .seconds(2))
        #expect(bench.drain().hellos.count == 1)

        bench.welcome()
        let effects = bench.drain()
        #expect(effects.notices == [.welcomed(bench.reign, bench.epoch)])
        #expect(effects.beats.count == 1)
        bench.advance(by: .seconds(2))
        #expect(bench.drain().hellos.isEmpty)
    }

    @Test func `what it held before a cut is listed, and not started before the welcome`() {
        var bench = WorkerBench(slots: 1)
        bench.join()
        bench.dispatch([1, 2])
        bench.drive(.linkDown)
        bench.end(1)
        bench.drain()

        bench.sequence = 0
        bench.drive(.linkUp(connection: 2))
        #expect(bench.drain().hellos.map(\.held) == [[held(2)]])
        bench.welcome()
        let effects = bench.drain()
        #expect(effects.started == [2])
        #expect(effects.events.map(\.held) == [held(1)])
    }

    @Test func `the orders of a welcome are obeyed before anything is started`() {
        var bench = WorkerBench(slots: 1)
        bench.join()
        bench.dispatch([1, 2])
        bench.drive(.linkDown)
        bench.end(1)
        bench.sequence = 0
        bench.drive(.linkUp(connection: 2))
        bench.drain()

        bench.welcome(orders: [.stop(held(2))])

        #expect(bench.drain().starts.isEmpty)
    }

    @Test func `a second welcome of one connection changes nothing`() {
        var bench = WorkerBench()
        bench.join()
        bench.welcome()
        #expect(bench.drain().isEmpty)
    }

    @Test func `copies and old numbers of a connection are ignored`() {
        var bench = WorkerBench()
        bench.join()
        bench.dispatch([1])
        bench.drain()

        let number = bench.sequence
        bench.say(
            .dispatch(Dispatch(acknowledged: 0, operations: [WorkerBench.operation(2)])),
            sequence: number
        )
        #expect(bench.drain().isEmpty)
    }

    @Test func `silence for a lease asks for another connection, once a lease`() {
        var bench = WorkerBench()
        bench.join()
        bench.answer()
        for _ in 0..<3 {
            bench.advance(by: .seconds(2))
            #expect(!bench.effects.wantsReconnect)
        }
        bench.advance(by: .seconds(2))
        #expect(bench.drain().wantsReconnect)
        bench.advance(by: .seconds(2))
        #expect(!bench.drain().wantsReconnect)
    }

    @Test func `a refusal asks for another connection`() {
        var bench = WorkerBench()
        bench.join()
        bench.say(.refused(.newIncarnation))
        let effects = bench.drain()
        #expect(effects.wantsReconnect)
        #expect(effects.notices == [.refused(.newIncarnation)])
    }

    @Test func `a call for hellos is answered`() {
        var bench = WorkerBench()
        bench.join()
        bench.dispatch([1])
        bench.drain()
        bench.say(.resync, sequence: 0)
        #expect(bench.drain().hellos.map(\.held) == [[held(1)]])
    }

    // MARK: Epochs and reigns

    @Test func `what a lower epoch says is ignored`() {
        var bench = WorkerBench()
        bench.join()
        bench.epoch = Epoch(rawValue: 1)
        bench.dispatch([1])
        bench.order(.recall(held(9)))
        bench.welcome()
        #expect(bench.drain().isEmpty)
        #expect(bench.agent.epoch == Epoch(rawValue: 2))
    }

    @Test func `a higher epoch is greeted first: what waits is dropped, what runs is listed`() {
        var bench = WorkerBench(slots: 1)
        bench.join()
        bench.dispatch([1, 2])
        bench.drain()
        bench.epoch = Epoch(rawValue: 3)

        bench.dispatch([3])

        let effects = bench.drain()
        #expect(effects.hellos.map(\.held) == [[held(1)]])
        #expect(effects.notices == [.dispatchIgnored(held(3).attempt)])
        bench.end(1)
        #expect(bench.drain().isEmpty)
        bench.welcome()
        #expect(bench.agent.epoch == Epoch(rawValue: 3))
        #expect(bench.drain().events.map(\.held) == [held(1)])
    }

    @Test func `one that rules no more is not heard at all`() {
        var bench = WorkerBench()
        bench.join()
        bench.dispatch([1])
        bench.drain()
        bench.epoch = Epoch(rawValue: 1)

        bench.say(.resync, sequence: 0)
        bench.say(.refused(.newIncarnation), sequence: 0)
        bench.order(.stop(held(1)))

        let effects = bench.drain()
        #expect(effects.isEmpty && !effects.wantsReconnect)
    }

    @Test func `from the first word of a higher epoch on nothing of the lower one counts`() {
        var bench = WorkerBench(slots: 1)
        bench.join()
        bench.dispatch([1, 2])
        bench.drain()
        bench.epoch = Epoch(rawValue: 3)
        bench.say(.resync, sequence: 0)
        // What waits is listed: whoever rules now may know of it.
        #expect(bench.drain().hellos.map(\.held) == [[held(1), held(2)]])

        bench.epoch = Epoch(rawValue: 2)
        bench.welcome()
        #expect(bench.drain().isEmpty)

        bench.epoch = Epoch(rawValue: 3)
        bench.sequence = 0
        bench.welcome()
        #expect(bench.drain().notices == [.welcomed(bench.reign, Epoch(rawValue: 3))])
    }

    @Test func `an empty-handed worker follows another reign`() {
        var bench = WorkerBench()
        bench.join()
        bench.dispatch([1])
        bench.end(1)
        bench.answer(acknowledged: 1)
        bench.drain()
        bench.reign = Reign(rawValue: 99)
        bench.epoch = Epoch(rawValue: 1)
        bench.say(.resync, sequence: 0)
        #expect(bench.drain().hellos.count == 1)
        bench.sequence = 10
        bench.welcome()

        #expect(bench.agent.reign == Reign(rawValue: 99))
        bench.dispatch([1])
        bench.end(1)
        // Events of a new reign count from 1.
        #expect(bench.drain().batches.map(\.firstNumber) == [1])
    }

    @Test(arguments: [true, false])
    func `a worker that holds something is true to its reign until it was silent for long`(
        _ isRunning: Bool
    ) {
        var bench = WorkerBench()
        bench.join()
        bench.dispatch([1])
        if !isRunning { bench.end(1) }
        bench.drain()
        let old = bench.reign
        bench.reign = Reign(rawValue: 99)
        bench.now = bench.now + .seconds(60) - .nanoseconds(1)
        bench.say(.resync, sequence: 0)
        bench.welcome()
        #expect(bench.agent.reign == old)
        bench.drain()

        bench.now = bench.now + .nanoseconds(1)
        bench.say(.resync, sequence: 0)
        let effects = bench.drain()
        #expect(effects.notices == [.orphaned(old)])
        #expect(effects.stops == (isRunning ? [.kill(held(1).attempt)] : []))
        #expect(effects.hellos.map(\.held) == [[]])
        bench.sequence = 0
        bench.welcome()
        #expect(bench.agent.reign == Reign(rawValue: 99))
        if isRunning { bench.end(1, .cancelled) }
        #expect(bench.drain().events.isEmpty)
    }

    // MARK: Leaving

    @Test func `a draining worker says so at once, returns what waits and finishes the rest`() {
        var bench = WorkerBench(slots: 1)
        bench.join()
        bench.dispatch([1, 2, 3])
        bench.drain()

        bench.drive(.drainRequested(deadline: bench.now + .seconds(30)))

        var effects = bench.drain()
        #expect(effects.events == [.returned(held(2)), .returned(held(3))])
        #expect(effects.notices == [.draining(returned: 2, running: 1)])
        #expect(effects.beats.map(\.isDraining) == [true])
        #expect(effects.stops.isEmpty && !effects.wantsExit)

        bench.dispatch([4])
        #expect(bench.drain().events == [.returned(held(4))])
        bench.end(1)
        effects = bench.drain()
        #expect(effects.events == [.finished(held(1), bench.result())])
        #expect(!effects.wantsExit)
        bench.answer(acknowledged: 4)
        #expect(bench.drain().wantsExit)
    }

    @Test func `an idle worker leaves at once`() {
        var bench = WorkerBench()
        bench.join()
        bench.drive(.drainRequested(deadline: bench.now + .seconds(30)))
        #expect(bench.drain().wantsExit)
    }

    @Test func `without the last acknowledgement it leaves after five seconds`() {
        var bench = WorkerBench()
        bench.join()
        bench.dispatch([1])
        bench.drive(.drainRequested(deadline: bench.now + .seconds(30)))
        bench.end(1)
        bench.advance(by: .seconds(5) - .nanoseconds(1))
        #expect(!bench.drain().wantsExit)
        bench.advance(by: .nanoseconds(1))
        #expect(bench.drain().wantsExit)
    }

    @Test(arguments: [AttemptEnd.cancelled, .succeeded, .failed(.exit(code: 1))])
    func `what still runs at the deadline is ended and given back, unless it ended by itself`(
        _ end: AttemptEnd
    ) {
        var bench = WorkerBench()
        bench.join()
        bench.dispatch([1])
        bench.drive(.drainRequested(deadline: bench.now + .seconds(1)))
        bench.drain()
        bench.advance(by: .seconds(1))
        #expect(bench.drain().stops == [.cancel(held(1).attempt)])

        bench.end(1, end)

        let expected: WorkerEvent =
            end == .cancelled ? .returned(held(1)) : .finished(held(1), bench.result(end))
        #expect(bench.drain().events.last == expected)
    }

    @Test func `a second signal ends what runs at once, and gives it back`() {
        var bench = WorkerBench(slots: 2)
        bench.join()
        bench.dispatch([1, 2, 3])
        bench.drive(.drainRequested(deadline: bench.now + .seconds(30)))
        bench.drain()

        bench.drive(.stopRequested)
        let effects = bench.drain()
        #expect(effects.stops == [.kill(held(1).attempt), .kill(held(2).attempt)])
        #expect(!effects.wantsExit)

        bench.end(1, .cancelled)
        bench.end(2, .cancelled)
        #expect(bench.drain().events == [.returned(held(1)), .returned(held(2))])
        bench.answer(acknowledged: 3)
        #expect(bench.drain().wantsExit)
    }

    @Test func `a second signal waits a second for a coordinator that says nothing`() {
        var bench = WorkerBench()
        bench.join()
        bench.dispatch([1])
        bench.drive(.stopRequested)
        bench.end(1, .cancelled)
        bench.advance(by: .seconds(1) - .nanoseconds(1))
        #expect(!bench.drain().wantsExit)
        bench.advance(by: .nanoseconds(1))
        #expect(bench.drain().wantsExit)
    }

    @Test func `a second signal waits for nobody where there is no coordinator`() {
        var bench = WorkerBench()
        bench.join()
        bench.dispatch([1])
        bench.drive(.linkDown)
        bench.drain()

        bench.drive(.stopRequested)

        let effects = bench.drain()
        #expect(effects.stops == [.kill(held(1).attempt)])
        #expect(effects.wantsExit)
    }
}
