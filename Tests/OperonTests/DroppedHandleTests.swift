import Logging
import Operon
import OperonCore
import OperonGraphFile
import OperonHTTP
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTesting
import Testing

/// What handles are good for whose operations are not kept any more.
@Suite(.timeLimit(.minutes(10))) struct DroppedHandleTests {
    /// Where the coordinator is.
    enum Scope: String, CaseIterable, Sendable {
        case inProcess
        case embedded
        case remote
    }

    /// Reads what one of its dependencies returned.
    private struct Reader: Operon.Operation {
        var name: String

        func main(_ context: OperationContext) async throws -> Int {
            try context.output(of: name)
        }
    }

    /// Asks for what another one returned, which it does not depend on.
    private struct Asker: Operon.Operation {
        var name: String

        func main(_ context: OperationContext) async throws -> String {
            do {
                return "\(try await context.value(of: name, as: Int.self))"
            } catch Refusal.invalid(let field, let why) {
                return "\(field): \(why)"
            }
        }
    }

    /// Three operations that have ended, and that their coordinator has dropped.
    private struct Dropped {
        let cluster: Operon.Cluster
        let queue: Operon.OperationQueue
        let succeeded: OperationHandle<Doubled>
        let failed: OperationHandle<Failing>
        let cancelled: OperationHandle<Doubled>

        var all: [(handle: AnyOperationHandle, outcome: OutcomeKind)] {
            [(succeeded, .succeeded), (failed, .failed), (cancelled, .cancelled)]
        }

        init(
            _ cluster: Operon.Cluster,
            keptBy embedded: Operon.Cluster.EmbeddedCoordinator
        ) async throws {
            self.cluster = cluster
            queue = Operon.OperationQueue(cluster: cluster)
            succeeded = try await queue.addOperation(Doubled(number: 21))
            failed = try await queue.addOperation(Failing())
            cancelled = OperationHandle(Doubled(number: 1))
            try await cancelled.cancel(reason: "no need")
            try await queue.addOperation(cancelled)
            for (handle, outcome) in all {
                #expect(try await handle.finalOutcome().kind == outcome)
            }
            let graph = try #require(succeeded.id?.graph)
            #expect(failed.id?.graph == graph)
            _ = try await embedded.client.close(graph: "\(graph)")
            try await embedded.service.prune(beyond: Retention(graphs: 0))
            #expect(await embedded.service.query { $0.isGone(graph) })
        }
    }

    private static func run(
        _ scope: Scope,
        isolation: isolated (any Actor)? = #isolation,
        _ body: (Dropped) async throws -> Void
    ) async throws {
        switch scope {
        case .inProcess:
            let cluster = Cluster.inProcess(slots: 2)
            try await body(Dropped(cluster, keptBy: try #require(await cluster.embedded)))
            await cluster.close()
        case .embedded:
            try await RetentionTests.withFolder { folder in
                let cluster = Cluster.embedded(store: folder + "/jobs.db", slots: 2)
                try await body(Dropped(cluster, keptBy: try #require(await cluster.embedded)))
                await cluster.close()
            }
        case .remote:
            let keeper = Cluster.inProcess(slots: 2)
            try await keeper.register(
                .on(Doubled.self),
                .on(Failing.self),
                .on(Nothing.self),
                .on(SumOfInputs.self),
                .on(Reader.self),
                .on(Asker.self)
            )
            let embedded = try #require(await keeper.embedded)
            try await RemoteCluster.serve(embedded.client) { url in
                let cluster = Cluster.remote(url)
                try await body(Dropped(cluster, keptBy: embedded))
                await cluster.close()
            }
            await keeper.close()
        }
    }

    @Test(arguments: Scope.allCases)
    func `a dependency on what was dropped is decided by its outcome`(_ scope: Scope) async throws {
        try await Self.run(scope) { dropped in
            for (other, outcome) in dropped.all {
                for condition in DependencyCondition.allCases {
                    let handle = OperationHandle(Nothing())
                    try await handle.addDependency(other, when: condition)
                    try await dropped.queue.addOperation(handle)
                    let expected: Outcome =
                        condition.isSatisfied(by: outcome)
                        ? .succeeded : .skipped(cause: try #require(other.id))
                    #expect(try await handle.finalOutcome() == expected, "\(outcome) \(condition)")
                }
            }
        }
    }

    @Test(arguments: Scope.allCases)
    func `what was dropped may be depended on late`(_ scope: Scope) async throws {
        try await Self.run(scope) { dropped in
            let gate = try ExternalOperationHandle(Int.self)
            let late = OperationHandle(Nothing()).after(gate)
            try await dropped.queue.addOperations([gate, late])
            try await late.addDependency(dropped.succeeded)
            try await late.addDependency(dropped.failed, when: .finished)
            let names = try await late.dependencies.map(\.id)
            #expect(names == [gate.id, dropped.succeeded.id, dropped.failed.id])
            try await late.removeDependency(dropped.failed)
            try await gate.complete(1)
            #expect(try await late.finalOutcome() == .succeeded)
        }
    }

    @Test(arguments: Scope.allCases)
    func `what it returned is not there for those who come later`(_ scope: Scope) async throws {
        try await Self.run(scope) { dropped in
            let name = dropped.succeeded.name
            let reader = OperationHandle(Reader(name: name)).after(dropped.succeeded)
            // Each by the name that it is told.
            let sum = OperationHandle(SumOfInputs()).after(dropped.succeeded)
            try await dropped.queue.addOperations([reader, sum])
            for handle in [reader as AnyOperationHandle, sum] {
                guard
                    case .failed(.thrown(let type, let message, _)) =
                        try await handle.finalOutcome()
                else {
                    Issue.record("it did not fail")
                    continue
                }
                #expect(type == "OperonError")
                #expect(message.contains("\(name)” returned is not kept any more."))
            }
            let id = try #require(dropped.succeeded.id)
            let asker = try await dropped.queue.addOperation(Asker(name: "\(id)"))
            #expect(
                try await asker.value == "output: what “\(id)” has left is not kept any more"
            )
            let block = try await dropped.queue.addLocal(after: [dropped.succeeded]) {
                context -> String in
                do {
                    return "\(try context.output(of: name, as: Int.self))"
                } catch let error as OperonError {
                    return "\(error.code)"
                }
            }
            #expect(try await block.value == "notFound")
        }
    }

    @Test(arguments: Scope.allCases)
    func `a handle keeps what it knows`(_ scope: Scope) async throws {
        try await Self.run(scope) { dropped in
            for (handle, outcome) in dropped.all {
                try await handle.waitUntilFinished()
                #expect(handle.outcomeIfKnown?.kind == outcome)
                #expect(try await handle.operationState == .finished)
                // It has ended: there is nothing to do.
                try await handle.cancel()
                var kinds: [OperationEvent.Kind] = []
                for try await event in handle.events { kinds.append(event.kind) }
                #expect(kinds == [.finished(outcome)])
                // What only the coordinator knew.
                let error = await #expect(throws: OperonError.self) {
                    try await handle.dependencies
                }
                #expect(error?.code == .notFound)
            }
            if scope == .remote {
                // It was never asked for.
                let error = await #expect(throws: OperonError.self) {
                    try await dropped.succeeded.value
                }
                #expect(error?.code == .notFound)
            } else {
                #expect(try await dropped.succeeded.value == 42)
            }
            await #expect(throws: Wrong(code: 7)) { try await dropped.failed.value }
            let id = try #require(dropped.succeeded.id)
            let error = await #expect(throws: OperonError.self) {
                try await dropped.cluster.handle(id, of: Doubled.self)
            }
            #expect(error?.code == .notFound)
        }
    }
}
