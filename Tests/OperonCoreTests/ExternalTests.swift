import OperonCore
import OperonModel
import OperonTestKit
import Testing

struct ExternalTests {
    private let graph = GraphID(rawValue: 0)

    private static func external(
        _ name: String,
        after dependencies: [String] = [],
        _ change: (inout OperationDescription) -> Void = { _ in }
    ) -> OperationDescription {
        .nothing(name, after: dependencies) {
            $0.work = .external(input: .empty)
            change(&$0)
        }
    }

    private func complete(
        _ bench: inout SchedulerBench,
        _ name: String,
        _ attempt: AttemptID? = nil,
        _ completion: Completion = .succeeded(.empty)
    ) throws(Refusal) {
        try bench.request(
            .completionRequested(bench.id(name), attempt: attempt, completion)
        )
    }

    private func attempt(_ number: UInt64) -> AttemptID {
        AttemptID(epoch: Epoch(rawValue: 1), number: number)
    }

    private let failure = OperationError.thrown(type: "T", message: "no", payload: [])

    // MARK: - Starting

    @Test func `it starts by itself, without a worker and without a connection`() throws {
        var bench = SchedulerBench(connected: false)
        try bench.submit([Self.external("a"), .nothing("b", after: ["a"])])
        let id = bench.id("a")

        let effects = bench.drain()
        #expect(
            effects.records == [
                .graphAdded(graph),
                .granted(attempt(1), id, ordinal: 1, to: .nobody), .started(attempt(1), id),
            ]
        )
        #expect(
            effects.notices == [
                .ready(id), .granted(id, attempt(1), worker: .nobody),
                .started(id, attempt(1), at: bench.now.monotonic),
            ]
        )
        #expect(effects.messages.isEmpty)
        #expect(bench.state("a") == .executing)
        #expect(bench.explain("a") == [.awaitsCompletion(attempt(1))])
        #expect(bench.state("b") == .pending)
    }

    @Test func `it waits for its dependencies, its date, suspensions, its queue and its keys`()
        throws
    {
        var bench = SchedulerBench()
        bench.join(slots: 4)
        try bench.submit(
            [
                .nothing("first") { $0.exclusive = ["db"] },
                Self.external("after", after: ["first"]),
                Self.external("later") { $0.delay = .seconds(5) },
                Self.external("keyed") { $0.exclusive = ["db"] },
                Self.external("held") { $0.queue = "held" },
                Self.external("one") { $0.queue = "narrow" },
                Self.external("two") { $0.queue = "narrow" },
            ],
            queues: [QueueSettings(name: "narrow", maxConcurrentOperationCount: 1)]
        )
        bench.suspend(.queue("held"))

        #expect(bench.state("after") == .pending)
        #expect(bench.state("later") == .ready)
        #expect(bench.explain("keyed") == [.keyHeld("db", by: [bench.id("first")], more: 0)])
        #expect(bench.state("one") == .executing)
        #expect(
            bench.explain("two") == [
                .queueLimit("narrow", maximum: 1, [bench.id("one")], more: 0)
            ]
        )

        bench.finish("first")
        #expect(bench.state("after") == .executing)
        #expect(bench.state("keyed") == .executing)
        bench.advance(by: .seconds(5))
        #expect(bench.state("later") == .executing)
        try complete(&bench, "one")
        #expect(bench.state("two") == .executing)
        #expect(bench.scheduler.violatedExplanation() == nil)
    }

    @Test func `what is suspended before it starts does not, and what is executing goes on`()
        throws
    {
        var bench = SchedulerBench()
        bench.setLimit(0, of: "narrow")
        try bench.submit([Self.external("a"), Self.external("b") { $0.queue = "narrow" }])
        bench.suspend(.graph(graph))
        bench.setLimit(nil, of: "narrow")

        #expect(bench.state("a") == .executing)
        #expect(bench.explain("b") == [.graphSuspended(Suspension())])
        bench.resume(.graph(graph))
        #expect(bench.state("b") == .executing)
    }

    @Test func `it takes a place in its queue and its keys, and no slot, bytes or turn`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 1)
        var large = Self.external("large")
        large.work = .external(input: Payload(bytes: Array(repeating: 0x20, count: 100_000)))
        try bench.submit(
            [
                large, .nothing("a"),
                Self.external("x") { $0.exclusive = ["db"] },
                .nothing("b") { $0.exclusive = ["db"] },
            ],
            queues: [QueueSettings(name: "default", maxConcurrentOperationCount: 3)]
        )

        #expect(bench.scheduler.queueMembersInFlight("default") == 3)
        #expect(bench.state("a") == .dispatched)
        #expect(bench.workers[0].held.count == 1)
        let status = bench.scheduler.workerStatus(at: bench.now.monotonic)
        #expect(status.map(\.held) == [1])
        bench.finish("a")
        #expect(bench.explain("b") == [.keyHeld("db", by: [bench.id("x")], more: 0)])
    }

    @Test func `the more urgent of its queue is first, whoever runs it`() throws {
        var bench = SchedulerBench()
        bench.setLimit(0)
        bench.join(slots: 4)
        try bench.submit([
            Self.external("low") { $0.priority = .low },
            .nothing("high") { $0.priority = .high },
            Self.external("normal"),
        ])
        bench.setLimit(2)

        #expect(bench.granted == ["high", "normal"])
    }

    // MARK: - Completing

    @Test func `it succeeds with an output, and releases its dependents`() throws {
        var bench = SchedulerBench()
        try bench.submit([Self.external("a"), Self.external("b", after: ["a"])])
        bench.drain()
        bench.advance(by: .seconds(3))
        let id = bench.id("a")
        let output = Payload(bytes: Array("1".utf8))

        try complete(&bench, "a", attempt(1), .succeeded(output))

        let effects = bench.drain()
        #expect(effects.records.first == .finished(id, .succeeded))
        var result = AttemptResult(
            end: .succeeded,
            startedAt: bench.now.monotonic - .seconds(3),
            endedAt: bench.now.monotonic
        )
        result.output = output
        #expect(effects.notices.first == .result(id, attempt(1), result))
        #expect(effects.results.map(\.finished) == [1])
        #expect(bench.state("b") == .executing)
    }

    @Test func `only the first completion counts, and only of the attempt that is meant`() throws {
        var bench = SchedulerBench()
        try bench.submit([
            Self.external("a") { $0.retry = RetryPolicy(limit: 1, delay: .seconds(1), jitter: 0) },
            Self.external("late", after: ["a"]),
        ])
        let name = bench.id("a").description
        let stale = Refusal.alreadyFinished(name: "\(name) (attempt id 1.1)")

        #expect(throws: Refusal.alreadyFinished(name: "\(name) (attempt id 1.7)")) {
            try complete(&bench, "a", attempt(7))
        }
        try complete(&bench, "a", attempt(1), .failed(failure))
        #expect(bench.state("a") == .ready)
        #expect(throws: stale) { try complete(&bench, "a", attempt(1)) }
        #expect(throws: Refusal.self) { try complete(&bench, "a") }
        bench.advance(by: .seconds(1))
        #expect(throws: stale) { try complete(&bench, "a", attempt(1)) }
        #expect(bench.state("a") == .executing)
        try complete(&bench, "a", attempt(2))
        #expect(bench.outcome("a") == .succeeded)
        #expect(throws: Refusal.alreadyFinished(name: name)) { try complete(&bench, "a") }
        #expect(throws: Refusal.alreadyFinished(name: name)) {
            try complete(&bench, "a", attempt(2))
        }
    }

    @Test func `nobody else completes what a worker runs, or what has not started`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a"), Self.external("b", after: ["a"])])
        bench.start("a")
        bench.drain()

        for name in ["a", "b"] {
            let error = #expect(throws: Refusal.self) { try complete(&bench, name) }
            guard case .invalid(let field, let why) = error else {
                Issue.record("\(name): \(String(describing: error))")
                continue
            }
            #expect(field == "“\(bench.id(name))” cannot be completed")
            #expect(why.contains(name == "a" ? "it is not external" : "it has not started"))
        }
        let ghost = OperationID(graph: GraphID(rawValue: 9), index: 0)
        #expect(throws: Refusal.self) {
            try bench.request(.completionRequested(ghost, attempt: nil, .succeeded(.empty)))
        }
        #expect(bench.effects.records.isEmpty)
    }

    @Test func `an output, an error or a reason beyond the limit is refused`() throws {
        var bench = SchedulerBench()
        try bench.submit([Self.external("a")])
        bench.drain()
        let maximum = Limits().payloadBytes
        let text = String(repeating: "x", count: maximum + 1)
        let completions: [Completion] = [
            .succeeded(Payload(bytes: Array(text.utf8))), .cancelled(reason: text),
            .failed(.thrown(type: "", message: text, payload: [])),
        ]

        for completion in completions {
            #expect(
                throws: Refusal.limitExceeded(
                    limit: .payloadBytes,
                    value: maximum + 1,
                    maximum: maximum
                )
            ) { try complete(&bench, "a", nil, completion) }
        }
        for error in [OperationError.deadline, .workerLost] {
            #expect(throws: Refusal.self) { try complete(&bench, "a", nil, .failed(error)) }
        }
        let named = Payload(contentType: String(repeating: "t", count: 257), bytes: [])
        #expect(
            throws: Refusal.limitExceeded(limit: .nameBytes, value: 257, maximum: 256)
        ) { try complete(&bench, "a", nil, .succeeded(named)) }
        #expect(bench.effects.records.isEmpty)
        let exact = Payload(bytes: Array(text.utf8.dropLast()))
        try complete(&bench, "a", nil, .succeeded(exact))
    }

    @Test func `it fails as its retry says, and is cancelled with a reason`() throws {
        var bench = SchedulerBench()
        try bench.submit([
            Self.external("a") { $0.retry = RetryPolicy(limit: 1, delay: .zero, jitter: 0) },
            Self.external("b"),
            .nothing("c", after: ["a"]),
        ])
        bench.drain()

        try complete(&bench, "a", attempt(1), .failed(failure))
        #expect(bench.state("a") == .executing)
        #expect(bench.scheduler.attemptCount(of: bench.id("a")) == 2)
        #expect(
            bench.drain().records == [
                .attemptEnded(attempt(1), bench.id("a"), .failed(failure)),
                .retryScheduled(bench.id("a"), at: bench.now.wall),
                .granted(attempt(3), bench.id("a"), ordinal: 2, to: .nobody),
                .started(attempt(3), bench.id("a")),
            ]
        )
        try complete(&bench, "a", attempt(3), .failed(failure))
        #expect(bench.outcome("a") == .failed(failure))
        #expect(bench.outcome("c") == .skipped(cause: bench.id("a")))
        try complete(&bench, "b", nil, .cancelled(reason: "not wanted"))
        #expect(bench.outcome("b") == .cancelled(reason: "not wanted"))
    }

    // MARK: - Ending without anybody

    @Test
    func `an attempt that nobody completes in time has failed, and the next has its own time`()
        throws
    {
        var bench = SchedulerBench()
        try bench.submit([
            Self.external("a") {
                $0.timeout = .seconds(10)
                $0.retry = RetryPolicy(limit: 1, delay: .seconds(1), jitter: 0)
            }
        ])
        bench.advance(by: .seconds(9))
        try complete(&bench, "a", nil, .failed(failure))
        bench.advance(by: .seconds(1))
        #expect(bench.state("a") == .executing)
        bench.advance(by: .seconds(9))
        #expect(bench.state("a") == .executing)
        bench.advance(by: .seconds(1))
        #expect(bench.outcome("a") == .failed(.timeout))
    }

    @Test func `one that is cancelled, or past its deadline, ends at once`() throws {
        var bench = SchedulerBench()
        let deadline = bench.now.wall + .seconds(60)
        try bench.submit([
            Self.external("a") { $0.exclusive = ["db"] },
            Self.external("b") { $0.exclusive = ["db"] },
            Self.external("c") { $0.deadline = deadline },
        ])
        bench.drain()

        bench.cancel("a", reason: "r")
        let effects = bench.drain()
        #expect(
            effects.records == [
                .cancelled(.operation(bench.id("a")), reason: "r", cascade: false, by: ""),
                .finished(bench.id("a"), .cancelled(reason: "r")),
                .granted(attempt(3), bench.id("b"), ordinal: 1, to: .nobody),
                .started(attempt(3), bench.id("b")),
            ]
        )
        #expect(effects.results.first?.isEffective == true)
        #expect(effects.results.first?.finished == 1)
        bench.advance(by: .seconds(60))
        #expect(bench.outcome("c") == .failed(.deadline))
        bench.drive(.cancelRequested(.graph(graph), reason: "all", cascade: false))
        #expect(bench.outcome("b") == .cancelled(reason: "all"))
        #expect(bench.scheduler.isFinished(graph))
    }

    @Test func `what its workers do is nothing to it`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([Self.external("a"), .nothing("b")])
        bench.start("b")
        bench.drive(.drainRequested(bench.workers[0].identity.incarnation))
        bench.drive(.transportDown)
        bench.drive(.transportUp)
        bench.advance(by: .seconds(600))
        bench.drive(.shutdownRequested(kill: true))

        #expect(bench.state("a") == .executing)
        try complete(&bench, "a", attempt(1))
        #expect(bench.outcome("a") == .succeeded)
    }

    @Test func `who waits for it may hold the same key as it`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit(
            [
                Self.external("a") { $0.exclusive = ["db"] },
                .nothing("b") { $0.exclusive = ["db"] },
            ],
            keys: [KeySettings(name: "db", limit: 2)]
        )
        bench.start("b")

        #expect(bench.scheduler.waitPath(from: [bench.id("a")], to: bench.id("b")) == nil)
    }

    // MARK: - After a death

    @Test func `it is executing still, in its place, with its keys and its time`() throws {
        var coordinator = RestartBench()
        try coordinator.bench.submit(
            [
                Self.external("a") {
                    $0.exclusive = ["db"]
                    $0.timeout = .seconds(60)
                },
                Self.external("b") { $0.exclusive = ["db"] },
                Self.external("c"),
            ],
            queues: [QueueSettings(name: "default", maxConcurrentOperationCount: 1)]
        )
        coordinator.bench.advance(by: .seconds(50))

        #expect(try coordinator.restart() == nil)
        #expect(try coordinator.restart() == nil)
        #expect(coordinator.bench.state("a") == .executing)
        coordinator.bench.drive(.timeReached)
        #expect(coordinator.bench.granted.isEmpty)
        #expect(coordinator.bench.explain("a") == [.awaitsCompletion(attempt(1))])
        #expect(coordinator.bench.scheduler.queueMembersInFlight("default") == 1)
        coordinator.bench.advance(by: .seconds(9))
        #expect(coordinator.bench.state("a") == .executing)
        coordinator.bench.advance(by: .seconds(1))
        #expect(coordinator.bench.outcome("a") == .failed(.timeout))
        #expect(coordinator.bench.granted == ["b"])
        #expect(try coordinator.restart() == nil)
        // Numbers of the new epoch are new.
        #expect(
            coordinator.bench.scheduler.attempt(of: coordinator.bench.id("b"))?.id.epoch.rawValue
                == 3
        )
        try complete(
            &coordinator.bench,
            "b",
            coordinator.bench.scheduler.attempt(of: coordinator.bench.id("b"))?.id
        )
        #expect(coordinator.bench.granted == ["c"])
    }

    @Test func `what a store has of it and nobody, or of a worker and it, is no state`() throws {
        var coordinator = RestartBench()
        coordinator.bench.join()
        try coordinator.bench.submit([.nothing("a")])
        try coordinator.keep()
        var state = coordinator.state
        #expect(state.inFlight.count == 1)
        state.inFlight[0].worker = .nobody

        #expect(throws: RestoreError.self) {
            try Scheduler(
                configuration: coordinator.bench.scheduler.configuration,
                restoring: state,
                graphs: [coordinator.bench.scheduler.compiled(graph)],
                at: coordinator.bench.now
            )
        }
    }

    @Test func `a round of its own begins with a new attempt`() throws {
        var coordinator = RestartBench()
        try coordinator.bench.submit([Self.external("a")])
        try complete(&coordinator.bench, "a", nil, .failed(failure))
        coordinator.bench.drive(.retryRequested(graph, operations: [], cancelled: false))

        #expect(coordinator.bench.state("a") == .executing)
        #expect(throws: Refusal.self) { try complete(&coordinator.bench, "a", attempt(1)) }
        #expect(try coordinator.restart() == nil)
        try complete(&coordinator.bench, "a", attempt(2))
        #expect(coordinator.bench.outcome("a") == .succeeded)
    }
}
