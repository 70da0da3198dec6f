import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime
import OperonWire
import Testing

/// The scheduler refuses by number; clients and workers read names.
@Suite(.timeLimit(.minutes(5))) struct RefusalNameTests {
    private func withGraph(
        of operations: [OperationDescription],
        _ body: (ManualCluster) async throws -> Void
    ) async throws {
        try await ManualCluster.run(nil) { cluster in
            let graph = GraphDescription(name: "g", operations: operations)
            _ = try await cluster.client.submit(Submission(graph: graph))
            try await body(cluster)
        }
    }

    /// Starts “parent” on a worker, which then says this.
    private func verdict(
        on event: (HeldAttempt) throws -> WorkerEvent,
        in cluster: ManualCluster
    ) async throws -> Verdict {
        try await cluster.join(slots: 1)
        let held = try await cluster.dispatched("parent").held
        try await cluster.report(1, .started(held, at: .zero), try event(held))
        return try await cluster.verdict()
    }

    private func operation(_ name: String, after others: String...) -> OperationDescription {
        var operation = OperationDescription(name: name, work: .wait(.seconds(100)))
        operation.dependencies = others.map { DependencyDescription($0) }
        return operation
    }

    @Test func `a wait cycle refused to a worker names the operations`() async throws {
        let operations = [
            operation("parent"), operation("after", after: "parent"),
            operation("last", after: "after"),
        ]
        try await withGraph(of: operations) { cluster in
            let verdict = try await verdict(
                on: { .yielded($0, WaitRequest(number: 1, names: ["last"])) },
                in: cluster
            )

            let path = ["parent", "last", "after", "parent"]
            #expect(verdict.content == .refused(.dependencyCycle(path: path)))
        }
    }

    @Test func `names that look like numbers stay as they are`() async throws {
        try await withGraph(of: [operation("parent"), operation("other")]) { cluster in
            let added = GraphDescription(
                name: "added",
                operations: [operation("0/0", after: "0/1"), operation("0/1", after: "0/0")]
            )
            let body = try StoreFormat.encode(added, failFast: false)
            let verdict = try await verdict(
                on: { .added($0, AdditionRequest(number: 1, operations: body)) },
                in: cluster
            )

            guard case .refused(.dependencyCycle(let path)) = verdict.content else {
                Issue.record("\(verdict)")
                return
            }
            #expect(Set(path) == ["0/0", "0/1"])
        }
    }

    @Test func `a client reads names, also in a sentence`() async throws {
        let operations = [operation("a"), operation("b", after: "a"), operation("c", after: "b")]
        try await withGraph(of: operations) { cluster in
            let client = cluster.client
            func selector(_ name: String) -> OperationSelector {
                OperationSelector(graph: "g", operation: name)
            }
            let cycle = await #expect(throws: ClientError.self) {
                try await client.addDependency(of: selector("a"), on: selector("c"), .finished)
            }
            #expect(cycle?.refusal == .dependencyCycle(path: ["0/a", "0/c", "0/b", "0/a"]))

            _ = try await client.cancel(.operation(selector("c")), CancelRequest())
            var retry = RetryRequest()
            retry.operations = ["a"]
            let unfinished = await #expect(throws: ClientError.self) {
                try await client.retry(graph: "g", retry)
            }
            let why = "it has not finished"
            #expect(unfinished?.refusal == .invalid(field: "“0/a” cannot be retried", why: why))
            let finished = await #expect(throws: ClientError.self) {
                try await client.setPriority(of: selector("c"), to: .high)
            }
            #expect(finished?.refusal == .alreadyFinished(name: "0/c"))
        }
    }
}
