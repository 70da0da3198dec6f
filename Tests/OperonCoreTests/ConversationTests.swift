import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// The coordinator's side of hellos, beats and numbered events.
struct ConversationTests {
    private func dispatches(_ effects: Scheduler.Effects) -> [HeldAttempt] {
        effects.messages.flatMap { message -> [HeldAttempt] in
            guard case .dispatch(_, let grants) = message.body else { return [] }
            return grants.map(\.held)
        }
    }

    private func batch(
        _ bench: SchedulerBench,
        from number: UInt64,
        _ events: [WorkerEvent]
    ) -> WorkerMessage {
        .events(EventBatch(firstNumber: number, sentAt: bench.now.monotonic, events: events))
    }

    @Test func `connecting calls all workers, and a hello is welcomed with the settings`() {
        var bench = SchedulerBench(connected: false)
        bench.drive(.transportUp)
        #expect(bench.drain().messages.map(\.body) == [.plain(.resync)])

        bench.join(slots: 3)

        let effects = bench.drain()
        let configuration = bench.scheduler.configuration
        #expect(
            effects.messages == [
                Scheduler.Message(
                    destination: .worker(
                        WorkerAddress(incarnation: Incarnation(rawValue: 1), connection: 1)
                    ),
                    sequence: 1,
                    body: .plain(
                        .welcome(
                            Welcome(
                                answers: bench.now.monotonic,
                                lease: configuration.lease,
                                beat: configuration.beat,
                                eventWindow: configuration.eventWindow,
                                orphanAfter: configuration.orphanAfter,
                                acknowledged: 0
                            )
                        )
                    )
                )
            ]
        )
        #expect(
            effects.notices == [.workerJoined(bench.workers[0].identity, host: "bench", slots: 3)]
        )
        #expect(effects.records.isEmpty)
    }

    @Test func `a stranger's message is answered by a call for its hello`() {
        var bench = SchedulerBench()
        bench.join()
        bench.drain()
        bench.send(
            .beat(Beat(sentAt: .zero, received: 0, sent: 0, held: [], isDraining: false)),
            from: 0,
            reign: Reign(rawValue: 99)
        )
        #expect(bench.drain().messages.map(\.body) == [.plain(.resync)])
    }

    @Test func `a worker that holds something of another reign is not welcomed`() {
        var bench = SchedulerBench()
        bench.join()
        bench.drain()
        let other = Reign(rawValue: 99)
        let held = HeldAttempt(
            attempt: AttemptID(epoch: Epoch(rawValue: 3), number: 4),
            operation: OperationID(graph: GraphID(rawValue: 0), index: 0)
        )

        bench.hello(from: 0, connection: 2, reign: other, held: [held])

        let effects = bench.drain()
        #expect(effects.messages.map(\.body) == [.plain(.resync)])
        #expect(effects.notices == [.workerBusy(bench.workers[0].identity, other)])
    }

    @Test func `a worker with unacknowledged results of another reign is not welcomed`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        bench.finish("a")
        bench.drain()

        bench.hello(from: 0, connection: 2, reign: Reign(rawValue: 99), firstEvent: 1)
        #expect(bench.drain().messages.map(\.body) == [.plain(.resync)])
        bench.hello(from: 0, connection: 2, reign: Reign(rawValue: 99))
        #expect(bench.drain().messages.count == 1)
    }

    @Test func `messages of an older connection are ignored, and its hello is refused`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        let held = bench.attempt("a").held
        bench.hello(from: 0, connection: 2, held: [held])
        bench.drain()

        let finished = WorkerEvent.finished(held, bench.result(.succeeded))
        bench.send(batch(bench, from: 1, [finished]), from: 0, connection: 1)
        #expect(bench.drain().messages.isEmpty)
        #expect(bench.state("a") == .dispatched)

        let hello = Hello(
            sentAt: .zero,
            host: "",
            processID: 1,
            slots: 9,
            queues: [],
            kinds: [],
            held: [],
            firstEvent: 1,
            lastEvent: 0,
            isDraining: false
        )
        bench.send(.hello(hello), from: 0, connection: 1)
        #expect(bench.drain().messages.map(\.body) == [.plain(.refused(.newIncarnation))])
        #expect(bench.scheduler.slotCount == 1)
    }

    @Test func `a coordinator takes no more workers than its limit, until one is gone`() throws {
        var configuration = SchedulerBench.noReadAhead
        configuration.limits.workers = 2
        var bench = SchedulerBench(configuration)
        bench.join()
        bench.join()
        bench.drain()
        bench.join()
        #expect(bench.drain().messages.map(\.body) == [.plain(.refused(.tooManyWorkers))])
        #expect(bench.scheduler.slotCount == 2)
        // Those that are there may come back on another connection.
        bench.hello(from: 1, connection: 2)
        #expect(bench.scheduler.slotCount == 2)

        bench.advance(by: .seconds(5))
        bench.beat(from: 1)
        bench.advance(by: .seconds(1))
        bench.drain()
        bench.hello(from: 2)
        let welcomes = bench.drain().messages.filter { message in
            if case .plain(.welcome) = message.body { true } else { false }
        }
        #expect(welcomes.count == 1)
    }

    // MARK: Events

    @Test func `events are handled once, in order, and not behind a gap`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 3)
        try bench.submit([.nothing("a"), .nothing("b"), .nothing("c")])
        let events = ["a", "b", "c"].map {
            WorkerEvent.finished(bench.attempt($0).held, bench.result(.succeeded))
        }
        bench.drain()

        bench.send(batch(bench, from: 1, [events[0]]), from: 0)
        bench.send(batch(bench, from: 3, [events[2]]), from: 0)
        #expect(bench.finished == ["a"])
        bench.send(batch(bench, from: 1, events), from: 0)
        #expect(bench.finished == ["a", "b", "c"])
        #expect(bench.drain().notices.filter { $0 == .eventRefused(events[0].held.attempt) } == [])
        bench.send(batch(bench, from: 1, events), from: 0)
        #expect(bench.drain().records.isEmpty)
    }

    @Test func `a gap is asked for when two beats have shown no progress`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        bench.drain()

        bench.beat(from: 0, sent: 2)
        #expect(controls(bench.drain()).map(\.resendFrom) == [nil])
        bench.beat(from: 0, sent: 2)
        #expect(controls(bench.drain()).map(\.resendFrom) == [1])

        let held = bench.attempt("a").held
        bench.send(
            batch(
                bench,
                from: 1,
                [.started(held, at: .zero), .finished(held, bench.result(.succeeded))]
            ),
            from: 0
        )
        bench.beat(from: 0, sent: 2, held: [])
        let control = controls(bench.drain())
        #expect(control.map(\.resendFrom) == [nil])
        #expect(control.map(\.acknowledged) == [2])
    }

    @Test func `half a window of events is acknowledged at once`() throws {
        var configuration = SchedulerBench.noReadAhead
        configuration.eventWindow = 1_000
        var bench = SchedulerBench(configuration)
        bench.join(slots: 2)
        try bench.submit([.nothing("a"), .nothing("b")])
        bench.drain()
        var result = bench.result(.succeeded)
        result.log.tail = Array(repeating: 0, count: 400)

        bench.send(batch(bench, from: 1, [.finished(bench.attempt("a").held, result)]), from: 0)
        #expect(bench.drain().messages.isEmpty)
        bench.send(batch(bench, from: 2, [.finished(bench.attempt("b").held, result)]), from: 0)
        #expect(controls(bench.drain()).map(\.acknowledged) == [2])
    }

    /// Many workers share the bytes of all windows: what they fill is less than the window that is
    /// configured.
    @Test func `half of the window that a worker was told is acknowledged at once`() throws {
        var configuration = SchedulerBench.noReadAhead
        configuration.eventWindow = 1_000
        configuration.limits.eventBytes = 1_200
        var bench = SchedulerBench(configuration)
        for _ in 0..<3 { bench.join(kinds: []) }
        bench.join(slots: 2)
        let told = bench.drain().messages.compactMap { message -> UInt32? in
            guard case .plain(.welcome(let welcome)) = message.body else { return nil }
            return welcome.eventWindow
        }
        #expect(told == [1_000, 600, 400, 300])
        try bench.submit([.nothing("a"), .nothing("b")])
        bench.drain()
        var result = bench.result(.succeeded)
        result.log.tail = Array(repeating: 0, count: 50)

        bench.send(batch(bench, from: 1, [.finished(bench.attempt("a").held, result)]), from: 3)
        #expect(bench.drain().messages.isEmpty)
        bench.send(batch(bench, from: 2, [.finished(bench.attempt("b").held, result)]), from: 3)
        #expect(controls(bench.drain()).map(\.acknowledged) == [2])
    }

    @Test func `an event about somebody else's attempt is refused`() throws {
        var bench = SchedulerBench()
        bench.join()
        bench.join()
        try bench.submit([.nothing("a")])
        let held = bench.attempt("a").held
        bench.drain()

        bench.send(.finished(held, bench.result(.succeeded)), from: 1)

        #expect(bench.drain().notices == [.eventRefused(held.attempt)])
        #expect(bench.state("a") == .dispatched)
    }

    @Test func `numbers from outside cannot trap the scheduler`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        let ghost = HeldAttempt(
            attempt: AttemptID(epoch: Epoch(rawValue: .max), number: .max),
            operation: OperationID(graph: GraphID(rawValue: .max), index: .max)
        )
        let extreme = AttemptResult(
            end: .succeeded,
            startedAt: Timestamp(nanoseconds: .min),
            endedAt: Timestamp(nanoseconds: .max)
        )
        let moments = [Timestamp(nanoseconds: .min), Timestamp(nanoseconds: .max)]
        for number in [UInt64.max, 0, UInt64.max - 1] {
            for moment in moments {
                bench.send(
                    .events(
                        EventBatch(
                            firstNumber: number,
                            sentAt: moment,
                            events: [.started(ghost, at: moment), .finished(ghost, extreme)]
                        )
                    ),
                    from: 0
                )
            }
        }
        bench.send(
            .beat(
                Beat(sentAt: .zero, received: .max, sent: .max, held: [ghost], isDraining: false)
            ),
            from: 0
        )
        bench.beat(from: 0)
        bench.hello(from: 0, held: [ghost], firstEvent: .max)
        bench.send(
            batch(bench, from: .max, [.returned(ghost), .returned(ghost), .returned(ghost)]),
            from: 0
        )
        let held = HeldAttempt(attempt: ghost.attempt, operation: bench.id("a"))
        bench.beat(from: 0, held: [held])

        #expect(bench.state("a") == .dispatched)
        #expect(bench.takeOrders(of: 0).contains(.stop(held)))
    }

    @Test func `extreme times of a true event cannot trap the scheduler`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        let result = AttemptResult(
            end: .succeeded,
            startedAt: Timestamp(nanoseconds: .max),
            endedAt: Timestamp(nanoseconds: .min)
        )
        bench.send(
            .events(
                EventBatch(
                    firstNumber: 1,
                    sentAt: Timestamp(nanoseconds: .min),
                    events: [.finished(bench.attempt("a").held, result)]
                )
            ),
            from: 0
        )
        #expect(bench.outcome("a") == .succeeded)
    }

    // MARK: Beats

    @Test func `what a beat should list and does not is sent again under a new number`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        let held = bench.attempt("a").held
        let sequence = bench.workers[0].received
        bench.drain()

        bench.beat(from: 0, held: [])

        let effects = bench.drain()
        #expect(dispatches(effects) == [held])
        #expect(effects.messages.allSatisfy { $0.sequence > sequence })
        #expect(effects.records.isEmpty)
        #expect(bench.scheduler.attemptCount(of: held.operation) == 1)
    }

    @Test func `a coordinator that leaves sends nothing again that it had stopped`() throws {
        // Its workers answer the order with a beat that does not list it.
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a"), .nothing("b")])
        bench.start("a")
        bench.drive(.shutdownRequested(kill: true))
        #expect(bench.takeOrders(of: 0) == [.stop(bench.attempt("a").held)])
        bench.drain()

        bench.beat(from: 0, held: [])

        #expect(dispatches(bench.drain()) == [])
    }

    @Test func `what is in flight, listed or under recall is not sent again`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 3)
        try bench.submit([.nothing("listed"), .nothing("recalled"), .nothing("flying")])
        bench.suspend(.operation(bench.id("recalled")))
        // The number of the recall; the dispatches came before it.
        let flying = bench.workers[0].received
        bench.drain()

        bench.beat(from: 0, received: flying - 2, held: [bench.attempt("listed").held])
        #expect(dispatches(bench.drain()) == [])

        bench.beat(from: 0, received: flying, held: [bench.attempt("listed").held])
        #expect(dispatches(bench.drain()) == [bench.attempt("flying").held])
    }

    @Test func `a beat is judged only when all events that it names are handled`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        let held = bench.attempt("a").held
        bench.drain()

        // Its end is on the way, and overtaken by the beat.
        bench.beat(from: 0, sent: 1, held: [])
        #expect(dispatches(bench.drain()) == [])
        bench.send(batch(bench, from: 1, [.finished(held, bench.result(.succeeded))]), from: 0)

        let effects = bench.drain()
        #expect(dispatches(effects) == [])
        #expect(bench.outcome("a") == .succeeded)
    }

    @Test func `a hello is judged behind its events too, and what it lacks goes out again`() throws
    {
        var bench = SchedulerBench()
        bench.join(slots: 2)
        try bench.submit([.nothing("done"), .nothing("lost")])
        let done = bench.attempt("done").held
        let lost = bench.attempt("lost").held
        bench.drain()

        // One has ended, but its event was lost with the connection; the other never came.
        let event = WorkerEvent.finished(done, bench.result(.succeeded))
        bench.send(
            .hello(
                Hello(
                    sentAt: bench.now.monotonic,
                    host: "",
                    processID: 1,
                    slots: 2,
                    queues: [],
                    kinds: ["nothing"],
                    held: [],
                    firstEvent: 1,
                    lastEvent: 1,
                    isDraining: false
                )
            ),
            from: 0,
            connection: 2
        )
        #expect(dispatches(bench.drain()) == [])
        bench.send(batch(bench, from: 1, [event]), from: 0, connection: 2)
        #expect(dispatches(bench.drain()) == [lost])
        #expect(bench.outcome("done") == .succeeded)
    }

    @Test func `an answer to a beat carries its time, the acknowledgement and an end to strangers`()
        throws
    {
        var bench = SchedulerBench()
        bench.join()
        bench.drain()
        let stranger = HeldAttempt(
            attempt: AttemptID(epoch: Epoch(rawValue: 1), number: 77),
            operation: OperationID(graph: GraphID(rawValue: 0), index: 0)
        )

        bench.beat(from: 0, held: [stranger])

        #expect(
            controls(bench.drain()) == [
                Control(
                    answers: bench.now.monotonic,
                    acknowledged: 0,
                    orders: [.stop(stranger)]
                )
            ]
        )
    }

    @Test func `several grants share a message up to the configured number`() throws {
        var configuration = Scheduler.Configuration()
        configuration.operationsPerMessage = 3
        var bench = SchedulerBench(configuration)
        bench.join(slots: 5)
        bench.drain()

        try bench.submit((0..<5).map { number in .nothing("o\(number)") })

        let sizes = bench.drain().messages.map { message in
            if case .dispatch(_, let grants) = message.body { grants.count } else { 0 }
        }
        #expect(sizes == [3, 2])
    }

    @Test func `a worker that comes back from another reign counts its events from one`() throws {
        var bench = SchedulerBench()
        let worker = bench.join()
        try bench.submit([.nothing("a"), .nothing("b"), .nothing("c")])
        bench.finish("a")
        bench.finish("b")
        bench.giveBack("c")
        bench.advance(by: .seconds(7))

        bench.helloAfterAnotherReign(from: worker, connection: 2)
        bench.finish("c")

        #expect(bench.outcome("c") == .succeeded)
    }

    @Test func `an attempt that cannot be sent is stored as ended before its operation is`() throws
    {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        let held = bench.attempt("a").held
        bench.drain()

        bench.drive(.attemptUnsendable(held, .timeout))

        #expect(
            bench.effects.records == [
                .attemptEnded(held.attempt, bench.id("a"), .failed(.timeout)),
                .finished(bench.id("a"), .failed(.timeout)),
            ]
        )
    }
}
