import ConformanceKit
import Operon
import Testing

/// The tests of PSOperations.
@Suite struct C3Rows {
    @Test(arguments: BackEnd.all)
    func `P1 several dependencies are listed`(backEnd: BackEnd) async throws {
        try await backEnd.play("P1", slots: 1) { stage in
            let operation = stage.operation("dependent")
            let dependencies = stage.operations(["a", "b", "c"])
            for dependency in dependencies { try await operation.addDependency(dependency) }
            #expect(try await operation.dependencyNames.count == 3)
            try await stage.queue(isSuspended: true).add(dependencies + [operation])
            #expect(try await operation.dependencyNames == ["a", "b", "c"])
        }
    }

    @Test(arguments: BackEnd.operon)
    func `P2 an operation with options runs as any other`(backEnd: BackEnd) async throws {
        try await backEnd.play("P2", slots: 1) { stage in
            var options = OperationOptions(name: "named", timeout: .seconds(60))
            options.retry = RetryPolicy(limit: 2)
            options.summary = "runs as any other"
            let queue = try stage.operonQueue()
            let handle = try await queue.addOperation(stage.play("a"), options: options)
            #expect(handle.name.hasPrefix("named"))
            _ = try await stage.value(of: handle)
            #expect(stage.journal.finishOrder == ["a"])
        }
    }

    @Test(arguments: BackEnd.all)
    func `P7 without a condition a dependency still holds`(backEnd: BackEnd) async throws {
        try await backEnd.play("P7", slots: 2) { stage in
            let (a, b) = (stage.operation("a"), stage.operation("b"))
            try await b.addDependency(a)
            try await stage.queue().add(b, a)
            try await stage.untilFinished(a, b)
            #expect(stage.journal.runs("b", after: "a"))
        }
    }

    @Test(arguments: BackEnd.operon)
    func `P10 a delayed one does not start before its time`(backEnd: BackEnd) async throws {
        try await backEnd.play("P10", slots: 1) { stage in
            let options = OperationOptions(delay: .milliseconds(100))
            let added = JournalLine.now()
            let queue = try stage.operonQueue()
            let handle = try await queue.addOperation(stage.play("a"), options: options)
            _ = try await stage.value(of: handle)
            let start = try #require(stage.journal.runs.first?.start.time)
            #expect(start - added >= 100_000_000)
        }
    }

    @Test(arguments: BackEnd.operon)
    func `P11 no delay and less than none are one`(backEnd: BackEnd) async throws {
        try await backEnd.play("P11", slots: 1) { stage in
            let queue = try stage.operonQueue()
            for delay in [Duration.zero, .seconds(-3_600)] {
                let options = OperationOptions(delay: delay)
                let play = stage.play("\(delay)")
                let handle = try await queue.addOperation(play, options: options)
                _ = try await stage.value(of: handle)
            }
            #expect(stage.journal.finishOrder.count == 2)
        }
    }

    @Test(arguments: BackEnd.all)
    func `P19 one whose dependency was cancelled runs`(backEnd: BackEnd) async throws {
        try await backEnd.play("P19", slots: 1) { stage in
            let queue = stage.queue(isSuspended: true)
            let (a, b) = (stage.operation("a"), stage.operation("b"))
            try await b.addDependency(a)
            try await queue.add(a, b)
            try await a.cancel()
            try await queue.resume()
            try await stage.untilFinished(a, b)
            #expect(stage.journal.startOrder == ["b"])
            #expect(try await a.isCancelled)
            #expect(try await !b.isCancelled)
        }
    }

    /// Foundation keeps a cancelled one in a suspended queue until that is resumed; here it has
    /// ended at once.
    @Test(arguments: BackEnd.all)
    func `P20 a cancelled one leaves its queue`(backEnd: BackEnd) async throws {
        try await backEnd.play("P20", slots: 1) { stage in
            let queue = stage.queue(limit: 1, isSuspended: true)
            let (a, b) = (stage.operation("a"), stage.operation("b"))
            try await queue.add(a, b)
            try await a.cancel()
            if a is OperonOperation {
                try await a.waitUntilFinished()
                #expect(try await queue.operationCount == 1)
            }
            try await queue.resume()
            try await queue.waitUntilEmpty()
            #expect(try await queue.operationCount == 0)
            #expect(stage.journal.startOrder == ["b"])
        }
    }

