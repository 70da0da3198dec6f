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
        var world = RestartBench()
        world.bench.join()
        try world.bench.submit([.nothing("a"), .nothing("b")])
        world.bench.start("a")
        return world
    }

    // MARK: Attempts in flight

    @Test func `what runs goes on undisturbed, and is not run again`() throws {
        var world = try running()
        let held = world.bench.attempt("a").held
        #expect(try world.restart() == nil)
        #expect(world.bench.state("a") == .executing)
        world.bench.drive(.transportUp)
        try world.keep()

        world.bench.hello(from: 0, held: [held])
        let effects = try world.keep()
        #expect(effects.records.isEmpty)
        #expect(effects.messages.count == 1)  // The welcome.
        #expect(world.bench.takeOrders(of: 0).isEmpty)

        world.bench.finish("a")
        let next = AttemptID(epoch: Epoch(rawValue: 2), number: 1)
        let worker = world.bench.workers[0].identity.incarnation
        #expect(
            try world.keep().records == [
                .finished(held.operation, .succeeded),
                .granted(next, world.bench.id("b"), ordinal: 1, to: worker),
            ]
        )
    }

    @Test func `what its owner never got is published to it again, under its old number`() throws {
        var world = RestartBench()
        world.bench.join()
        try world.bench.submit([.nothing("a")])
        let held = world.bench.attempt("a").held
        world.bench.lose("a")
        #expect(try world.restart() == nil)
        world.bench.drive(.transportUp)
        try world.keep()

        world.bench.hello(from: 0)

        let effects = try world.keep()
        #expect(effects.records.isEmpty)
        #expect(world.bench.attempt("a").held == held)
        #expect(effects.messages.map(\.sequence) == [1, 2])
    }

    @Test func `a result that its worker held meanwhile is taken`() throws {
        var world = try running()
        let held = world.bench.attempt("a").held
        #expect(try world.restart() == nil)
        world.bench.drive(.transportUp)
        try world.keep()

        // Events 1 and 2 are not acknowledged: the start, and the end.
        world.bench.hello(from: 0, firstEvent: 1, lastEvent: 2)
        #expect(try world.keep().records.isEmpty)
        world.bench.send(
            .events(
                EventBatch(
                    firstNumber: 1,
                    sentAt: world.bench.now.monotonic,
                    events: [
                        .started(held, at: world.bench.now.monotonic), .finished(held, result),
                    ]
                )
            ),
            from: 0
        )

        let effects = try world.keep()
        #expect(effects.records.first == .finished(held.operation, .succeeded))
        #expect(world.bench.outcome("a") == .succeeded)
        #expect(world.bench.scheduler.attemptCount(of: held.operation) == 1)
    }

    @Test func `what was stored and not acknowledged is refused and acknowledged`() throws {
        var world = try running()
        let held = world.bench.attempt("a").held
        world.bench.finish("a")
        #expect(try world.restart() == nil)
        world.bench.drive(.transportUp)
        world.bench.hello(from: 0, held: world.bench.workers[0].held, firstEvent: 1)
        try world.keep()

        world.bench.send(
            .events(
                EventBatch(
                    firstNumber: 1,
                    sentAt: world.bench.now.monotonic,
                    events: [
                        .started(held, at: world.bench.now.monotonic), .finished(held, result),
                    ]
                )
            ),
            from: 0
        )

        #expect(try world.keep().records.isEmpty)
        world.bench.beat(from: 0)
        #expect(controls(try world.keep()).map(\.acknowledged) == [2])
    }

    private var result: AttemptResult {
        AttemptResult(end: .succeeded, startedAt: .zero, endedAt: .zero)
    }

    @Test(arguments: [Duration.zero, .seconds(86_400)])
    func `an owner that does not come back is given up a lease after it could be heard`(
        _ outage: Duration
    ) throws {
        var world = RestartBench()
        world.bench.join()
        try world.bench.submit([.nothing("a")])
        let held = world.bench.attempt("a").held
        #expect(try world.restart() == nil)
        world.bench.advance(by: outage)
        #expect(world.bench.state("a") == .dispatched)

        world.bench.drive(.transportUp)
        world.bench.advance(by: .seconds(6) - .nanoseconds(1))
        #expect(world.bench.state("a") == .dispatched)
        world.bench.advance(by: .nanoseconds(1))

        #expect(world.bench.state("a") == .ready)
        try world.keep()
        world.bench.join()
        let other = world.bench.workers[1].identity.incarnation
        #expect(
            try world.keep().records == [.granted(id(1), held.operation, ordinal: 2, to: other)]
        )
    }

    @Test func `an owner that comes back after it was given up is given work again`() throws {
        var world = RestartBench()
        world.bench.join()
        try world.bench.submit([.nothing("a")])
        world.bench.lose("a")
        #expect(try world.restart() == nil)
        world.bench.drive(.transportUp)
        world.bench.advance(by: .seconds(6))
        #expect(world.bench.state("a") == .ready)
        try world.keep()

        world.bench.hello(from: 0)

        #expect(world.bench.granted == ["a"])
    }

    @Test func `a key stays with its holder for a whole exclusive lease of the new epoch`() throws {
        var world = RestartBench()
        world.bench.join()
        try world.bench.submit([.nothing("a") { $0.exclusive = ["db"] }])
        #expect(try world.restart() == nil)
        world.bench.advance(by: .seconds(3_600))
        world.bench.drive(.transportUp)
        world.bench.join()
        try world.keep()
        for _ in 0..<29 {
            world.bench.advance(by: .seconds(2))
            world.bench.beat(from: 1)
        }
        #expect(world.bench.granted.isEmpty)
        world.bench.advance(by: .seconds(2))
        #expect(world.bench.granted == ["a"])
    }

    @Test func `limits and keys count what is not located yet`() throws {
        var world = RestartBench()
        world.bench.join(slots: 4)
        try world.bench.submit(
            [
                .nothing("a") { $0.exclusive = ["db"] }, .nothing("b"), .nothing("c"),
                .nothing("d") {
                    $0.exclusive = ["db"]
                    $0.queue = "other"
                },
            ],
            queues: [QueueSettings(name: "default", maxConcurrentOperationCount: 2)]
        )
        #expect(world.bench.granted == ["a", "b"])
        #expect(try world.restart() == nil)

        world.bench.drive(.transportUp)
        world.bench.join(slots: 4)
        #expect(world.bench.granted.isEmpty)
        let holders = ["a", "b"].map { world.bench.id($0) }
        let held = Scheduler.Reason.queueLimit("default", maximum: 2, holders, more: 0)
        #expect(world.bench.explain("c") == [held])
        #expect(world.bench.explain("d") == [.keyHeld("db", by: [world.bench.id("a")], more: 0)])

        world.bench.hello(from: 0, held: world.bench.workers[0].held)
        world.bench.finish("a")
        #expect(world.bench.granted.sorted() == ["c", "d"])
    }

    @Test func `a worker whose successor says that it is dead is not waited for`() throws {
        var world = RestartBench()
        world.bench.join()
        try world.bench.submit([.nothing("a")])
        world.bench.start("a")
        let old = world.bench.workers[0].identity.incarnation
        #expect(try world.restart() == nil)
        world.bench.drive(.transportUp)
        world.bench.join()

        world.bench.hello(from: 1, id: "state", predecessor: old)

        #expect(world.bench.granted == ["a"])
    }

    // MARK: Who rules

    private static let halfLease = Scheduler.Configuration().lease / 2

    @Test func `a coordinator whose workers all name a later epoch says nothing more`() throws {
        var world = try running()
        try world.keep()
        // Not before everybody has had a lease in which to be heard.
        for _ in 0..<2 {
            world.bench.send(.resultsNobodyWants, from: 0, epoch: Epoch(rawValue: 3))
            #expect(try world.keep().notices.isEmpty)
            world.bench.advance(by: Self.halfLease)
            try world.keep()
        }
        world.bench.send(.resultsNobodyWants, from: 0, epoch: Epoch(rawValue: 3))

        let effects = try world.keep()
        #expect(effects.records.isEmpty && effects.messages.isEmpty)
        #expect(effects.notices == [.superseded(by: Epoch(rawValue: 3))])
    }

    @Test func `one worker that names a later epoch ends nothing while another one follows`() throws
    {
        var world = try running()
        world.bench.join()
        world.bench.start("b")
        try world.keep()
        for _ in 0..<4 {
            world.bench.send(.resultsNobodyWants, from: 0, epoch: Epoch(rawValue: 3))
            world.bench.send(.resultsNobodyWants, from: 1)
            world.bench.advance(by: Self.halfLease)
            let notices = try world.keep().notices
            #expect(!notices.contains(.superseded(by: Epoch(rawValue: 3))))
        }
        // It has not been given up either: what it runs goes on.
        #expect(world.bench.state("a") == .executing)
        try world.bench.submit([.nothing("c")])
        #expect(world.bench.state("c") == .ready, "the worker that follows has no free slot")

        world.bench.send(.resultsNobodyWants, from: 1, epoch: Epoch(rawValue: 3))
        #expect(try world.keep().notices.contains(.superseded(by: Epoch(rawValue: 3))))
    }

    @Test func `a stranger that names a later epoch is believed when nobody else is left`() throws {
        var world = try running()
        let later = Epoch(rawValue: 3)
        let stranger = WorkerIdentity(
            name: "stranger",
            incarnation: Incarnation(rawValue: 99),
            connection: 1
        )
        func say(_ world: inout RestartBench) throws -> Bool {
            world.bench.drive(
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
            return try world.keep().notices.contains(.superseded(by: later))
        }
        for _ in 0..<2 {
            world.bench.advance(by: Self.halfLease)
            world.bench.send(.resultsNobodyWants, from: 0)
        }
        #expect(try !say(&world), "one worker follows")

        for _ in 0..<4 { world.bench.advance(by: Self.halfLease) }
        #expect(try say(&world))
    }

    @Test func `a beat that was meant for the coordinator before is not believed`() throws {
        var world = try running()
        let held = world.bench.attempt("a").held
        #expect(try world.restart() == nil)
        world.bench.drive(.transportUp)
        world.bench.hello(from: 0, held: [held])
        try world.keep()

        world.bench.send(
            .beat(
                Beat(
                    sentAt: world.bench.now.monotonic,
                    received: 99,
                    sent: 1,
                    held: [],
                    isDraining: false
                )
            ),
            from: 0,
            epoch: Epoch(rawValue: 1)
        )

        #expect(try world.keep().messages.isEmpty)
    }

    @Test func `one that was not heard in this epoch has to say hello first`() throws {
        var world = try running()
        #expect(try world.restart() == nil)
        world.bench.drive(.transportUp)
        try world.keep()

        world.bench.beat(from: 0)

        #expect(try world.keep().messages.map(\.body) == [.plain(.resync)])
    }

    // MARK: The store

    @Test func `dying again while it recovers changes nothing`() throws {
        var world = try running()
        world.bench.cancel("a", reason: "r")
        world.bench.suspend(.operation(world.bench.id("b")))
        for _ in 0..<5 { #expect(try world.restart() == nil) }

        #expect(world.bench.scheduler.epoch == Epoch(rawValue: 6))
        world.bench.drive(.transportUp)
        #expect(try world.restart() == nil)
    }

    @Test func `numbers of graphs that are gone stay taken`() throws {
        var world = try running()
        world.bench.finish("a")
        world.bench.finish("b")
        try world.prune()
        #expect(try world.restart() == nil)

        try world.bench.submit([.nothing("c")])
        #expect(world.bench.id("c").graph == GraphID(rawValue: 1))
        #expect(world.bench.scheduler.isFinished(graph))
        world.bench.cancel("a")
        #expect(world.bench.drain().refusals.count == 1)
    }

    @Test func `a store that does not fit its graphs is refused with a sentence`() throws {
        var world = try running()
        try world.keep()
        let state = world.state
        #expect(throws: RestoreError.self) {
            _ = try Scheduler(
                configuration: .init(),
                restoring: state,
                graphs: [],
                at: world.bench.now
            )
        }
        let error = #expect(throws: RestoreError.self) {
            _ = try Scheduler(
                configuration: .init(),
                restoring: state,
                graphs: [nil],
                at: world.bench.now
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
