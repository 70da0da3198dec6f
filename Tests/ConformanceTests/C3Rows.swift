import ConformanceKit
import Operon
import Testing

/// The tests of PSOperations.
@Suite struct C3Rows {
    @Test(arguments: BackEnd.all)
    func `P1 several dependencies are listed`(backEnd: BackEnd) async throws {
        try await backEnd.run("P1", slots: 1) { tools in
            let operation = tools.operation("dependent")
            let dependencies = tools.operations(["a", "b", "c"])
            for dependency in dependencies { try await operation.addDependency(dependency) }
            #expect(try await operation.dependencyNames.count == 3)
            try await tools.queue(isSuspended: true).add(dependencies + [operation])
            #expect(try await operation.dependencyNames == ["a", "b", "c"])
        }
    }

    @Test(arguments: BackEnd.operon)
    func `P2 an operation with options runs as any other`(backEnd: BackEnd) async throws {
        try await backEnd.run("P2", slots: 1) { tools in
            var options = OperationOptions(name: "named", timeout: .seconds(60))
            options.retry = RetryPolicy(limit: 2)
            options.summary = "runs as any other"
            let queue = try tools.operonQueue()
            let handle = try await queue.addOperation(tools.play("a"), options: options)
            #expect(handle.name.hasPrefix("named"))
            _ = try await tools.value(of: handle)
            #expect(tools.journal.finishOrder == ["a"])
        }
    }

    @Test(arguments: BackEnd.all)
    func `P7 without a condition a dependency still holds`(backEnd: BackEnd) async throws {
        try await backEnd.run("P7", slots: 2) { tools in
            let (a, b) = (tools.operation("a"), tools.operation("b"))
            try await b.addDependency(a)
            try await tools.queue().add(b, a)
            try await tools.untilFinished(a, b)
            #expect(tools.journal.runs("b", after: "a"))
        }
    }

    @Test(arguments: BackEnd.operon)
    func `P10 a delayed one does not start before its time`(backEnd: BackEnd) async throws {
        try await backEnd.run("P10", slots: 1) { tools in
            let options = OperationOptions(delay: .milliseconds(100))
            let added = JournalLine.now()
            let queue = try tools.operonQueue()
            let handle = try await queue.addOperation(tools.play("a"), options: options)
            _ = try await tools.value(of: handle)
            let start = try #require(tools.journal.runs.first?.start.time)
            #expect(start - added >= 100_000_000)
        }
    }

    @Test(arguments: BackEnd.operon)
    func `P11 no delay and less than none are one`(backEnd: BackEnd) async throws {
        try await backEnd.run("P11", slots: 1) { tools in
            let queue = try tools.operonQueue()
            for delay in [Duration.zero, .seconds(-3_600)] {
                let options = OperationOptions(delay: delay)
                let play = tools.play("\(delay)")
                let handle = try await queue.addOperation(play, options: options)
                _ = try await tools.value(of: handle)
            }
            #expect(tools.journal.finishOrder.count == 2)
        }
    }

    @Test(arguments: BackEnd.all)
    func `P19 one whose dependency was cancelled runs`(backEnd: BackEnd) async throws {
        try await backEnd.run("P19", slots: 1) { tools in
            let queue = tools.queue(isSuspended: true)
            let (a, b) = (tools.operation("a"), tools.operation("b"))
            try await b.addDependency(a)
            try await queue.add(a, b)
            try await a.cancel()
            try await queue.resume()
            try await tools.untilFinished(a, b)
            #expect(tools.journal.startOrder == ["b"])
            #expect(try await a.isCancelled)
            #expect(try await !b.isCancelled)
        }
    }

