import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// What comes from an operation, a worker or a client is a stranger's: numbers, names and sizes.
struct StrangerTests {
    // MARK: Numbers

    @Test func `an operation of a graph that there is not has no outcome`() throws {
        var bench = SchedulerBench()
        try bench.submit([.nothing("a")])
        for graph in [1, 4_000_000_000, UInt32.max] {
            for index in [0, 1, UInt32.max] {
                let id = OperationID(graph: GraphID(rawValue: graph), index: index)
                #expect(bench.scheduler.outcomeKind(of: id) == nil)
                #expect(!bench.scheduler.isKnown(id))
            }
        }
    }

    @Test func `only who has an attempt in flight may ask in its name`() throws {
        var bench = SchedulerBench()
        bench.join()
        bench.join()
        try bench.submit([.nothing("a")])
        let (worker, held) = bench.attempt("a")
        let (mine, other) = (bench.workers[worker].identity, bench.workers[1 - worker].identity)
        var nobody = mine
        nobody.incarnation = Incarnation(rawValue: 99)
        var stray = held
        stray.operation = OperationID(graph: GraphID(rawValue: .max), index: .max)

        #expect(bench.scheduler.owns(held, mine))
        #expect(!bench.scheduler.owns(held, other))
        #expect(!bench.scheduler.owns(held, nobody))
        #expect(!bench.scheduler.owns(stray, mine))
        bench.finish("a")
        #expect(!bench.scheduler.owns(held, mine))
    }

    // MARK: Queues of what is added

    private func verdict(_ queue: String) throws -> Scheduler.Verdict.Content? {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit(
            [.nothing("a"), .nothing("b", after: ["a"]) { $0.queue = "used" }],
            queues: [QueueSettings(name: "defined", maxConcurrentOperationCount: 1)],
            open: true
        )
        // Of another graph.
        try bench.submit([.nothing("c", after: ["a"]) { $0.queue = "strange" }])
        try bench.add(
            [.nothing("d", after: ["a"]) { $0.queue = "later" }],
            to: GraphID(rawValue: 0)
        )
        let (worker, held) = bench.attempt("a")
        bench.start("a")
        bench.drain()
        bench.resolver.additions = [.success([.nothing("e") { $0.queue = queue }])]
        bench.send(.added(held, AdditionRequest(number: 1, operations: [])), from: worker)
        return bench.effects.messages.flatMap(\.verdicts).first?.content
    }

    @Test(arguments: ["default", "used", "defined", "later"])
    func `a running operation adds to queues of its graph`(queue: String) throws {
        #expect(try verdict(queue) == .added(1))
    }

    @Test(arguments: ["strange", "new"])
    func `a running operation adds to no queue that its graph has not`(queue: String) throws {
        guard case .refused(.worded(.invalid(let field, _)))? = try verdict(queue) else {
            Issue.record("it was not refused")
            return
        }
        #expect(field == "queue “\(queue)”")
    }

    // MARK: Messages that cannot be sent

    @Test func `verdicts that do not fit one answer come with the next`() throws {
        var configuration = SchedulerBench.noReadAhead
        configuration.limits.chunkBytes = 3_000
        var bench = SchedulerBench(configuration)
        bench.join(slots: 1)
        try bench.submit([.nothing("a")])
        let (worker, held) = bench.attempt("a")
        bench.start("a")
        for number in 1...4 as ClosedRange<UInt64> {
            // Not kept, as answers to reads are not: the others are.
            bench.send(.read(held, ReadRequest(number: number, name: "a")), from: worker)
        }
        for number in 5...8 as ClosedRange<UInt64> {
            bench.resolver.additions = [.failure(.graphClosed(name: "g"))]
            bench.send(
                .added(held, AdditionRequest(number: number, operations: [])),
                from: worker
            )
        }
        bench.drain()
        var open = (5...8).map { number in
            OpenRequest(number: UInt64(number), held: held, event: UInt64(number) + 1)
        }
        var answers: [[UInt64]] = []
        while !open.isEmpty, answers.count < 10 {
            bench.beat(from: worker, open: open)
            let told = bench.drain().messages.flatMap(\.verdicts).map(\.number)
            answers.append(told)
            open.removeAll { told.contains($0.number) }
        }
        #expect(answers == [[5], [6], [7], [8]])
    }

