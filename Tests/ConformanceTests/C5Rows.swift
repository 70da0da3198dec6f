import ConformanceKit
import Glibc
import Operon
import OperonFaultKit
import Testing

/// Tests that nobody wrote.
@Suite struct C5Rows {
    @Test(arguments: BackEnd.all)
    func `X6 priorities are those of one queue`(backEnd: BackEnd) async throws {
        try await backEnd.run("X6", slots: 1) { tools in
            let (one, suspended) = (tools.queue("one"), tools.queue("other", isSuspended: true))
            let low = tools.operation("low", .veryLow)
            let high = tools.operation("high", .veryHigh)
            try await suspended.add(high)
            try await one.add(low)
            try await low.waitUntilFinished()
            #expect(tools.journal.startOrder == ["low"])
            try await suspended.resume()
            try await high.waitUntilFinished()
        }
    }

    @Test(arguments: BackEnd.all)
    func `X7 a dependency may come late, but not too late`(backEnd: BackEnd) async throws {
        try await backEnd.run("X7", slots: 2) { tools in
            let queue = tools.queue(isSuspended: true)
            let gate = tools.gate()
            let (a, b) = (tools.operation("a"), tools.operation("b", behind: gate))
            try await queue.add(b, a)
            try await b.addDependency(a)
            try await queue.resume()
            try await tools.untilStarted("b")
            #expect(tools.journal.runs("b", after: "a"))
            // Foundation lists one that comes too late, without a word. A worker that was killed
            // leaves an operation that has not started, as far as dependencies go.
            if b is OperonOperation, !backEnd.isMortal {
                let late = tools.operation("late")
                try await queue.add(late)
                let refusal = await #expect(throws: Refusal.self) {
                    try await b.addDependency(late)
                }
                guard case .alreadyStarted = refusal else {
                    Issue.record("\(String(describing: refusal))")
                    return
                }
            }
            gate.open()
            try await b.waitUntilFinished()
        }
    }

    @Test(arguments: BackEnd.operon)
    func `X12 a barrier of a suspended queue waits as any other`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.run("X12", slots: 2) { tools in
            let queue = try tools.operonQueue(isSuspended: true)
            let barrier = OperationHandle(tools.play("barrier"))
            try await queue.addBarrier(barrier)
            try await tools.fence()
            #expect(!tools.journal.hasStarted("barrier"))
            try await queue.resume()
            try await within(backEnd.patience, "the queue is not empty") {
                try await queue.waitUntilAllOperationsAreFinished()
            }
            #expect(tools.journal.finishOrder.last == "barrier")
            // And of one that has something in it.
            try await queue.suspend()
            let before = try await queue.addOperations([tools.play("1"), tools.play("2")])
            let second = OperationHandle(tools.play("second barrier"))
            try await queue.addBarrier(second)
            let after = try await queue.addOperation(tools.play("3"), priority: .veryHigh)
            try await queue.resume()
            for handle in before + [after] { try await tools.end(of: handle) }
            let journal = tools.journal
            #expect(journal.runs("second barrier", after: "1"))
            #expect(journal.runs("second barrier", after: "2"))
            #expect(journal.runs("3", after: "second barrier"))
        }
    }

    @Test(arguments: BackEnd.operon)
    func `X13 progress counts what has ended, whatever its outcome`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.run("X13", slots: 2) { tools in
            let queue = try tools.operonQueue(isSuspended: true)
            let handles = try await queue.addOperations(
                ["1", "2", "3", "4"].map { tools.play($0) }
            )
            let progress = queue.progress
            try await handles[2].cancel()
            try await queue.resume()
            let seen = try await within(backEnd.patience, "it is not complete") {
                var seen: [OperationQueueProgress] = []
                for await step in progress {
                    seen.append(step)
                    if step.finishedCount == 4 { break }
                }
                return seen
            }
            #expect(seen.allSatisfy { $0.totalCount == 4 })
            #expect(seen.map(\.finishedCount) == seen.map(\.finishedCount).sorted())
            #expect(seen.allSatisfy { (0...1).contains($0.fractionCompleted) })
            #expect(seen.last?.fractionCompleted == 1)
            #expect(Set(tools.journal.startOrder) == ["1", "2", "4"])
        }
    }

    @Test(arguments: BackEnd.all)
    func `X14 of a diamond the ends are first and last`(backEnd: BackEnd) async throws {
        try await backEnd.run("X14", slots: 2) { tools in
            let names = ["d", "c", "b", "a"]
            let operations = tools.operations(names)
            let (d, c, b, a) = (operations[0], operations[1], operations[2], operations[3])
            try await d.addDependency(b)
            try await d.addDependency(c)
            try await b.addDependency(a)
            try await c.addDependency(a)
            try await tools.queue().add(operations)
            try await tools.untilFinished(operations)
            let order = tools.journal.finishOrder
            #expect(order.first == "a")
            #expect(order.last == "d")
            #expect(order.sorted() == names.sorted())
            if !backEnd.isMortal { #expect(tools.journal.runs.count == 4) }
        }
    }

    @Test(arguments: BackEnd.operon)
    func `X17 nothing depends on itself`(backEnd: BackEnd) async throws {
        try await backEnd.run("X17", slots: 1) { tools in
            let a = OperationHandle(tools.play("a"))
            let error = await #expect(throws: Refusal.self) { try await a.addDependency(a) }
            guard case .dependencyCycle = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            // It is none the worse for it.
            try await tools.operonQueue().addOperation(a)
            _ = try await tools.value(of: a)
        }
    }

    @Test(arguments: BackEnd.operon)
    func `X20 two who add to one queue do not disturb one another`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.run("X20", slots: 2) { tools in
            let queue = try tools.operonQueue(limit: 2)
            try await addFromBothSides(tools, queue, 500)
            #expect(tools.journal.finishOrder.count == 1_000)
            #expect(tools.journal.peak <= 2)
            if !backEnd.isMortal { #expect(tools.journal.runs.count == 1_000) }
        }
        try await backEnd.run("X20", slots: 1) { tools in
            let queue = try tools.operonQueue(limit: 1)
            try await addFromBothSides(tools, queue, 50)
            for side in ["one", "other"] {
                let order = tools.journal.startOrder.filter { $0.hasPrefix(side) }
                #expect(order == (0..<50).map { "\(side) \($0)" })
            }
            #expect(tools.journal.peak == 1)
        }
    }

    private func addFromBothSides(
        _ tools: RowTools,
        _ queue: OperationQueue,
        _ count: Int
    ) async throws {
        let again = OperationQueue(name: queue.name, cluster: try tools.otherCluster)
        try await whileSteps(within: tools.backEnd.patience, "not all of it ended") { step in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (side, queue) in [("one", queue), ("other", again)] {
                    group.addTask {
                        var handles: [AnyOperationHandle] = []
                        for number in 0..<count {
                            let play = tools.play("\(side) \(number)")
                            handles.append(try await queue.addOperation(play))
                            step()
                        }
                        for handle in handles {
                            try await handle.waitUntilFinished()
                            step()
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    /// What nobody can read is dropped, with a line in the log that says why.
    @Test(arguments: BackEnd.growing)
    func `X29 nonsense on the broker stops nobody`(backEnd: BackEnd) async throws {
        try await backEnd.run("X29") { tools in
            let shared = try await SharedCluster.of(backEnd)
            try await shared.speakNonsense()
            let queue = tools.queue()
            let operations = tools.operations((0..<20).map { "\($0)" })
            try await queue.add(operations)
            try await tools.untilFinished(operations)
            #expect(tools.journal.runs.count == 20)
        }
    }

    /// What it costs the submitter is measured by the benchmark, with a million; here is what
    /// bounds it.
    @Test(arguments: BackEnd.operon)
    func `X30 of an endless source only so many are in flight`(backEnd: BackEnd) async throws {
        try await backEnd.run("X30", slots: 2) { tools in
            let queue = try tools.operonQueue()
            let (count, inFlight) = (BackEnd.size(1_500), 500)
            let asked = Lock(0)
            let ended = Lock(0)
            let peak = Lock(0)
            let source = AsyncStream<Square> {
                let number = asked.withLock { asked in
                    asked += 1
                    return asked
                }
                guard number <= count else { return nil }
                let open = number - ended.withLock { $0 }
                peak.withLock { $0 = max($0, open) }
                return Square(number: number)
            }
            try await whileSteps(within: backEnd.patience, "it did not end") { step in
                try await queue.addOperations(from: source, inFlight: inFlight) { handle in
                    #expect(handle.outcomeIfKnown == .succeeded)
                    ended.withLock { $0 += 1 }
                    step()
                }
            }
            #expect(ended.withLock { $0 } == count)
            // The one that is asked for next is not in flight yet.
            #expect(peak.withLock { $0 } <= inFlight + 1)
        }
    }

    @Test(arguments: BackEnd.growing)
    func `X32 a worker that joins takes work`(backEnd: BackEnd) async throws {
        try await backEnd.run("X32") { tools in
            let shared = try await SharedCluster.of(backEnd)
            let queue = tools.queue()
            let gate = tools.gate()
            let operations = (0..<100).map { tools.operation("\($0)", behind: gate) }
            try await queue.add(operations)
            try await tools.untilStarts(backEnd.slots)
            let worker = try await shared.addWorker()
            try await tools.untilStarts(backEnd.slots + 1)
            #expect(tools.journal.runs.last?.start.process == worker.process)
            gate.open()
            try await tools.untilFinished(operations)
            #expect(tools.journal.finishOrder.count == 100)
            #expect(tools.journal.runs.count == 100)
            worker.signal(SIGTERM)
            #expect(try await worker.end().end == .exit(0))
        }
    }

    @Test(arguments: BackEnd.growing)
    func `X33 a worker that drains finishes what it has, and takes nothing more`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.run("X33") { tools in
            let shared = try await SharedCluster.of(backEnd)
            let queue = tools.queue()
            let (gate, others) = (tools.gate("gate"), tools.gate("others"))
            let before = (0..<backEnd.slots).map { tools.operation("\($0)", behind: others) }
            try await queue.add(before)
            try await tools.untilStarts(backEnd.slots)
            let worker = try await shared.addWorker()
            let running = tools.operation("running", behind: gate)
            let waiting = tools.operation("waiting")
            try await queue.add(running, waiting)
            try await tools.untilStarted("running")
            worker.signal(SIGTERM)
            try await worker.says("draining")
            gate.open()
            try await running.waitUntilFinished()
            #expect(try await worker.end().end == .exit(0))
            #expect(!tools.journal.hasStarted("waiting"))
            others.open()
            try await tools.untilFinished(before + [waiting])
            let runs = tools.journal.runs
            #expect(runs.count == backEnd.slots + 2)
            #expect(
                runs.filter { $0.start.process == worker.process }.map(\.start.operation)
                    == ["running"]
            )
        }
    }

    @Test(arguments: BackEnd.operon)
    func `X34 what is as large as allowed passes, and one byte more is refused`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.run("X34", slots: 1) { tools in
            let queue = try tools.operonQueue()
            let limit = 1 << 20
            // `{"count":1,"text":"…"}` and `"…"`.
            let (inputFrame, outputFrame) = (21, 2)
            let longest = String(repeating: "x", count: limit - inputFrame)
            let input = try await queue.addOperation(Text(longest, count: 1))
            let output = try await queue.addOperation(Text("x", count: limit - outputFrame))
            let tooMuch = try await queue.addOperation(Text("x", count: limit - outputFrame + 1))
            #expect(try await tools.value(of: input) == longest)
            #expect(try await tools.value(of: output).utf8.count == limit - outputFrame)
            let end = try await tools.end(of: tooMuch)
            guard case .failed(.outputTooLarge) = end else {
                Issue.record("\(end)")
                return
            }
            let refusal = await #expect(throws: Refusal.self) {
                try await queue.addOperation(Text(longest + "x", count: 1))
            }
            guard case .limitExceeded(_, let value, let maximum) = refusal else {
                Issue.record("\(String(describing: refusal))")
                return
            }
            #expect(value == limit + 1)
            #expect(maximum == limit)
        }
    }

    /// A beat every two seconds, and nothing else.
    @Test func `X36 idle workers do next to nothing`() async throws {
        let count = 10
        let shared = try await SharedCluster(isMortal: false, slots: count)
        try await shared.startWorkers(count)
        let before = try await shared.processorTime()
        // What they do in this time is what is measured: three beats, if nobody says more.
        let time = Duration.seconds(BackEnd.size(6))
        try await Task.sleep(for: time)
        let spent = try await shared.processorTime() - before
        // Whoever polls has a core to themselves for all of it.
        #expect(spent < time / 4, "\(spent) in \(time)")
        try await shared.end()
    }
}
