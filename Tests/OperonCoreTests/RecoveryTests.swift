import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// What a coordinator that died finds again, and what its workers notice of it.
struct RecoveryTests {
    private let graph = GraphID(rawValue: 0)

    private func id(_ number: UInt64, epoch: UInt32 = 2) -> AttemptID {
        AttemptID(epoch: Epoch(rawValue: epoch), number: number)
    }

    /// One worker with one slot that runs “a”; “b” waits.
    private func running() throws -> RestartBench {
        var coordinator = RestartBench()
        coordinator.bench.join()
        try coordinator.bench.submit([.nothing("a"), .nothing("b")])
        coordinator.bench.start("a")
        return coordinator
    }

    // MARK: Attempts in flight

    @Test func `what runs goes on undisturbed, and is not run again`() throws {
        var coordinator = try running()
        let held = coordinator.bench.attempt("a").held
        #expect(try coordinator.restart() == nil)
        #expect(coordinator.bench.state("a") == .executing)
        coordinator.bench.drive(.transportUp)
        try coordinator.keep()

        coordinator.bench.hello(from: 0, held: [held])
        let effects = try coordinator.keep()
        #expect(effects.records.isEmpty)
        #expect(effects.messages.count == 1)  // The welcome.
        #expect(coordinator.bench.takeOrders(of: 0).isEmpty)

        coordinator.bench.finish("a")
        let next = AttemptID(epoch: Epoch(rawValue: 2), number: 1)
        let worker = coordinator.bench.workers[0].identity.incarnation
        #expect(
            try coordinator.keep().records == [
                .finished(held.operation, .succeeded),
                .granted(next, coordinator.bench.id("b"), ordinal: 1, to: worker),
            ]
        )
    }

    @Test func `what its owner never got is published to it again, under its old number`() throws {
        var coordinator = RestartBench()
        coordinator.bench.join()
        try coordinator.bench.submit([.nothing("a")])
        let held = coordinator.bench.attempt("a").held
        coordinator.bench.lose("a")
        #expect(try coordinator.restart() == nil)
        coordinator.bench.drive(.transportUp)
        try coordinator.keep()

        coordinator.bench.hello(from: 0)

        let effects = try coordinator.keep()
        #expect(effects.records.isEmpty)
        #expect(coordinator.bench.attempt("a").held == held)
        #expect(effects.messages.map(\.sequence) == [1, 2])
    }

    @Test func `what was stopped as the last coordinator left runs under a new number`() throws {
        // It was published again under its old one, under which it had run.
        var coordinator = try running()
        let held = coordinator.bench.attempt("a").held
        coordinator.bench.drive(.shutdownRequested(kill: true))
        #expect(try coordinator.restart() == nil)
        coordinator.bench.drive(.transportUp)
        try coordinator.keep()

        coordinator.bench.hello(from: 0, held: [])

        let worker = coordinator.bench.workers[0].identity.incarnation
        #expect(
            try coordinator.keep().records == [
                .attemptEnded(held.attempt, held.operation, .returned),
                .granted(id(1), held.operation, ordinal: 2, to: worker),
            ]
        )
    }

    @Test func `a result that its worker held meanwhile is taken`() throws {
        var coordinator = try running()
        let held = coordinator.bench.attempt("a").held
        #expect(try coordinator.restart() == nil)
        coordinator.bench.drive(.transportUp)
        try coordinator.keep()

        // Events 1 and 2 are not acknowledged: the start, and the end.
        coordinator.bench.hello(from: 0, firstEvent: 1, lastEvent: 2)
        #expect(try coordinator.keep().records.isEmpty)
        coordinator.bench.send(
            .events(
                EventBatch(
                    firstNumber: 1,
                    sentAt: coordinator.bench.now.monotonic,
                    events: [
                        .started(held, at: coordinator.bench.now.monotonic),
                        .finished(held, result),
                    ]
                )
            ),
            from: 0
        )

        let effects = try coordinator.keep()
        #expect(effects.records.first == .finished(held.operation, .succeeded))
        #expect(coordinator.bench.outcome("a") == .succeeded)
        #expect(coordinator.bench.scheduler.attemptCount(of: held.operation) == 1)
    }

    @Test func `what was stored and not acknowledged is refused and acknowledged`() throws {
        var coordinator = try running()
        let held = coordinator.bench.attempt("a").held
        coordinator.bench.finish("a")
        #expect(try coordinator.restart() == nil)
        coordinator.bench.drive(.transportUp)
        coordinator.bench.hello(from: 0, held: coordinator.bench.workers[0].held, firstEvent: 1)
        try coordinator.keep()

        coordinator.bench.send(
            .events(
                EventBatch(
                    firstNumber: 1,
                    sentAt: coordinator.bench.now.monotonic,
                    events: [
                        .started(held, at: coordinator.bench.now.monotonic),
                        .finished(held, result),
                    ]
                )
            ),
            from: 0
        )

        #expect(try coordinator.keep().records.isEmpty)
        coordinator.bench.beat(from: 0)
        #expect(controls(try coordinator.keep()).map(\.acknowledged) == [2])
    }

    private var result: AttemptResult {
        AttemptResult(end: .succeeded, startedAt: .zero, endedAt: .zero)
    }

    @Test(arguments: [Duration.zero, .seconds(86_400)])
    func `an owner that does not come back is given up a lease after it could be heard`(
        _ outage: Duration
    ) throws {
        var coordinator = RestartBench()
        coordinator.bench.join()
        try coordinator.bench.submit([.nothing("a")])
        let held = coordinator.bench.attempt("a").held
        #expect(try coordinator.restart() == nil)
        coordinator.bench.advance(by: outage)
        #expect(coordinator.bench.state("a") == .dispatched)

        coordinator.bench.drive(.transportUp)
        coordinator.bench.advance(by: .seconds(6) - .nanoseconds(1))
        #expect(coordinator.bench.state("a") == .dispatched)
        coordinator.bench.advance(by: .nanoseconds(1))

        #expect(coordinator.bench.state("a") == .ready)
        try coordinator.keep()
        coordinator.bench.join()
        let other = coordinator.bench.workers[1].identity.incarnation
        #expect(
            try coordinator.keep().records == [
                .granted(id(1), held.operation, ordinal: 2, to: other)
            ]
        )
    }

    @Test func `an owner that comes back after it was given up is given work again`() throws {
        var coordinator = RestartBench()
        coordinator.bench.join()
        try coordinator.bench.submit([.nothing("a")])
        coordinator.bench.lose("a")
        #expect(try coordinator.restart() == nil)
        coordinator.bench.drive(.transportUp)
        coordinator.bench.advance(by: .seconds(6))
        #expect(coordinator.bench.state("a") == .ready)
        try coordinator.keep()

        coordinator.bench.hello(from: 0)

        #expect(coordinator.bench.granted == ["a"])
    }

    @Test func `a key stays with its holder for a whole exclusive lease of the new epoch`() throws {
        var coordinator = RestartBench()
        coordinator.bench.join()
        try coordinator.bench.submit([.nothing("a") { $0.exclusive = ["db"] }])
        #expect(try coordinator.restart() == nil)
        coordinator.bench.advance(by: .seconds(3_600))
        coordinator.bench.drive(.transportUp)
        coordinator.bench.join()
        try coordinator.keep()
        for _ in 0..<29 {
            coordinator.bench.advance(by: .seconds(2))
            coordinator.bench.beat(from: 1)
        }
        #expect(coordinator.bench.granted.isEmpty)
        coordinator.bench.advance(by: .seconds(2))
        #expect(coordinator.bench.granted == ["a"])
    }

    @Test func `limits and keys count what is not located yet`() throws {
        var coordinator = RestartBench()
        coordinator.bench.join(slots: 4)
        try coordinator.bench.submit(
            [
                .nothing("a") { $0.exclusive = ["db"] }, .nothing("b"), .nothing("c"),
                .nothing("d") {
                    $0.exclusive = ["db"]
                    $0.queue = "other"
                },
            ],
            queues: [QueueSettings(name: "default", maxConcurrentOperationCount: 2)]
        )
        #expect(coordinator.bench.granted == ["a", "b"])
        #expect(try coordinator.restart() == nil)

        coordinator.bench.drive(.transportUp)
        coordinator.bench.join(slots: 4)
        #expect(coordinator.bench.granted.isEmpty)
        let holders = ["a", "b"].map { coordinator.bench.id($0) }
        let held = Scheduler.Reason.queueLimit("default", maximum: 2, holders, more: 0)
        #expect(coordinator.bench.explain("c") == [held])
        #expect(
            coordinator.bench.explain("d") == [
                .keyHeld("db", by: [coordinator.bench.id("a")], more: 0)
            ]
        )

        coordinator.bench.hello(from: 0, held: coordinator.bench.workers[0].held)
        coordinator.bench.finish("a")
        #expect(coordinator.bench.granted.sorted() == ["c", "d"])
    }

    @Test func `a worker whose successor says that it is dead is not waited for`() throws {
        var coordinator = RestartBench()
        coordinator.bench.join()
        try coordinator.bench.submit([.nothing("a")])
        coordinator.bench.start("a")
        let old = coordinator.bench.workers[0].identity.incarnation
        #expect(try coordinator.restart() == nil)
        coordinator.bench.drive(.transportUp)
        coordinator.bench.join()

        coordinator.bench.hello(from: 1, id: "state", predecessor: old)

        #expect(coordinator.bench.granted == ["a"])
    }

    // MARK: Who rules

    private static let halfLease = Scheduler.Configuration().lease / 2

    @Test func `a coordinator whose workers all name a later epoch says nothing more`() throws {
        var coordinator = try running()
        try coordinator.keep()
        // Not before everybody has had a lease in which to be heard.
        for _ in 0..<2 {
            coordinator.bench.send(.resultsNobodyWants, from: 0, epoch: Epoch(rawValue: 3))
            #expect(try coordinator.keep().notices.isEmpty)
            coordinator.bench.advance(by: Self.halfLease)
            try coordinator.keep()
        }
        coordinator.bench.send(.resultsNobodyWants, from: 0, epoch: Epoch(rawValue: 3))

        let effects = try coordinator.keep()
        #expect(effects.records.isEmpty && effects.messages.isEmpty)
        #expect(effects.notices == [.superseded(by: Epoch(rawValue: 3))])
    }

    @Test func `one worker that names a later epoch ends nothing while another one follows`() throws
    {
        var coordinator = try running()
        coordinator.bench.join()
        coordinator.bench.start("b")
        try coordinator.keep()
        for _ in 0..<4 {
            coordinator.bench.send(.resultsNobodyWants, from: 0, epoch: Epoch(rawValue: 3))
            coordinator.bench.send(.resultsNobodyWants, from: 1)
            coordinator.bench.advance(by: Self.halfLease)
            let notices = try coordinator.keep().notices
            #expect(!notices.contains(.superseded(by: Epoch(rawValue: 3))))
        }
        // It has not been given up either: what it runs goes on.
        #expect(coordinator.bench.state("a") == .executing)
        try coordinator.bench.submit([.nothing("c")])
        #expect(coordinator.bench.state("c") == .ready, "the worker that follows has no free slot")

        coordinator.bench.send(.resultsNobodyWants, from: 1, epoch: Epoch(rawValue: 3))
        #expect(try coordinator.keep().notices.contains(.superseded(by: Epoch(rawValue: 3))))
    }

    @Test func `a stranger that names a later epoch is believed when nobody else is left`() throws {
        var coordinator = try running()
        let later = Epoch(rawValue: 3)
        let stranger = WorkerIdentity(
            name: "stranger",
            incarnation: Incarnation(rawValue: 99),
            connection: 1
        )
        func say(_ coordinator: inout RestartBench) throws -> Bool {
            coordinator.bench.drive(
                .workerMessage(
                    WorkerEnvelope(
                        reign: SchedulerBench.reign,
                        epoch: later,
                        sequence: 0,
                        sender: stranger,
                        body: .resultsNobodyWants
                    )
                )
            )
            return try coordinator.keep().notices.contains(.superseded(by: later))
        }
        for _ in 0..<2 {
            coordinator.bench.advance(by: Self.halfLease)
            coordinator.bench.send(.resultsNobodyWants, from: 0)
        }
        #expect(try !say(&coordinator), "one worker follows")

        for _ in 0..<4 { coordinator.bench.advance(by: Self.halfLease) }
        #expect(try say(&coordinator))
    }

    @Test func `a beat that was meant for the coordinator before is not believed`() throws {
        var coordinator = try running()
        let held = coordinator.bench.attempt("a").held
        #expect(try coordinator.restart() == nil)
        coordinator.bench.drive(.transportUp)
        coordinator.bench.hello(from: 0, held: [held])
        try coordinator.keep()

        coordinator.bench.send(
            .beat(
                Beat(
                    sentAt: coordinator.bench.now.monotonic,
                    received: 99,
                    sent: 1,
                    held: [],
                    isDraining: false
                )
            ),
            from: 0,
            epoch: Epoch(rawValue: 1)
        )

        #expect(try coordinator.keep().messages.isEmpty)
    }

    @Test func `one that was not heard in this epoch has to say hello first`() throws {
        var coordinator = try running()
        #expect(try coordinator.restart() == nil)
        coordinator.bench.drive(.transportUp)
        try coordinator.keep()

        coordinator.bench.beat(from: 0)

        #expect(try coordinator.keep().messages.map(\.body) == [.plain(.resync)])
    }

    // MARK: The store

    @Test func `dying again while it recovers changes nothing`() throws {
        var coordinator = try running()
        coordinator.bench.cancel("a", reason: "r")
        coordinator.bench.suspend(.operation(coordinator.bench.id("b")))
        for _ in 0..<5 { #expect(try coordinator.restart() == nil) }

        #expect(coordinator.bench.scheduler.epoch == Epoch(rawValue: 6))
        coordinator.bench.drive(.transportUp)
        #expect(try coordinator.restart() == nil)
    }

    @Test func `numbers of graphs that are gone stay taken`() throws {
        var coordinator = try running()
        coordinator.bench.finish("a")
        coordinator.bench.finish("b")
        try coordinator.prune()
        #expect(try coordinator.restart() == nil)

        try coordinator.bench.submit([.nothing("c")])
        #expect(coordinator.bench.id("c").graph == GraphID(rawValue: 1))
        #expect(coordinator.bench.scheduler.isFinished(graph))
        coordinator.bench.cancel("a")
        #expect(coordinator.bench.drain().refusals.count == 1)
    }

    @Test func `a store that does not fit its graphs is refused with a sentence`() throws {
        var coordinator = try running()
        try coordinator.keep()
        let state = coordinator.state
        #expect(throws: RestoreError.self) {
            _ = try Scheduler(
                configuration: .init(),
                restoring: state,
                graphs: [],
                at: coordinator.bench.now
            )
        }
        let error = #expect(throws: RestoreError.self) {
            _ = try Scheduler(
                configuration: .init(),
                restoring: state,
                graphs: [nil],
                at: coordinator.bench.now
            )
        }
        #expect(error?.description == "graph 0 is unfinished, and its contents are missing")
    }
}

extension WorkerMessage {
    fileprivate static var resultsNobodyWants: WorkerMessage {
        .events(EventBatch(firstNumber: 2, sentAt: .zero, events: []))
    }
}
