import ConformanceKit
import Operon
import Testing

/// The tests of swift-corelibs-foundation, TestOperationQueue.swift.
@Suite struct C1Rows {
    @Test(arguments: BackEnd.all)
    func `F1 operations are counted and listed until they end`(backEnd: BackEnd) async throws {
        try await backEnd.run("F1", slots: 2) { tools in
            let queue = tools.queue()
            let gate = tools.gate("first")
            let first = tools.operation("first", behind: gate)
            try await queue.add(first)
            #expect(try await queue.operationCount == 1)
            gate.open()
            try await queue.waitUntilEmpty()
            #expect(try await queue.operationCount == 0)
            let secondGate = tools.gate("second")
            try await queue.add(
                tools.operation("a", behind: secondGate),
                tools.operation("b", behind: secondGate)
            )
            #expect(try await queue.operationCount == 2)
            #expect(try await queue.operationNames == ["a", "b"])
            secondGate.open()
            try await queue.waitUntilEmpty()
            #expect(try await queue.operationCount == 0)
            #expect(try await queue.operationNames == [])
        }
    }

    @Test(arguments: BackEnd.all)
    func `F2 a batch starts by priority`(backEnd: BackEnd) async throws {
        try await backEnd.run("F2", slots: 1) { tools in
            let queue = tools.queue(limit: 1, isSuspended: true)
            let operations = [
                tools.operation("1", .normal), tools.operation("2", .low),
                tools.operation("3", .veryHigh), tools.operation("4", .veryLow),
            ]
            try await queue.add(operations)
            try await queue.resume()
            try await tools.untilFinished(operations)
            #expect(tools.journal.startOrder == ["3", "1", "2", "4"])
            #expect(tools.journal.peak == 1)
        }
    }

