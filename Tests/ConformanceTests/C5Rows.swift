import ConformanceKit
import Glibc
import Operon
import OperonFaultKit
import Testing

/// Tests that nobody wrote.
@Suite struct C5Rows {
    @Test(arguments: BackEnd.all)
    func `X6 priorities are those of one queue`(backEnd: BackEnd) async throws {
        try await backEnd.play("X6", slots: 1) { stage in
            let (one, suspended) = (stage.queue("one"), stage.queue("other", isSuspended: true))
            let low = stage.operation("low", .veryLow)
            let high = stage.operation("high", .veryHigh)
            try await suspended.add(high)
            try await one.add(low)
            try await low.waitUntilFinished()
            #expect(stage.journal.startOrder == ["low"])
            try await suspended.resume()
            try await high.waitUntilFinished()
        }
    }

    @Test(arguments: BackEnd.all)
    func `X7 a dependency may come late, but not too late`(backEnd: BackEnd) async throws {
        try await backEnd.play("X7", slots: 2) { stage in
            let queue = stage.queue(isSuspended: true)
            let gate = stage.gate()
            let (a, b) = (stage.operation("a"), stage.operation("b", behind: gate))
            try await queue.add(b, a)
            try await b.addDependency(a)
            try await queue.resume()
            try await stage.untilStarted("b")
            #expect(stage.journal.runs("b", after: "a"))
            // Foundation lists one that comes too late, without a word. A worker that was killed
            // leaves an operation that has not started, as far as dependencies go.
            if b is OperonOperation, !backEnd.isMortal {
                let late = stage.operation("late")
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
        try await backEnd.play("X12", slots: 2) { stage in
            let queue = try stage.operonQueue(isSuspended: true)
            let barrier = OperationHandle(stage.play("barrier"))
            try await queue.addBarrier(barrier)
            try await stage.fence()
            #expect(!stage.journal.hasStarted("barrier"))
            try await queue.resume()
            try await within(backEnd.patience, "the queue is not empty") {
                try await queue.waitUntilAllOperationsAreFinished()
            }
            #expect(stage.journal.finishOrder.last == "barrier")
            // And of one that has something in it.
            try await queue.suspend()
            let before = try await queue.addOperations([stage.play("1"), stage.play("2")])
            let second = OperationHandle(stage.play("second barrier"))
            try await queue.addBarrier(second)
            let after = try await queue.addOperation(stage.play("3"), priority: .veryHigh)
            try await queue.resume()
            for handle in before + [after] { try await stage.end(of: handle) }
            let journal = stage.journal
            #expect(journal.runs("second barrier", after: "1"))
            #expect(journal.runs("second barrier", after: "2"))
            #expect(journal.runs("3", after: "second barrier"))
        }
    }

    @Test(arguments: BackEnd.operon)
    func `X13 progress counts what has ended, whatever its outcome`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.play("X13", slots: 2) { stage in
            let queue = try stage.operonQueue(isSuspended: true)
            let handles = try await queue.addOperations(
                ["1", "2", "3", "4"].map { stage.play($0) }
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
            #expect(Set(stage.journal.startOrder) == ["1", "2", "4"])
        }
    }

    @Test(arguments: BackEnd.all)
    func `X14 of a diamond the ends are first and last`(backEnd: BackEnd) async throws {
        try await backEnd.play("X14", slots: 2) { stage in
            let names = ["d", "c", "b", "a"]
            let operations = stage.operations(names)
            let (d, c, b, a) = (operations[0], operations[1], operations[2], operations[3])
            try await d.addDependency(b)
            try await d.addDependency(c)
            try await b.addDependency(a)
            try await c.addDependency(a)
            try await stage.queue().add(operations)
            try await stage.untilFinished(operations)
            let order = stage.journal.finishOrder
            #expect(order.first == "a")
            #expect(order.last == "d")
            #expect(order.sorted() == names.sorted())
            if !backEnd.isMortal { #expect(stage.journal.runs.count == 4) }
        }
    }

    @Test(arguments: BackEnd.operon)
    func `X17 nothing depends on itself`(backEnd: BackEnd) async throws {
        try await backEnd.play("X17", slots: 1) { stage in
            let a = OperationHandle(stage.play("a"))
            let error = await #expect(throws: Refusal.self) { try await a.addDependency(a) }
            guard case .dependencyCycle = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            // It is none the worse for it.
            try await stage.operonQueue().addOperation(a)
            _ = try await stage.value(of: a)
        }
    }

    @Test(arguments: BackEnd.operon)
    func `X20 two who add to one queue do not disturb one another`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.play("X20", slots: 2) { stage in
            let queue = try stage.operonQueue(limit: 2)
            try await addFromBothSides(stage, queue, 500)
            #expect(stage.journal.finishOrder.count == 1_000)
            #expect(stage.journal.peak <= 2)
            if !backEnd.isMortal { #expect(stage.journal.runs.count == 1_000) }
        }
        try await backEnd.play("X20", slots: 1) { stage in
            let queue = try stage.operonQueue(limit: 1)
            try await addFromBothSides(stage, queue, 50)
            for side in ["one", "other"] {
                let order = stage.journal.startOrder.filter { $0.hasPrefix(side) }
                #expect(order == (0..<50).map { "\(side) \($0)" })
            }
            #expect(stage.journal.peak == 1)
        }
    }

    private func addFromBothSides(
        _ stage: Stage,
        _ queue: OperationQueue,
        _ count: Int
    ) async throws {
        let again = OperationQueue(name: queue.name, cluster: try stage.otherCluster)
        try await whileSteps(within: stage.backEnd.patience, "not all of it ended") { step in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (side, queue) in [("one", queue), ("other", again)] {
                    group.addTask {
                        var handles: [AnyOperationHandle] = []
                        for number in 0..<count {
                            let play = stage.play("\(side) \(number)")
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
        try await backEnd.play("X29") { stage in
            let world = try await World.of(backEnd)
            try await world.speakNonsense()
            let queue = stage.queue()
            let operations = stage.operations((0..<20).map { "\($0)" })
            try await queue.add(operations)
            try await stage.untilFinished(operations)
            #expect(stage.journal.runs.count == 20)
        }
    }

    /// What it costs the submitter is measured by the benchmark, with a million; here is what
    /// bounds it.
    @Test(arguments: BackEnd.operon)
    func `X30 of an endless source only so many are in flight`(backEnd: BackEnd) async throws {
        try await backEnd.play("X30", slots: 2) { stage in
            let queue = try stage.operonQueue()
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
        try await backEnd.play("X32") { stage in
            let world = try await World.of(backEnd)
            let queue = stage.queue()
            let gate = stage.gate()
            let operations = (0..<100).map { stage.operation("\($0)", behind: gate) }
            try await queue.add(operations)
            try await stage.untilStarts(backEnd.slots)
            let worker = try await world.addWorker()
            try await stage.untilStarts(backEnd.slots + 1)
            #expect(stage.journal.runs.last?.start.process == worker.process)
            gate.open()
            try await stage.untilFinished(operations)
            #expect(stage.journal.finishOrder.count == 100)
            #expect(stage.journal.runs.count == 100)
            worker.signal(SIGTERM)
            #expect(try await worker.end().end == .exit(0))
        }
    }

    @Test(arguments: BackEnd.growing)
    func `X33 a worker that drains finishes what it has, and takes nothing more`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.play("X33") { stage in
            let world = try await World.of(backEnd)
            let queue = stage.queue()
            let (gate, others) = (stage.gate("gate"), stage.gate("others"))
            let before = (0..<backEnd.slots).map { stage.operation("\($0)", behind: others) }
            try await queue.add(before)
            try await stage.untilStarts(backEnd.slots)
            let worker = try await world.addWorker()
            let running = stage.operation("running", behind: gate)
            let waiting = stage.operation("waiting")
            try await queue.add(running, waiting)
            try await stage.untilStarted("running")
            worker.signal(SIGTERM)
            try await worker.says("draining")
            gate.open()
            try await running.waitUntilFinished()
            #expect(try await worker.end().end == .exit(0))
            #expect(!stage.journal.hasStarted("waiting"))
            others.open()
            try await stage.untilFinished(before + [waiting])
            let runs = stage.journal.runs
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
        try await backEnd.play("X34", slots: 1) { stage in
            let queue = try stage.operonQueue()
            let limit = 1 << 20
            // `{"count":1,"text":"…"}` and `"…"`.
            let (inputFrame, outputFrame) = (21, 2)
            let longest = String(repeating: "x", count: limit - inputFrame)
            let input = try await queue.addOperation(Text(longest, count: 1))
            let output = try await queue.addOperation(Text("x", count: limit - outputFrame))
            let tooMuch = try await queue.addOperation(Text("x", count: limit - outputFrame + 1))
            #expect(try await stage.value(of: input) == longest)
            #expect(try await stage.value(of: output).utf8.count == limit - outputFrame)
            let end = try await stage.end(of: tooMuch)
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
        let world = try await World(isMortal: false, slots: count)
        try await world.startWorkers(count)
        let before = try await world.processorTime()
        // What they do in this time is what is measured: three beats, if nobody says more.
        let time = Duration.seconds(BackEnd.size(6))
        try await Task.sleep(for: time)
        let spent = try await world.processorTime() - before
        // Whoever polls has a core to themselves for all of it.
        #expect(spent < time / 4, "\(spent) in \(time)")
        try await world.end()
    }
}