    @Test func `a verdict repeats little of a long name`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        let (worker, held) = bench.attempt("a")
        bench.start("a")
        bench.drain()
        // One character to people, a million bytes to a machine.
        let name = "e" + String(repeating: "\u{301}", count: 500_000)
        let refusals: [Refusal] = [
            .unknownOperation(name: name, namedBy: name), .duplicateOperation(name: name),
            .invalid(field: name, why: name), .unreachable(name),
            .dependencyCycle(path: Array(repeating: name, count: 3)),
        ]
        for (place, refusal) in refusals.enumerated() {
            let request = AdditionRequest(number: UInt64(place + 1), operations: [])
            bench.resolver.additions = [.failure(refusal)]
            bench.send(.added(held, request), from: worker)
        }
        let verdicts = bench.effects.messages.flatMap(\.verdicts)
        for verdict in verdicts { #expect("\(verdict.content)".utf8.count < 20_000) }
        #expect(verdicts.count == refusals.count)
    }

    // MARK: Results

    private func outcome(
        _ change: (inout AttemptResult) -> Void
    ) throws -> (outcome: Outcome?, result: AttemptResult?) {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        let (worker, held) = bench.attempt("a")
        var result = bench.result(.succeeded)
        change(&result)
        bench.settle(held, result, from: worker)
        var kept: AttemptResult?
        for case .result(_, _, let result) in bench.effects.notices { kept = result }
        return (bench.outcome("a"), kept)
    }

    @Test func `an output over the limit is a failure, whatever its worker says`() throws {
        let limit = Limits().payloadBytes
        let (fits, kept) = try outcome {
            $0.output = Payload(bytes: Array(repeating: 32, count: limit))
        }
        #expect(fits == .succeeded)
        #expect(kept?.output.bytes.count == limit)

        let (large, left) = try outcome {
            $0.output = Payload(bytes: Array(repeating: 32, count: limit + 1))
        }
        #expect(large == .failed(.outputTooLarge(bytes: limit + 1, limit: limit)))
        #expect(left?.output == .empty)

        let (typed, _) = try outcome {
            $0.output = Payload(contentType: String(repeating: "t", count: 257), bytes: [1])
        }
        #expect(typed == .failed(.undecodable("the type of its output has 257 bytes")))
    }

    @Test func `an error, a log and a pause are held to their limits`() throws {
        let long = String(repeating: "m", count: 1 << 20)
        let (failed, result) = try outcome {
            let payload = [UInt8](repeating: 1, count: Limits().payloadBytes + 1)
            $0.end = .failed(.thrown(type: long, message: long, payload: payload))
            $0.log.tail = Array(repeating: 10, count: Limits().logBytes + 3)
            $0.log.missing = .max - 1
        }
        guard case .failed(.thrown(let type, let message, let payload))? = failed else {
            Issue.record("\(String(describing: failed))")
            return
        }
        #expect(type.utf8.count < 70_000 && message.utf8.count < 70_000 && payload.isEmpty)
        #expect(result?.log.tail.count == Limits().logBytes)
        // Positions in the log are numbers.
        #expect(result?.log.missing == KeptLog.missingMax)
    }

    @Test(arguments: [Duration.seconds(Int64.max), .seconds(-5), .nanoseconds(Int64.min)])
    func `a pause of any length is one that can be waited for`(pause: Duration) throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        bench.finish("a", .notYet(after: pause))
        bench.advance(by: .seconds(1))
        #expect(bench.state("a") == (pause > .zero ? .ready : .dispatched))
    }

    @Test func `times at either end of the clock trap nobody`() throws {
        let moments: [(Int64, Int64)] = [(.max, 0), (0, .max), (.max, .max), (0, 0)]
        for (started, ended) in moments {
            var bench = SchedulerBench()
            bench.join()
            try bench.submit([.nothing("a"), .nothing("b", after: ["a"])])
            let (worker, held) = bench.attempt("a")
            let result = AttemptResult(
                end: .succeeded,
                startedAt: Timestamp(nanoseconds: started),
                endedAt: Timestamp(nanoseconds: ended)
            )
            bench.settle(held, result, from: worker)
            #expect(bench.outcome("a") == .succeeded)
            bench.finish("b")
        }
    }

    // MARK: The worker's own

    @Test func `a worker reports what fits a message, whatever its operation left`() {
        var bench = WorkerBench()
        bench.join()
        bench.dispatch([1])
        bench.drain()
        let held = WorkerBench.held(1)
        var result = AttemptResult(end: .succeeded, startedAt: .zero, endedAt: .zero)
        result.end = .failed(
            .thrown(
                type: "T",
                message: String(repeating: "m", count: 9 << 20),
                payload: Array(repeating: 1, count: 9 << 20)
            )
        )
        bench.drive(.ended(held.attempt, result))

        var told = 0
        for message in bench.drain().messages {
            guard case .events(let batch) = message.envelope.body else { continue }
            for event in batch.events {
                #expect(event.byteCount < Limits().payloadBytes)
                told += 1
            }
        }
        #expect(told > 0)
    }
}
