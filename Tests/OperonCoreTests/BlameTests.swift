import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// Who is blamed for the death of a worker, and who may say that one died.
@Suite struct BlameTests {
    private static let kinds = Work.builtInKinds + ["Poison"]

    private func poison(_ name: String) -> OperationDescription {
        OperationDescription(name: name, work: .registered(kind: "Poison", input: .empty))
    }

    private func grants(_ effects: Scheduler.Effects) -> [Scheduler.Grant] {
        effects.messages.flatMap { message -> [Scheduler.Grant] in
            if case .dispatch(_, let grants) = message.body { grants } else { [] }
        }
    }

    @Test func `a suspect runs in a process of its own`() throws {
        var bench = SchedulerBench()
        bench.join(kinds: Self.kinds)
        try bench.submit([poison("a")])
        #expect(grants(bench.drain()).map(\.isIsolated) == [false])
        bench.start("a")
        bench.advance(by: .seconds(6))

        bench.join(kinds: Self.kinds)

        #expect(grants(bench.drain()).map(\.isIsolated) == [true])
    }

    @Test func `a process is no suspect: its own end is its outcome`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([
            OperationDescription(name: "a", work: .command(CommandDescription(arguments: ["x"])))
        ])
        bench.start("a")
        bench.advance(by: .seconds(6))
        bench.drain()
        bench.join()
        #expect(grants(bench.drain()).map(\.isIsolated) == [false])
    }

    @Test func `the fifth death of its own process fails it, and it has started six times`()
        throws
    {
        var bench = SchedulerBench()
        bench.join(kinds: Self.kinds)
        try bench.submit([poison("a")])
        bench.start("a")
        bench.advance(by: .seconds(6))
        bench.join(kinds: Self.kinds)
        for _ in 1..<5 {
            bench.finish("a", .crashed)
            #expect(bench.state("a") == .dispatched)
        }

        bench.finish("a", .crashed)

        #expect(bench.outcome("a") == .failed(.workerLost))
        #expect(bench.scheduler.attemptCount(of: bench.id("a")) == 6)
    }

    @Test func `lost workers alone fail nothing`() throws {
        var bench = SchedulerBench()
        try bench.submit([poison("a")])
        for worker in 0..<40 {
            bench.join(kinds: Self.kinds)
            #expect(bench.attempt("a").worker == worker)
            bench.start("a")
            bench.advance(by: .seconds(6))
        }
        #expect(bench.state("a") == .ready)
    }

    @Test func `what adds elements is never isolated, so the fifth death of its worker fails it`()
        throws
    {
        var bench = SchedulerBench()
        let work = Work.registered(kind: Work.forEachKind, input: .empty)
        try bench.submit([OperationDescription(name: "a", work: work)])
        for _ in 0..<5 {
            #expect(bench.state("a") == .ready)
            bench.join()
            bench.start("a")
            bench.advance(by: .seconds(6))
        }

        #expect(bench.outcome("a") == .failed(.workerLost))
    }

    @Test func `a limit on lost workers fails what loses one more`() throws {
        var configuration = SchedulerBench.noReadAhead
        configuration.lostLimit = 3
        var bench = SchedulerBench(configuration)
        try bench.submit([.nothing("a")])
        for _ in 0..<3 {
            #expect(bench.outcome("a") == nil)
            bench.join()
            bench.start("a")
            bench.advance(by: .seconds(6))
        }
        #expect(bench.outcome("a") == .failed(.workerLost))
    }

    @Test func `a crash of a cancelled operation ends it as cancelled`() throws {
        var bench = SchedulerBench()
        bench.join(kinds: Self.kinds)
        try bench.submit([poison("a")])
        bench.start("a")
        bench.cancel("a", reason: "r")
        bench.finish("a", .crashed)
        #expect(bench.outcome("a") == .cancelled(reason: "r"))
    }

    // MARK: The dead

    @Test func `who holds the lock of its directory may say that its predecessor is dead`() throws {
        var bench = SchedulerBench()
        bench.join()
        bench.hello(from: 0, id: "state")
        try bench.submit([.nothing("a")])
        bench.start("a")
        for _ in 0..<500 {
            bench.advance(by: .seconds(2))
            bench.beat(from: 0)
        }

        bench.join()
        bench.hello(
            from: 1,
            id: "state",
            predecessor: bench.workers[0].identity.incarnation
        )

        #expect(bench.state("a") == .dispatched)
        #expect(bench.attempt("a").worker == 1)
    }

    @Test func `nobody else may say so`() throws {
        var bench = SchedulerBench()
        bench.join()
        bench.hello(from: 0, id: "state")
        try bench.submit([.nothing("a")])
        bench.start("a")
        bench.join()
        let first = bench.workers[0].identity.incarnation

        bench.hello(from: 1, id: "other", predecessor: first)
        bench.hello(from: 1, id: "", predecessor: first)

        #expect(bench.state("a") == .executing)
    }

    @Test func `workers that are gone are forgotten, the oldest first`() throws {
        var configuration = SchedulerBench.noReadAhead
        configuration.goneWorkersMax = 2
        var bench = SchedulerBench(configuration)
        for _ in 0..<10 {
            bench.join()
            bench.advance(by: .seconds(6))
        }
        #expect(bench.scheduler.knownWorkerCount == 2)
    }
}

/// The right of an operation to its keys.
@Suite struct ExclusiveLeaseTests {
    private func keyed(_ name: String) -> OperationDescription {
        .nothing(name) { $0.exclusive = ["db"] }
    }

    @Test func `keys are given on only when the right of their holder has ended`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([keyed("a"), keyed("b")])
        bench.start("a")
        bench.join()
        bench.drain()

        for _ in 0..<29 {
            bench.advance(by: .seconds(2))
            bench.beat(from: 1)
        }
        #expect(bench.state("a") == .executing)
        #expect(bench.state("b") == .ready)

        bench.advance(by: .seconds(2))
        #expect(bench.state("a") == .dispatched)
        #expect(bench.attempt("a").worker == 1)
    }

    @Test func `a grant with keys says how long it is a right`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 2)
        try bench.submit([keyed("a"), .nothing("b")])
        let grants = bench.drain().messages.flatMap { message -> [Scheduler.Grant] in
            if case .dispatch(_, let grants) = message.body { grants } else { [] }
        }
        #expect(grants.map(\.exclusiveLease) == [.seconds(60), nil])
    }
}