    @Test(arguments: BackEnd.all)
    func `F3 it executes while it runs, not before and not after`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.run("F3", slots: 1) { tools in
            let gate = tools.gate()
            let operation = tools.operation("a", behind: gate)
            #expect(try await !operation.isExecuting)
            try await tools.queue().add(operation)
            try await tools.untilStarted("a")
            try await operation.waitUntilExecuting()
            gate.open()
            try await operation.waitUntilFinished()
            #expect(try await !operation.isExecuting)
            #expect(try await operation.isFinished)
        }
    }

    /// Foundation's asynchronous operation, a class that says itself when it executes and when it
    /// has finished, is here what every operation is: one whose `main` awaits.
    @Test(arguments: BackEnd.all)
    func `F4 an operation that awaits ends when that is over`(backEnd: BackEnd) async throws {
        try await backEnd.run("F4", slots: 1) { tools in
            var play = tools.play("a")
            play.doze = 20
            let operation = tools.operation(play)
            #expect(try await !operation.isExecuting)
            #expect(try await !operation.isFinished)
            try await tools.queue().add(operation)
            try await operation.waitUntilFinished()
            #expect(try await operation.isFinished)
            #expect(try await !operation.isExecuting)
            #expect(tools.journal.finishOrder == ["a"])
        }
    }

    @Test(arguments: BackEnd.local)
    func `F5 started by hand it runs in the calling task`(backEnd: BackEnd) async throws {
        try await backEnd.run("F5") { tools in
            var play = tools.play("a")
            play.result = "done"
            let operation = tools.operation(play)
            try await operation.start()
            #expect(try await operation.isFinished)
            #expect(operation.resultIfKnown == "done")
            #expect(tools.journal.finishOrder == ["a"])
        }
    }

    /// Foundation asks twice for the main queue. Here a queue that is known by its name is the one
    /// that everybody has.
    @Test(arguments: BackEnd.all)
    func `F6 a queue that is asked for twice is one queue`(backEnd: BackEnd) async throws {
        try await backEnd.run("F6", slots: 1) { tools in
            let queue = tools.queue()
            let again = try tools.other(queue)
            #expect(queue.name == again.name)
            #expect(try await !queue.isSuspended)
            #expect(try await !again.isSuspended)
            try await queue.suspend()
            #expect(try await again.isSuspended)
            try await again.resume()
            #expect(try await !queue.isSuspended)
        }
    }

    @Test(arguments: BackEnd.all)
    func `F7 one that is cancelled before it starts never runs`(backEnd: BackEnd) async throws {
        try await backEnd.run("F7", slots: 1) { tools in
            let queue = tools.queue(limit: 1)
            let gate = tools.gate()
            let first = tools.operation("1", behind: gate)
            let others = tools.operations(["2", "3", "4", "5"])
            try await queue.add([first] + others)
            try await others[1].cancel()
            #expect(try await others[1].isCancelled)
            gate.open()
            try await tools.untilFinished([first] + others)
            #expect(tools.journal.startOrder == ["1", "2", "4", "5"])
            #expect(try await others[1].isFinished)
            if let cancelled = others[1] as? OperonOperation {
                #expect(cancelled.handle.outcomeIfKnown == .cancelled(reason: ""))
            }
        }
    }

    @Test(arguments: BackEnd.all)
    func `F10 it sees the queue that it was added to`(backEnd: BackEnd) async throws {
        try await backEnd.run("F10", slots: 1) { tools in
            let queue = tools.queue()
            let operation = tools.operation("a")
            try await queue.add(operation)
            try await operation.waitUntilFinished()
            #expect(tools.journal.lines.map(\.queue).allSatisfy { $0 == queue.name })
        }
    }

    /// Foundation's queue has a dispatch queue under it. Ours are no objects of the broker
    /// (`docs/PROTOCOL.md`): what may be chosen there is the prefix of all names, and an operation
    /// sees the name of its queue whatever the prefix is.
    @Test(arguments: BackEnd.remote)
    func `F12 its queue keeps its name whatever lies under it`(backEnd: BackEnd) async throws {
        try await backEnd.run("F12", slots: 1) { tools in
            let queue = tools.queue()
            let operation = tools.operation("a")
            try await queue.add(operation)
            try await operation.waitUntilFinished()
            let prefix = try await SharedCluster.of(backEnd).prefix
            #expect(!prefix.isEmpty)
            #expect(!queue.name.hasPrefix(prefix))
            #expect(tools.journal.lines.map(\.queue).allSatisfy { $0 == queue.name })
        }
    }

    @Test(arguments: BackEnd.all)
    func `F13 a suspended queue starts nothing until it is resumed`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.run("F13", slots: 2) { tools in
            let queue = tools.queue(isSuspended: true)
            let operation = tools.operation("a")
            try await queue.add(operation)
            try await tools.fence()
            #expect(!tools.journal.hasStarted("a"))
            #expect(try await queue.isSuspended)
            try await tools.other(queue).resume()
            try await operation.waitUntilFinished()
            #expect(tools.journal.finishOrder.last == "a")
        }
    }

    @Test(arguments: BackEnd.all)
    func `F15 a dependency is listed`(backEnd: BackEnd) async throws {
        try await backEnd.run("F15", slots: 1) { tools in
            let queue = tools.queue(isSuspended: true)
            let (a, b) = (tools.operation("a"), tools.operation("b"))
            try await b.addDependency(a)
            #expect(try await b.dependencyNames.count == 1)
            try await queue.add(a, b)
            #expect(try await b.dependencyNames == ["a"])
            if let b = b as? OperonOperation, let id = b.handle.id {
                let seen = try await tools.otherCluster.handle(id, of: Play.self)
                #expect(try await seen.dependencies.map(\.id) == b.handle.dependencies.map(\.id))
                #expect(try await seen.dependencies.count == 1)
            }
        }
    }

    @Test(arguments: BackEnd.all)
    func `F19 a dependency holds across queues`(backEnd: BackEnd) async throws {
        try await backEnd.run("F19", slots: 2) { tools in
            let (first, second) = (tools.queue("first"), tools.queue("second"))
            let gate = tools.gate()
            let (a, b) = (tools.operation("a", behind: gate), tools.operation("b"))
            try await b.addDependency(a)
            try await first.add(a)
            try await second.add(b)
            try await tools.untilStarted("a")
            // With one slot, which “a” has, nothing else could start anyway.
            if backEnd.slots > 1 { try await tools.fence() }
            #expect(!tools.journal.hasStarted("b"))
            gate.open()
            try await tools.untilFinished(a, b)
            #expect(tools.journal.runs("b", after: "a"))
        }
    }

    @Test(arguments: BackEnd.all)
    func `F21 with a limit of one they start in the order of adding`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.run("F21", slots: 1) { tools in
            let queue = tools.queue(limit: 1, isSuspended: true)
            let operations = tools.operations(["1", "2", "3", "4", "5"])
            for operation in operations { try await queue.add(operation) }
            try await queue.resume()
            try await tools.untilFinished(operations)
            #expect(tools.journal.startOrder == ["1", "2", "3", "4", "5"])
            #expect(tools.journal.peak == 1)
        }
    }

    @Test(arguments: BackEnd.all)
    func `F23 a dependency runs before its dependent, and others run too`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.run("F23", slots: 2) { tools in
            let operations = tools.operations(["dependent", "dependency", "other"])
            try await operations[0].addDependency(operations[1])
            try await tools.queue().add(operations)
            try await tools.untilFinished(operations)
            #expect(tools.journal.runs("dependent", after: "dependency"))
            #expect(Set(tools.journal.finishOrder) == ["dependent", "dependency", "other"])
        }
    }

    /// Foundation's main queue is that of the main thread. What stays with the submitter here is a
    /// block, and it sees the queue that it was added to.
    @Test(arguments: BackEnd.operon)
    func `F9 what runs here sees its queue`(backEnd: BackEnd) async throws {
        try await backEnd.run("F9", slots: 1) { tools in
            let queue = try tools.operonQueue()
            let block = try await queue.addLocal { $0.queueName }
            #expect(try await tools.patiently { try await block.value } == queue.name)
        }
    }

    /// The blocks of one operation are a group of operations here, which run side by side.
    @Test(arguments: BackEnd.operon)
    func `F31 a group has ended when all of its parts have`(backEnd: BackEnd) async throws {
        try await backEnd.run("F31", slots: 2) { tools in
            let queue = try tools.operonQueue()
            let gate = tools.gate()
            let group = GroupHandle("group") {
                tools.play("a")
                tools.play("b", behind: gate)
            }
            #expect(group.parts.count == 2)
            try await queue.addOperation(group)
            try await tools.untilStarted("b")
            #expect(group.outcomeIfKnown == nil)
            gate.open()
            #expect(try await tools.end(of: group) == .succeeded)
            #expect(Set(tools.journal.finishOrder) == ["a", "b"])
        }
    }
}
