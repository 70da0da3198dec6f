import ConformanceKit
import Operon
import Testing

/// The tests of GNUstep: what an operation and a queue are by themselves.
@Suite struct C2Rows {
    @Test func `G1 an operation is the same after a journey`() async throws {
        var play = Play(name: "a", journal: "/nowhere")
        play.failure = Sorry(reason: "rain")
        #expect(try arrives(play) == play)
        #expect(try arrives(Square(number: 5)) == Square(number: 5))
    }

    @Test(arguments: BackEnd.local)
    func `G2 one that is in no queue is ready and nothing else`(backEnd: BackEnd) async throws {
        try await backEnd.run("G2") { tools async throws in
            let operation = tools.operation("a")
            #expect(try await operation.isReady)
            #expect(try await !operation.isCancelled)
            #expect(try await !operation.isExecuting)
            #expect(try await !operation.isFinished)
            #expect(try await operation.dependencyNames == [])
            #expect(try await operation.priority == .normal)
        }
    }

    @Test(arguments: BackEnd.all)
    func `G4 a dependency shows, and its dependent is not ready`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.run("G4", slots: 1) { tools in
            let (a, b) = (tools.operation("a"), tools.operation("b"))
            try await b.addDependency(a)
            #expect(try await b.dependencyNames.count == 1)
            #expect(try await a.isReady)
            #expect(try await !b.isReady)
            let queue = tools.queue(isSuspended: true)
            try await queue.add(a, b)
            #expect(try await b.dependencyNames == ["a"])
            #expect(try await a.isReady)
            #expect(try await !b.isReady)
        }
    }

    @Test(arguments: BackEnd.all)
    func `G7 one that has ended is finished, ready and has called back`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.run("G7", slots: 1) { tools in
            let operation = tools.operation("a")
            let calls = Counter()
            operation.onCompletion { calls.increment() }
            try await tools.queue().add(operation)
            try await operation.waitUntilFinished()
            #expect(try await operation.isFinished)
            #expect(try await operation.isReady)
            try await within(backEnd.patience, "no call") { await calls.happens() }
            #expect(calls.count == 1)
        }
    }

    @Test(arguments: BackEnd.local)
    func `G10 a cancelled one can be started, and ends without running`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.run("G10") { tools in
            let operation = tools.operation("a")
            let calls = Counter()
            operation.onCompletion { calls.increment() }
            try await operation.cancel()
            #expect(try await operation.isCancelled)
            #expect(try await !operation.isFinished)
            try await operation.start()
            #expect(try await operation.isFinished)
            #expect(!tools.journal.hasStarted("a"))
            try await within(backEnd.patience, "no call") { await calls.happens() }
        }
    }

    @Test(arguments: BackEnd.all)
    func `G12 what has ended is waited for no more`(backEnd: BackEnd) async throws {
        try await backEnd.run("G12", slots: 1) { tools in
            var play = tools.play("a")
            play.result = "done"
            let operation = tools.operation(play)
            try await tools.queue().add(operation)
            #expect(try await operation.result() == "done")
            #expect(try await operation.result() == "done")
            guard let operation = operation as? OperonOperation, let id = operation.handle.id
            else { return }
            let other = try await tools.otherCluster.handle(id, of: Play.self)
            #expect(try await tools.value(of: other) == "done")
        }
    }

    @Test(arguments: BackEnd.all)
    func `G13 a queue is not suspended until somebody suspends it`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.run("G13", slots: 1) { tools in
            let queue = tools.queue()
            let other = try tools.other(queue)
            #expect(try await !queue.isSuspended)
            try await queue.suspend()
            #expect(try await queue.isSuspended)
            #expect(try await other.isSuspended)
            try await queue.resume()
            #expect(try await !queue.isSuspended)
            #expect(try await !other.isSuspended)
        }
    }

    @Test(arguments: BackEnd.local)
    func `G14 a queue has a name, whether or not it was given one`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.run("G14") { tools in
            let named = tools.queue("named")
            #expect(named.name == tools.name("named"))
            let (one, other) = (tools.anonymousQueue(), tools.anonymousQueue())
            #expect(!one.name.isEmpty)
            #expect(one.name != other.name)
        }
    }

    @Test(arguments: BackEnd.all)
    func `G15 a limit is what was set last`(backEnd: BackEnd) async throws {
        try await backEnd.run("G15", slots: 1) { tools in
            let queue = tools.queue()
            let other = try tools.other(queue)
            let standard = OperationQueue.defaultMaxConcurrentOperationCount
            #expect(standard == -1)
            #expect(try await queue.limit == standard)
            for limit in [1, 0, 1_000_000, standard] {
                try await queue.setLimit(limit)
                #expect(try await queue.limit == limit)
                #expect(try await other.limit == limit)
            }
        }
    }

    @Test(arguments: BackEnd.all)
    func `G17 what is added runs`(backEnd: BackEnd) async throws {
        try await backEnd.run("G17", slots: 1) { tools in
            let operation = tools.operation("a")
            try await tools.queue().add(operation)
            try await operation.waitUntilFinished()
            #expect(tools.journal.finishOrder == ["a"])
        }
    }

    /// Here the wait may return before the callback runs, as it does on Linux Foundation too.
    @Test(arguments: BackEnd.operon)
    func `G18 one result, one call`(backEnd: BackEnd) async throws {
        try await backEnd.run("G18", slots: 1) { tools in
            let handle = OperationHandle(Square(number: 7))
            let calls = Counter()
            handle.completionBlock = { _ in calls.increment() }
            try await tools.operonQueue().addOperation(handle)
            #expect(try await tools.value(of: handle) == 49)
            try await within(backEnd.patience, "no call") { await calls.happens() }
            #expect(try await handle.isFinished)
            #expect(try await !handle.isExecuting)
            #expect(calls.count == 1)
        }
    }

    @Test(arguments: BackEnd.all)
    func `G19 two hundred results, each right, at most ten at once`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.run("G19") { tools in
            let queue = tools.queue(limit: 10)
            let operations = (0..<200).map { number in
                var play = tools.play("\(number)")
                play.result = "\(number * number)"
                return tools.operation(play)
            }
            try await queue.add(operations)
            for (number, operation) in operations.enumerated() {
                #expect(try await operation.result() == "\(number * number)")
            }
            #expect(tools.journal.finishOrder.count == 200)
            #expect((1...10).contains(tools.journal.peak))
            if !backEnd.isMortal { #expect(tools.journal.runs.count == 200) }
        }
    }

    @Test(arguments: BackEnd.local)
    func `G21 started by hand it runs in this process`(backEnd: BackEnd) async throws {
        try await backEnd.run("G21") { tools in
            let operation = tools.operation("a")
            try await operation.start()
            #expect(tools.journal.lines.map(\.process).allSatisfy { $0 == ownProcess })
            #expect(tools.journal.finishOrder == ["a"])
        }
    }

    @Test(arguments: BackEnd.local)
    func `G22 it can be started by any task`(backEnd: BackEnd) async throws {
        try await backEnd.run("G22") { tools in
            let operation = tools.operation("a")
            try await Task.detached { try await operation.start() }.value
            #expect(try await operation.isFinished)
            #expect(tools.journal.finishOrder == ["a"])
        }
    }

    @Test(arguments: BackEnd.local)
    func `G25 no two queues have one name`(backEnd: BackEnd) async throws {
        try await backEnd.run("G25") { tools in
            let queues = [
                tools.queue("one"), tools.queue("other"), tools.anonymousQueue(),
                tools.anonymousQueue(),
            ]
            #expect(Set(queues.map(\.name)).count == queues.count)
        }
    }

    @Test(arguments: BackEnd.all)
    func `G26 it runs elsewhere, in the queue that it was added to`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.run("G26", slots: 1) { tools in
            try await runsElsewhere(tools, tools.queue())
        }
    }

    /// What was started by hand is in no queue.
    @Test(arguments: BackEnd.operon.filter { $0 == .inProcess })
    func `G28 started by hand it sees none of the cluster's queues`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.run("G28") { tools in
            let operation = tools.operation("a")
            try await operation.start()
            #expect(tools.journal.lines.map(\.queue).allSatisfy { $0 == "local" })
        }
    }

    /// A worker adds no closure: it cannot have one. What it ends releases those that wait here.
    @Test(arguments: BackEnd.operon)
    func `G29 a block runs here when a worker has done what it waits for`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.run("G29", slots: 1) { tools in
            let queue = try tools.operonQueue()
            let there = try await queue.addOperation(Square(number: 6))
            let name = there.name
            let here = try await queue.addLocal(after: [there]) { context in
                [Int(ownProcess), try context.output(of: name, as: Int.self)]
            }
            let value = try await tools.patiently { try await here.value }
            #expect(value == [Int(ownProcess), 36])
        }
    }

    @Test(arguments: BackEnd.all)
    func `G30 so does that of another queue`(backEnd: BackEnd) async throws {
        try await backEnd.run("G30", slots: 1) { tools in
            try await runsElsewhere(tools, tools.queue("one"))
            try await runsElsewhere(tools, tools.queue("other"))
        }
    }

    /// In another process; where there is only one, on a thread that is not of a Swift task.
    private func runsElsewhere(_ tools: RowTools, _ queue: any QueueUnderTest) async throws {
        let operation = tools.operation("in \(queue.name)")
        try await queue.add(operation)
        try await operation.waitUntilFinished()
        let line = try #require(tools.journal.lines.last { $0.operation == operation.name })
        #expect(line.queue == queue.name)
        switch tools.backEnd {
        case .foundation, .inProcess:
            #expect(line.process == ownProcess)
            #expect(line.thread != ownProcess, "the main thread")
        case .oneWorker, .fourWorkers, .killedWorkers: #expect(line.process != ownProcess)
        }
    }

    @Test(arguments: BackEnd.all)
    func `G31 suspended while it works, and resumed, a queue finishes its work`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.run("G31", slots: 2) { tools in
            let queue = tools.queue(limit: 1)
            let gate = tools.gate()
            let (a, b) = (tools.operation("a", behind: gate), tools.operation("b"))
            try await queue.add(a, b)
            try await tools.untilStarted("a")
            try await queue.suspend()
            gate.open()
            // What runs is not held up. If its worker was killed, it runs no more, and waits.
            if !backEnd.isMortal { try await a.waitUntilFinished() }
            try await tools.fence()
            #expect(!tools.journal.hasStarted("b"))
            try await queue.resume()
            try await b.waitUntilFinished()
            #expect(tools.journal.runs("b", after: "a"))
        }
    }

    @Test(arguments: BackEnd.all)
    func `G33 a batch of a hundred keeps its order`(backEnd: BackEnd) async throws {
        try await backEnd.run("G33", slots: 1) { tools in
            let queue = tools.queue(limit: 1)
            let names = (0..<100).map { "\($0)" }
            let operations = tools.operations(names)
            try await queue.add(operations, waitUntilFinished: true)
            #expect(tools.journal.startOrder == names)
            #expect(tools.journal.finishOrder == names)
            #expect(tools.journal.peak == 1)
        }
    }

    @Test(arguments: BackEnd.all)
    func `G36 a dependency that has ended stays listed and blocks nobody`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.run("G36", slots: 1) { tools in
            let queue = tools.queue()
            let (a, b) = (tools.operation("a"), tools.operation("b"))
            try await queue.add(a)
            try await a.waitUntilFinished()
            try await b.addDependency(a)
            #expect(try await b.dependencyNames == ["a"])
            try await queue.add(b)
            try await b.waitUntilFinished()
            #expect(try await b.dependencyNames == ["a"])
            guard let b = b as? OperonOperation, let id = b.handle.id else { return }
            let other = try await tools.otherCluster.handle(id, of: Play.self)
            let listed = try await other.dependencies.map(\.id)
            #expect(listed == [try OperonOperation.of(a).handle.id])
        }
    }

    // MARK: - NSInvocationOperation

    @Test(arguments: BackEnd.operon)
    func `G42 what it returns is its value`(backEnd: BackEnd) async throws {
        try await backEnd.run("G42", slots: 1) { tools in
            let handle = try await tools.operonQueue().addOperation(Square(number: 5))
            #expect(try await tools.value(of: handle) == 25)
        }
    }

    @Test(arguments: BackEnd.operon)
    func `G43 whoever knows its number finds out what it is`(backEnd: BackEnd) async throws {
        try await backEnd.run("G43", slots: 1) { tools in
            let queue = try tools.operonQueue(isSuspended: true)
            let handle = try await queue.addOperation(Square(number: 5))
            #expect(handle.operation == Square(number: 5))
            let id = try #require(handle.id)
            let other = try await tools.otherCluster.handle(id, of: Square.self)
            #expect(other.operation == Square(number: 5))
            #expect(other.queue?.name == queue.name)
        }
    }

    @Test(arguments: BackEnd.operon)
    func `G44 a long text arrives as it was`(backEnd: BackEnd) async throws {
        try await backEnd.run("G44", slots: 1) { tools in
            // A mebibyte of it, but for the quotes that JSON needs.
            let text = "HELLÖ, 世界"
            let count = ((1 << 20) - 2) / text.utf8.count
            let handle = try await tools.operonQueue().addOperation(Text(text, count: count))
            #expect(try await tools.value(of: handle) == String(repeating: text, count: count))
        }
    }

    @Test(arguments: BackEnd.operon)
    func `G47 there is no value before there is one`(backEnd: BackEnd) async throws {
        try await backEnd.run("G47", slots: 1) { tools in
            let gate = tools.gate()
            var play = tools.play("a", behind: gate)
            play.result = "done"
            let handle = OperationHandle(play)
            #expect(handle.valueIfKnown == nil)
            try await tools.operonQueue().addOperation(handle)
            try await tools.untilStarted("a")
            #expect(handle.valueIfKnown == nil)
            gate.open()
            #expect(try await tools.value(of: handle) == "done")
            #expect(handle.valueIfKnown == "done")
        }
    }
}
