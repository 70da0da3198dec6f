import ConformanceKit
import Operon
import Testing

/// The tests of Cappuccino.
@Suite struct C4Rows {
    /// Linux Foundation releases nobody whose dependency was removed; so this one is ours alone.
    @Test(arguments: BackEnd.operon)
    func `CA1 a dependency can be removed, and removed again`(backEnd: BackEnd) async throws {
        try await backEnd.run("CA1", slots: 1) { tools in
            let (a, b) = (tools.operation("a"), tools.operation("b"))
            try await b.addDependency(a)
            try await b.removeDependency(a)
            try await b.removeDependency(a)
            #expect(try await b.dependencyNames == [])
            try await b.addDependency(a)
            // The same of operations that were added.
            try await tools.queue("suspended", isSuspended: true).add(a)
            let queue = tools.queue(isSuspended: true)
            try await queue.add(b)
            #expect(try await b.dependencyNames == ["a"])
            try await b.removeDependency(a)
            try await b.removeDependency(a)
            #expect(try await b.dependencyNames == [])
            try await queue.resume()
            try await b.waitUntilFinished()
            #expect(!tools.journal.hasStarted("a"))
        }
    }

    @Test(arguments: BackEnd.operon)
    func `CA4 a queue tells what happens to it`(backEnd: BackEnd) async throws {
        try await backEnd.run("CA4", slots: 1) { tools in
            let queue = try tools.operonQueue()
            let other = OperationQueue(name: queue.name, cluster: try tools.otherCluster)
            let before = try await tools.place()
            try await queue.setMaxConcurrentOperationCount(3)
            try await queue.suspend()
            try await queue.addOperation(tools.play("a"))
            try await queue.resume()
            let kinds = try await within(backEnd.patience, "it did not tell") {
                var kinds: [OperationEvent.Kind] = []
                for try await event in other.events(after: before) {
                    kinds.append(event.kind)
                    if case .finished = event.kind { break }
                }
                return kinds
            }
            #expect(kinds.filter { $0 == .suspended || $0 == .resumed } == [.suspended, .resumed])
            #expect(kinds.contains(.queueChanged))
            #expect(kinds.last == .finished(.succeeded))
        }
    }

    @Test(arguments: BackEnd.all)
    func `CA5 of a cancelled one nothing runs`(backEnd: BackEnd) async throws {
        try await backEnd.run("CA5", slots: 1) { tools in
            let (a, b) = (tools.operation("a"), tools.operation("b"))
            try await a.cancel()
            #expect(try await a.isCancelled)
            #expect(try await !a.isFinished)
            // It ends as soon as it is added.
            try await tools.queue().add(a, b)
            try await tools.untilFinished(a, b)
            #expect(try await a.isFinished)
            #expect(try await a.isCancelled)
            #expect(tools.journal.startOrder == ["b"])
        }
    }

    @Test(arguments: BackEnd.operon)
    func `CA6 one that throws has ended, and runs no more`(backEnd: BackEnd) async throws {
        try await backEnd.run("CA6", slots: 1) { tools in
            var play = tools.play("a")
            play.failure = Sorry(reason: "rain")
            let handle = try await tools.operonQueue().addOperation(play)
            let outcome = try await tools.end(of: handle)
            guard case .failed(.thrown(let type, _, _)) = outcome else {
                Issue.record("\(outcome)")
                return
            }
            #expect(type == "Sorry")
            try await tools.fence()
            if !backEnd.isMortal { #expect(tools.journal.runs(of: "a").count == 1) }
        }
    }

    @Test(arguments: BackEnd.all)
    func `CA7 priority first, then the order of adding`(backEnd: BackEnd) async throws {
        try await backEnd.run("CA7", slots: 1) { tools in
            let queue = tools.queue(limit: 1, isSuspended: true)
            let first = [
                tools.operation("low", .low), tools.operation("normal", .normal),
                tools.operation("also normal", .normal), tools.operation("high", .high),
            ]
            try await queue.add(first)
            let later = [
                tools.operation("very low", .veryLow), tools.operation("very high", .veryHigh),
            ]
            try await queue.add(later)
            try await queue.resume()
            try await tools.untilFinished(first + later)
            #expect(
                tools.journal.startOrder
                    == ["very high", "high", "normal", "also normal", "low", "very low"]
            )
        }
    }
}
