import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// Each limit that holds while a graph runs: at its value everything goes on, one more waits.
@Suite struct RuntimeLimitTests {
    @Test(arguments: [(100, 2), (99, 1)])
    func `what is dispatched takes so many bytes at most, and explain says so`(
        maximum: Int,
        dispatched: Int
    ) throws {
        var configuration = SchedulerBench.noReadAhead
        configuration.limits.dispatchedBytes = maximum * 1_000
        var bench = SchedulerBench(configuration)
        bench.join(slots: 4, kinds: ["k"])
        try bench.submit([Self.large("a", 50_000), Self.large("b", 50_000)])

        #expect(bench.workers[0].held.count == dispatched)
        let reasons = bench.explain("b")
        if dispatched == 1 {
            #expect(reasons == [.dispatchedBytes(50_000, maximum: 99_000)])
        }

        // What waited for room goes out when there is some.
        bench.finish("a")
        #expect(bench.state("b") == .dispatched)
    }

    @Test func `one operation that is larger than the limit goes out alone`() throws {
        var configuration = SchedulerBench.noReadAhead
        configuration.limits.dispatchedBytes = 10
        var bench = SchedulerBench(configuration)
        bench.join(slots: 4, kinds: ["k"])
        try bench.submit([Self.large("a", 50_000)])

        #expect(bench.state("a") == .dispatched)
    }

    @Test(arguments: [(96, 1), (95, 0)])
    func `events in flight fill the window and no byte more`(window: Int, second: Int) {
        // An event without output takes 48 bytes, and 16 for the name of its format.
        var bench = WorkerBench(slots: 2)
        bench.drive(.linkUp(connection: 1))
        bench.welcome(window: UInt32(window + 32))
        bench.dispatch([1, 2])
        bench.drain()
        bench.end(1)
        bench.end(2)

        let sent = bench.drain().messages.reduce(0) { count, message in
            if case .events(let batch) = message.envelope.body {
                return count + batch.events.count
            }
            return count
        }
        #expect(sent == 1 + second)

        // The acknowledgement of the first makes room for the second.
        bench.answer(acknowledged: 1)
        let rest = bench.drain().messages.contains { message in
            if case .events = message.envelope.body { return true }
            return false
        }
        #expect(rest == (second == 0))
    }

    /// The coordinator acknowledges at once what fills half of the window.
    @Test func `an event that waits behind less than half a window is asked for by a beat`() {
        var bench = WorkerBench(slots: 2)
        bench.drive(.linkUp(connection: 1))
        bench.welcome(window: 1_000)
        bench.answer()
        bench.dispatch([1, 2])
        bench.end(1)
        bench.drain()
        var large = AttemptResult(end: .succeeded, startedAt: bench.now, endedAt: bench.now)
        large.log.tail = Array(repeating: 0, count: 1_000)
        bench.drive(.ended(WorkerBench.held(2).attempt, large))
        #expect(bench.drain().wakeAt == bench.now)

        bench.drive(.timeReached)
        #expect(bench.beats == [1])
        // One is enough: what it was too early for, the next says in its turn.
        bench.answer()
        bench.drive(.timeReached)
        #expect(bench.beats.isEmpty)
        bench.answer(acknowledged: 1)
        let numbers = bench.drain().messages.compactMap { message -> UInt64? in
            guard case .events(let batch) = message.envelope.body else { return nil }
            return batch.firstNumber
        }
        #expect(numbers == [2])
    }

    @Test(arguments: [(4, 256), (3, 341)])
    func `all workers together have so many bytes of events in flight at most`(
        workers: Int,
        window: UInt32
    ) {
        var configuration = SchedulerBench.noReadAhead
        configuration.limits.eventBytes = 1_024
        var bench = SchedulerBench(configuration)
        for _ in 0..<workers { bench.join() }
        let last = bench.drain().messages.compactMap { message -> UInt32? in
            guard case .plain(.welcome(let welcome)) = message.body else { return nil }
            return welcome.eventWindow
        }.last

        #expect(last == window)
    }

    @Test func `a graph has its limit of demand classes, however often it is added to`() throws {
        var configuration = SchedulerBench.noReadAhead
        configuration.limits.demands = 3
        var bench = SchedulerBench(configuration)
        func asking(_ name: String, _ count: Int) -> OperationDescription {
            .nothing(name) { $0.resources = [.gpus(count)] }
        }
        let graph = try bench.submit([asking("a", 1), asking("b", 2)], open: true)
        try bench.add([asking("c", 3), asking("d", 1)], to: graph)

        #expect(throws: Refusal.limitExceeded(limit: .demands, value: 4, maximum: 3)) {
            try bench.add([asking("e", 4)], to: graph)
        }
        try bench.add([asking("f", 2)], to: graph)
    }

    @Test func `the limits are those of the design`() {
        let limits = Limits()
        #expect(limits.operationsPerGraph == 1 << 20)
        #expect(limits.edgesPerGraph == 10_000_000)
        #expect(limits.graphFileBytes == 256 << 20)
        #expect(limits.yamlOperations == 100_000)
        #expect(limits.yamlDepth == 64)
        #expect(limits.nameBytes == 256)
        #expect(limits.payloadBytes == 1 << 20)
        #expect(limits.inputsBytes == 1 << 30)
        #expect(limits.logBytes == 1 << 20)
        #expect(limits.messageBytes == 8 << 20)
        #expect(limits.outgoingBytes == 16 << 20)
        #expect(limits.dispatchedBytes == 64 << 20)
        #expect(limits.retainedBytes == 64 << 20)
        #expect(limits.eventBytesPerWorker == 1 << 20)
        #expect(limits.eventBytes == 256 << 20)
    }

    private static func large(_ name: String, _ bytes: Int) -> OperationDescription {
        let input = Payload(bytes: Array(repeating: 0, count: bytes))
        return OperationDescription(name: name, work: .registered(kind: "k", input: input))
    }
}

extension WorkerBench {
    /// The last event that each beat names, of those since the last `drain`.
    fileprivate var beats: [UInt64] {
        mutating get {
            drain().messages.compactMap { message in
                guard case .beat(let beat) = message.envelope.body else { return nil }
                return beat.sent
            }
        }
    }
}