    @Test(arguments: BackEnd.all)
    func `P21 cancelled before its start it has ended and was cancelled`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.play("P21", slots: 1) { stage in
            let queue = stage.queue(isSuspended: true)
            let a = stage.operation("a")
            try await queue.add(a)
            try await a.cancel()
            try await queue.resume()
            try await a.waitUntilFinished()
            #expect(try await a.isCancelled)
            #expect(try await a.isFinished)
            #expect(try await !a.isExecuting)
            #expect(!stage.journal.hasStarted("a"))
        }
    }

    @Test(arguments: BackEnd.operon)
    func `P23 somebody else sees it start, add another and end`(
        backEnd: BackEnd
    ) async throws {
        try await backEnd.play("P23", slots: 2) { stage in
            let gate = stage.gate()
            let before = try await stage.place()
            // It becomes a name in the graph.
            let child = stage.name("child")
            let parent = Produce(stage.play("parent", behind: gate), child: stage.play(child))
            let handle = try await stage.operonQueue().addOperation(parent)
            let id = try #require(handle.id)
            let watcher = try await stage.otherCluster.handle(id, of: Produce.self)
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
            try await stage.journal.wait(for: "the child", within: backEnd.patience) { lines in
                lines.contains { $0.operation == child && $0.event == .finished }
            }
        }
    }

    @Test(arguments: BackEnd.all)
    func `P26 a completion block is called, late or not`(backEnd: BackEnd) async throws {
        try await backEnd.play("P26", slots: 1) { stage in
            let operation = stage.operation("a")
            let calls = Counter()
            operation.onCompletion { calls.increment() }
            try await stage.queue().add(operation)
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
        try await backEnd.play("P29", slots: 2) { stage in
            let queue = stage.queue()
            let gate = stage.gate()
            let (long, quick) = (stage.operation("long", behind: gate), stage.operation("quick"))
            try await queue.add(long, quick)
            try await quick.waitUntilFinished()
            #expect(stage.journal.finishOrder == ["quick"])
            if queue is OperonQueue { #expect(try await queue.operationCount == 1) }
            gate.open()
            try await long.waitUntilFinished()
        }
    }

    @Test(arguments: BackEnd.all)
    func `P32 with a limit of one all of them run`(backEnd: BackEnd) async throws {
        try await backEnd.play("P32", slots: 1) { stage in
            let queue = stage.queue()
            try await queue.setLimit(1)
            let operations = stage.operations(["a", "b", "c"])
            try await queue.add(operations)
            try await stage.untilFinished(operations)
            #expect(stage.journal.finishOrder == ["a", "b", "c"])
            #expect(stage.journal.peak == 1)
        }
    }

    @Test(arguments: BackEnd.operon)
    func `P33 what it throws arrives equal`(backEnd: BackEnd) async throws {
        try await backEnd.play("P33", slots: 1) { stage in
            var play = stage.play("a")
            play.failure = Sorry(reason: "es regnet, 雨")
            let handle = try await stage.operonQueue().addOperation(play)
            await #expect(throws: Sorry(reason: "es regnet, 雨")) {
                try await stage.value(of: handle)
            }
        }
    }

    @Test(arguments: BackEnd.operon)
    func `P34 why it was cancelled is a part of how it ended`(backEnd: BackEnd) async throws {
        try await backEnd.play("P34", slots: 1) { stage in
            let queue = try stage.operonQueue(isSuspended: true)
            let handle = try await queue.addOperation(stage.play("a"))
            try await handle.cancel(reason: "not wanted any more")
            let outcome = Outcome.cancelled(reason: "not wanted any more")
            #expect(try await stage.end(of: handle) == outcome)
            let id = try #require(handle.id)
            let other = try await stage.otherCluster.handle(id, of: Play.self)
            #expect(try await stage.end(of: other) == outcome)
        }
    }
}