    /// Foundation keeps a cancelled one in a suspended queue until that is resumed; here it has
    /// ended at once.
    @Test(arguments: BackEnd.all)
    func `P20 a cancelled one leaves its queue`(backEnd: BackEnd) async throws {
        try await backEnd.run("P20", slots: 1) { tools in
            let queue = tools.queue(limit: 1, isSuspended: true)
            let (a, b) = (tools.operation("a"), tools.operation("b"))
            try await queue.add(a, b)
            try await a.cancel()
            if a is OperonOperation {
                try await a.waitUntilFinished()
                #expect(try await queue.operationCount == 1)
            }
            try await queue.resume()
            try await queue.waitUntilEmpty()
            #expect(try await queue.operationCount == 0)
            #expect(tools.journal.startOrder == ["b"])
        }
    }

    @Test(arguments: BackEnd.all)
    func `P21 cancelled before its start it has ended and was cancelled`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.run("P21", slots: 1) { tools in
            let queue = tools.queue(isSuspended: true)
            let a = tools.operation("a")
            try await queue.add(a)
            try await a.cancel()
            try await queue.resume()
            try await a.waitUntilFinished()
            #expect(try await a.isCancelled)
            #expect(try await a.isFinished)
            #expect(try await !a.isExecuting)
            #expect(!tools.journal.hasStarted("a"))
        }
    }

    @Test(arguments: BackEnd.operon)
    func `P22 one that cancels itself while it runs has ended as cancelled`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.run("P22", slots: 1) { tools in
            let queue = tools.queue()
            var play = tools.play("a")
            play.givesUp = true
            let a = tools.operation(play)
            try await queue.add(a)
            try await a.waitUntilFinished()
            #expect(try await a.isCancelled)
            #expect(try await a.isFinished)
            #expect(tools.journal.hasStarted("a"))
            try await queue.waitUntilEmpty()
            #expect(try await queue.operationCount == 0)
        }
    }

    @Test(arguments: BackEnd.operon)
    func `P23 somebody else sees it start, add another and end`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.run("P23", slots: 2) { tools in
            let gate = tools.gate()
            let before = try await tools.place()
            // It becomes a name in the graph.
            let child = tools.name("child")
            let parent = Produce(tools.play("parent", behind: gate), child: tools.play(child))
            let handle = try await tools.operonQueue().addOperation(parent)
            let id = try #require(handle.id)
            let watcher = try await tools.otherCluster.handle(id, of: Produce.self)
            try await within(backEnd.patience, "nobody saw it") {
                for try await event in watcher.events {
                    switch event.kind {
                    case .started, .state(.executing): gate.open()
                    default: continue
                    }
                }
            }
            let kinds = try await within(backEnd.patience, "not all was told") {
                var kinds: [OperationEvent.Kind] = []
                for try await event in watcher.events(after: before) {
                    switch event.kind {
                    case .started, .added, .finished: kinds.append(event.kind)
                    default: continue
                    }
                }
                return kinds
            }
            if backEnd.isMortal {
                #expect(kinds.first == .started)
                #expect(kinds.filter { $0 == .added }.count == 1)
                #expect(kinds.last == .finished(.succeeded))
            } else {
                #expect(kinds == [.started, .added, .finished(.succeeded)])
            }
            try await tools.journal.wait(for: "the child", within: backEnd.patience) { lines in
                lines.contains { $0.operation == child && $0.event == .finished }
            }
        }
    }

    @Test(arguments: BackEnd.all)
    func `P26 a completion block is called, late or not`(backEnd: BackEnd) async throws {
        try await backEnd.run("P26", slots: 1) { tools in
            let operation = tools.operation("a")
            let calls = Counter()
            operation.onCompletion { calls.increment() }
            try await tools.queue().add(operation)
            try await within(backEnd.patience, "no call") { await calls.happens() }
            #expect(try await operation.isFinished)
            #expect(calls.count == 1)
            // Foundation loses the one that comes late.
            guard operation is OperonOperation else { return }
            let lateCalls = Counter()
            operation.onCompletion { lateCalls.increment() }
            #expect(lateCalls.count == 1)
        }
    }

    @Test(arguments: BackEnd.all.filter { $0.slots > 1 })
    func `P29 a long one holds up nobody`(backEnd: BackEnd) async throws {
        try await backEnd.run("P29", slots: 2) { tools in
            let queue = tools.queue()
            let gate = tools.gate()
            let (long, quick) = (tools.operation("long", behind: gate), tools.operation("quick"))
            try await queue.add(long, quick)
            try await quick.waitUntilFinished()
            #expect(tools.journal.finishOrder == ["quick"])
            if queue is OperonQueue { #expect(try await queue.operationCount == 1) }
            gate.open()
            try await long.waitUntilFinished()
        }
    }

    @Test(arguments: BackEnd.all)
    func `P32 with a limit of one all of them run`(backEnd: BackEnd) async throws {
        try await backEnd.run("P32", slots: 1) { tools in
            let queue = tools.queue()
            try await queue.setLimit(1)
            let operations = tools.operations(["a", "b", "c"])
            try await queue.add(operations)
            try await tools.untilFinished(operations)
            #expect(tools.journal.finishOrder == ["a", "b", "c"])
            #expect(tools.journal.peak == 1)
        }
    }

    @Test(arguments: BackEnd.operon)
    func `P33 what it throws arrives equal`(backEnd: BackEnd) async throws {
        try await backEnd.run("P33", slots: 1) { tools in
            var play = tools.play("a")
            play.failure = Sorry(reason: "es regnet, 雨")
            let handle = try await tools.operonQueue().addOperation(play)
            await #expect(throws: Sorry(reason: "es regnet, 雨")) {
                try await tools.value(of: handle)
            }
        }
    }

    @Test(arguments: BackEnd.operon)
    func `P34 why it was cancelled is a part of how it ended`(backEnd: BackEnd) async throws {
        try await backEnd.run("P34", slots: 1) { tools in
            let queue = try tools.operonQueue(isSuspended: true)
            let handle = try await queue.addOperation(tools.play("a"))
            try await handle.cancel(reason: "not wanted any more")
            let outcome = Outcome.cancelled(reason: "not wanted any more")
            #expect(try await tools.end(of: handle) == outcome)
            let id = try #require(handle.id)
            let other = try await tools.otherCluster.handle(id, of: Play.self)
            #expect(try await tools.end(of: other) == outcome)
        }
    }

    @Test(arguments: BackEnd.operon)
    func `P38 what somebody else completes has ended when they say so`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.run("P38", slots: 1) { tools in
            let queue = try tools.operonQueue()
            let handle = try ExternalOperationHandle(String.self)
            try await queue.addOperation(handle)
            let dependent = try await queue.addOperation(tools.play("a"), after: [handle])
            try await tools.patiently {
                for try await event in handle.events {
                    if [.started, .state(.executing)].contains(event.kind) { return }
                }
            }
            try await tools.fence()
            #expect(!tools.journal.hasStarted("a"))
            let id = try #require(handle.id)
            try await tools.otherCluster.complete(id, with: .succeeded("approved"))
            #expect(try await tools.patiently { try await handle.value } == "approved")
            _ = try await tools.value(of: dependent)
            #expect(tools.journal.finishOrder.last == "a")
        }
    }

    // MARK: - Blocks and groups

    @Test(arguments: BackEnd.operon)
    func `P3 a block is run by its name`(backEnd: BackEnd) async throws {
        try await backEnd.run("P3", slots: 1) { tools in
            // Workers elsewhere know it.
            if backEnd == .inProcess { try await tools.cluster.register(shout) }
            let handle = try await tools.operonQueue().addOperation("shout", "hello")
            let value = try await tools.patiently { try await handle.value(as: String.self) }
            #expect(value == "HELLO")
        }
    }

    @Test(arguments: BackEnd.operon)
    func `P8 a group has ended after its members, and before what depends on it`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.run("P8", slots: 2) { tools in
            let queue = try tools.operonQueue()
            let gate = tools.gate()
            let group = GroupHandle([
                OperationHandle(tools.play("a", behind: gate)),
                OperationHandle(tools.play("b", behind: gate)),
            ])
            let dependent = OperationHandle(tools.play("dependent")).after(group)
            try await queue.addOperations([group, dependent])
            // Side by side, where there is room for both.
            try await tools.untilStarts(min(2, backEnd.slots))
            gate.open()
            #expect(try await tools.end(of: group) == .succeeded)
            _ = try await tools.value(of: dependent)
            #expect(tools.journal.runs("dependent", after: "a"))
            #expect(tools.journal.runs("dependent", after: "b"))
        }
    }

    // MARK: - Conditions

    @Test(arguments: BackEnd.operon)
    func `P4 one whose condition holds runs`(backEnd: BackEnd) async throws {
        try await backEnd.run("P4", slots: 1) { tools in
            let condition = Says(true, asked: tools.play("asked"))
            let operation = Conditional(tools.play("a"), condition)
            let handle = try await tools.operonQueue().addOperation(operation)
            _ = try await tools.value(of: handle)
            #expect(tools.journal.finishOrder == ["asked", "a"])
            if !backEnd.isMortal { #expect(tools.journal.runs(of: "asked").count == 1) }
        }
    }

    /// There a condition that fails cancels; here it is an error of its own.
    @Test(arguments: BackEnd.operon)
    func `P15 a silent condition brings nothing along`(backEnd: BackEnd) async throws {
        try await backEnd.run("P15", slots: 1) { tools in
            var condition = Says(false, asked: tools.play("asked"))
            condition.brings = tools.play("brought")
            let queue = try tools.operonQueue()
            let silent = Conditional(tools.play("a"), condition, .silent)
            let handle = try await queue.addOperation(silent)
            #expect(
                try await tools.end(of: handle) == .failed(.conditionFailed(name: "Says"))
            )
            #expect(tools.journal.startOrder == ["asked"])
            // One that is not silent does.
            let plain = Conditional(tools.play("a"), condition)
            try await tools.end(of: try await queue.addOperation(plain))
            #expect(tools.journal.startOrder == ["asked", "brought"])
        }
    }

    @Test(arguments: BackEnd.operon)
    func `P16 the opposite of what holds does not`(backEnd: BackEnd) async throws {
        try await backEnd.run("P16", slots: 1) { tools in
            let condition = Says(true, asked: tools.play("asked"))
            let operation = Conditional(tools.play("a"), condition, .negated)
            let handle = try await tools.operonQueue().addOperation(operation)
            #expect(
                try await tools.end(of: handle) == .failed(.conditionFailed(name: "not Says"))
            )
            #expect(!tools.journal.hasStarted("a"))
        }
    }

    @Test(arguments: BackEnd.operon)
    func `P17 the opposite of what does not hold does`(backEnd: BackEnd) async throws {
        try await backEnd.run("P17", slots: 1) { tools in
            let condition = Says(false, asked: tools.play("asked"))
            let operation = Conditional(tools.play("a"), condition, .negated)
            let handle = try await tools.operonQueue().addOperation(operation)
            _ = try await tools.value(of: handle)
            #expect(tools.journal.finishOrder == ["asked", "a"])
        }
    }

    @Test(arguments: BackEnd.operon)
    func `P35 an error says which condition it was`(backEnd: BackEnd) async throws {
        try await backEnd.run("P35", slots: 1) { tools in
            let condition = Says(false, asked: tools.play("asked"))
            let operation = Conditional(tools.play("a"), condition)
            let handle = try await tools.operonQueue().addOperation(operation)
            await #expect(throws: OperationError.conditionFailed(name: "Says")) {
                try await tools.value(of: handle)
            }
        }
    }

    @Test func `P36–37 what came of a condition is the same after a journey`() throws {
        let results: [ConditionResult] = [
            .satisfied, .failed, .notYet(recheckAfter: .seconds(3)),
        ]
        for result in results { #expect(try arrives(result) == result) }
        let error = OperationError.conditionFailed(name: "free space")
        #expect(try arrives(error) == error)
    }
}
