import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTestKit
import Testing

/// What a running coordinator drops from its store, it forgets.
@Suite(.timeLimit(.minutes(5))) struct PruningTests {
    private func graph(_ name: String, after dependencies: [String] = []) -> Submission {
        let command = CommandDescription(arguments: ["true"])
        let operations = (0..<1_000).map { index in
            var operation = OperationDescription(name: "o\(index)", work: .command(command))
            operation.dependencies = dependencies.map { DependencyDescription($0) }
            return operation
        }
        return Submission(graph: GraphDescription(name: name, operations: operations))
    }

    @Test func `what a dropped graph cannot do is refused in the same words`() async throws {
        let store = InMemoryStore(reign: Reign(rawValue: 5))
        try await ManualCluster.run(store, isConnected: false) { cluster in
            let client = cluster.client
            _ = try await client.submit(graph("old"))
            _ = try await client.cancel(.graph("old"), CancelRequest())
            // Who has begun to read is not told that nothing was printed.
            let log = try await client.log(
                of: .operation(OperationSelector(graph: "old", operation: "o1")),
                LogQuery()
            )
            try await cluster.service.prune(beyond: Retention(graphs: 0))

            var errors: [ClientError?] = []
            errors.append(
                await #expect(throws: ClientError.self) { for try await _ in log {} }
            )
            errors.append(
                await #expect(throws: ClientError.self) {
                    try await client.retry(graph: "old", RetryRequest())
                }
            )
            errors.append(
                await #expect(throws: ClientError.self) { try await client.close(graph: "old") }
            )
            errors.append(
                await #expect(throws: ClientError.self) {
                    try await client.cancel(.graph("old"), CancelRequest())
                }
            )
            errors.append(
                await #expect(throws: ClientError.self) {
                    try await client.suspend(.graph("old"), SuspendRequest())
                }
            )
            for error in errors {
                #expect(error?.code == .notFound)
                let words = "Graph 0 was dropped: only its name and its outcomes are kept."
                #expect(error?.message == words)
            }
        }
    }

    @Test func `what is dropped leaves the memory, and what depends on it later is resolved`()
        async throws
    {
        let store = InMemoryStore(reign: Reign(rawValue: 5))
        try await ManualCluster.run(store, isConnected: false) { cluster in
            _ = try await cluster.client.submit(graph("old"))
            _ = try await cluster.client.cancel(.graph("old"), CancelRequest())
            try await cluster.service.prune(beyond: Retention(graphs: 0))

            let id = GraphID(rawValue: 0)
            #expect(await cluster.service.query { $0.isGone(id) && $0.compiled(id).policy.isEmpty })
            #expect(try await cluster.client.graphs(GraphQuery()).graphs.isEmpty)
            // None of these may reach the store, which has nothing of it that could be changed.
            await #expect(throws: ClientError.self) {
                try await cluster.client.suspend(.graph("old"), SuspendRequest())
            }
            await #expect(throws: ClientError.self) {
                try await cluster.client.operation(OperationSelector(graph: "old", operation: "o1"))
            }
            _ = try await cluster.client.submit(graph("new", after: ["0/7", "old/8"]))
            let explanation = try await cluster.client.explain(
                OperationSelector(graph: "new", operation: "o3")
            )
            #expect(explanation.reasons.map(\.code) == ["disconnected", "noWorkerForKind"])
            // What it depends on is shown by what its own graph calls it.
            _ = try await cluster.client.submit(graph("named", after: ["0/9/o9", "old/8"]))
            let detail = try await cluster.client.operation(
                OperationSelector(graph: "named", operation: "o3")
            )
            #expect(detail.dependencies.map(\.operation.name) == ["o9", "8"])
            #expect(detail.dependencies.map(\.outcome) == [.cancelled, .cancelled])
            #expect(try await cluster.client.graph("old").counts.cancelled == 1_000)
            let error = await #expect(throws: ClientError.self) {
                try await cluster.client.operations(of: "old", OperationQuery())
            }
            #expect(error?.code == .notFound)
            try await cluster.service.prune(beyond: Retention(graphs: 0))
        }
        // And the same from what the store has.
        try await ManualCluster.run(store, isConnected: false) { cluster in
            #expect(await cluster.service.query { $0.isGone(GraphID(rawValue: 0)) })
            #expect(
                await cluster.service.query { $0.unfinishedCount(of: GraphID(rawValue: 1)) }
                    == 1_000
            )
        }
    }
}
