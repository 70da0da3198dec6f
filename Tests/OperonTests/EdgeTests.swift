import Foundation
import Operon
import OperonModel
import OperonRuntime
import Testing

/// What nobody plans for, and everybody meets.
@Suite(.timeLimit(.minutes(5))) struct EdgeTests {
    private func withCluster(
        isolation: isolated (any Actor)? = #isolation,
        _ body: (Operon.Cluster) async throws -> Void
    ) async throws {
        let cluster = Cluster.inProcess(slots: 2)
        try await body(cluster)
        await cluster.close(within: .zero)
    }

    @Test func `an event of a trigger names it, and the firing`() async throws {
        try await withCluster { cluster in
            let folder = FileManager.default.temporaryDirectory
                .appending(path: UUID().uuidString)
            defer { try? FileManager.default.removeItem(at: folder) }
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            for (name, text) in [
                ("graph.yaml", "operations: { a: { operation: nothing } }"),
                ("trigger.yaml", "{ name: fire, on: { event: {} }, graph: graph.yaml }"),
            ] {
                try Data(text.utf8).write(to: folder.appending(path: name))
            }
            try await cluster.triggers.add(contentsOf: folder.appending(path: "trigger.yaml").path)
            try await cluster.triggers.fire("fire")
            try await cluster.triggers.fire("fire")
            var fired: [OperationEvent] = []
            for try await event in cluster.events(after: 0) {
                if event.kind == .other("triggerFired") { fired.append(event) }
                if fired.count == 2 { break }
            }
            #expect(fired.map(\.triggerName) == ["fire", "fire"])
            #expect(fired.map(\.firing) == [1, 2])
        }
    }

    @Test func eventsAfterTheLastOneHaveEnded() async throws {
        try await withCluster { cluster in
            let queue = OperationQueue(cluster: cluster)
            let handle = try await queue.addOperation(Nothing())
            try await handle.waitUntilFinished()
            var seen: [OperationEvent] = []
            for try await event in handle.events(after: 0) { seen.append(event) }
            let last = try #require(seen.last)
            #expect(last.kind == .finished(.succeeded))
            let other = try await queue.addOperation(Nothing())
            try await other.waitUntilFinished()
            for sequence in [last.sequence, last.sequence + 1, .max] {
                for try await event in handle.events(after: sequence) {
                    Issue.record("after \(sequence): \(event)")
                }
            }
            // From its middle on.
            var rest: [OperationEvent.Kind] = []
            for try await event in handle.events(after: seen[0].sequence) {
                rest.append(event.kind)
            }
            #expect(rest == seen.dropFirst().map(\.kind))
        }
    }

    /// In this process, and on a cluster.
    private func withBothScopes(
        isolation: isolated (any Actor)? = #isolation,
        _ body: (Operon.Cluster) async throws -> Void
    ) async throws {
        try await withCluster { cluster in
            try await body(cluster)
            let embedded = try #require(await cluster.embedded)
            try await RemoteCluster.serve(embedded.client) { url in
                let far = Cluster.remote(url)
                try await body(far)
                await far.close(within: .zero)
            }
        }
    }

    @Test func `removing a dependency that there is not changes nothing`() async throws {
        try await withBothScopes { cluster in
            let queue = OperationQueue(cluster: cluster)
            let gate = try ExternalOperationHandle(Int.self)
            let handle = OperationHandle(Nothing())
            try await handle.addDependency(gate)
            try await queue.addOperations([gate, handle])
            let unknown = OperationHandle(Nothing())
            let other = Cluster.inProcess(slots: 1)
            let elsewhere = try await OperationQueue(cluster: other).addOperation(Nothing())
            for stranger in [unknown, elsewhere] {
                try await handle.removeDependency(stranger)
                #expect(try await handle.dependencies.map(\.id) == [gate.id])
            }
            try await gate.complete(1)
            try await handle.waitUntilFinished()
            try await handle.removeDependency(unknown)
            await other.close(within: .zero)
        }
    }

    @Test func `in one process an unknown kind fails at once`() async throws {
        try await withCluster { cluster in
            let queue = OperationQueue(cluster: cluster)
            let handle = try await queue.addOperation("NobodyKnows", 1)
            #expect(try await handle.finalOutcome() == .failed(.kindUnknown("NobodyKnows")))
        }
    }

    @Test func aGroupThatIsCancelledIsCancelled() async throws {
        try await withCluster { cluster in
            let queue = OperationQueue(cluster: cluster)
            for _ in 0..<20 {
                let waits = try [
                    ExternalOperationHandle(Int.self), ExternalOperationHandle(Int.self),
                ]
                let group = GroupHandle(waits)
                let next = OperationHandle(Nothing())
                try await next.addDependency(group, when: .succeeded)
                try await queue.addOperations([group, next])
                try await group.cancel(reason: "enough")
                #expect(try await group.finalOutcome() == .cancelled(reason: "enough"))
                #expect(try await next.finalOutcome() == .skipped(cause: try #require(group.id)))
                for part in waits {
                    #expect(try await part.finalOutcome() == .cancelled(reason: "enough"))
                }
            }
        }
    }

    @Test func aSerialQueueKeepsItsOrderBehindABarrier() async throws {
        try await withCluster { cluster in
            let queue = OperationQueue.serial(cluster: cluster)
            let first = try ExternalOperationHandle(Int.self)
            try await queue.addOperation(first)
            let barrier = OperationHandle(Nothing())
            try await queue.addBarrier(barrier)
            let last = OperationHandle(Nothing())
            last.options.queuePriority = .veryHigh
            try await queue.addOperation(last)
            #expect(try await last.dependencies.map(\.id) == [barrier.id])
            try await first.complete(1)
            try await last.waitUntilFinished()
            await cluster.close()
        }
    }

    private enum One {
        struct Same: Operon.Operation {
            func main(_ context: OperationContext) async throws -> Int { 1 }
        }
    }

    private enum Other {
        struct Same: Operon.Operation {
            func main(_ context: OperationContext) async throws -> Int { 2 }
        }
    }

    private struct Reserved: Operon.Operation {
        static let kind = "command"

        func main(_ context: OperationContext) async throws {}
    }

    @Test func whatCannotBeRunAsItIsMeantIsRefused() async throws {
        try await withCluster { cluster in
            let queue = OperationQueue(cluster: cluster)
            let one = try await queue.addOperation(One.Same())
            #expect(try await one.value == 1)
            let error = await #expect(throws: OperonError.self) {
                try await queue.addOperation(Other.Same())
            }
            #expect(error?.message.contains("Two types are called “Same”") == true)
            await #expect(
                throws: Refusal.invalid(field: "kind of “command~3”", why: "“command” is built in")
            ) {
                _ = try await queue.addOperation(Reserved())
            }
            let hasty = OperationHandle(Nothing())
            hasty.options.timeout = .zero
            await #expect(throws: Refusal.self) { try await queue.addOperation(hasty) }
            // It can be added as it should be.
            hasty.options.timeout = .seconds(60)
            try await queue.addOperation(hasty)
            try await hasty.waitUntilFinished()
        }
    }

    @Test func theLongestNameMayBeGivenTwice() async throws {
        try await withCluster { cluster in
            let queue = OperationQueue(cluster: cluster)
            let name = String(repeating: "é", count: 128)
            for _ in 0..<3 {
                let handle = OperationHandle(Nothing(), options: OperationOptions(name: name))
                try await queue.addOperation(handle)
                #expect(handle.name.utf8.count <= 256)
                try await handle.waitUntilFinished()
            }
        }
    }

    private struct Waits: Operon.Operation {
        func main(_ context: OperationContext) async throws -> Int {
            try await context.wait(for: []).count
        }
    }

    @Test func whoWaitsForNothingGoesOn() async throws {
        try await withCluster { cluster in
            let handle = try await OperationQueue(cluster: cluster).addOperation(Waits())
            #expect(try await handle.value == 0)
        }
    }

    private struct Never: Condition {
        func evaluate(_ context: OperationContext) async throws -> ConditionResult { .failed }
    }

    private struct Conditional: Operon.Operation {
        var conditions: [any Condition] { [Never()] }

        func main(_ context: OperationContext) async throws -> Int { 1 }
    }

    @Test func conditionsAreAskedOutsideOfAQueueToo() async throws {
        let handle = OperationHandle(Conditional())
        try await handle.start()
        #expect(handle.outcomeIfKnown == .failed(.conditionFailed(name: "Never")))
    }
}
