import OperonModel
import OperonPorts
import OperonRuntime
import OperonTestKit
import Testing

/// What a submitter is told of operations that no worker could run.
@Suite(.timeLimit(.minutes(5))) struct SubmissionWarningTests {
    private func operation(_ name: String, _ resources: ResourceAmounts) -> OperationDescription {
        var operation = OperationDescription(name: name, work: .nothing)
        operation.resources = resources
        return operation
    }

    private func graph(_ operations: [OperationDescription]) -> GraphDescription {
        GraphDescription(name: "g", operations: operations)
    }

    @Test func `without a worker a submission says only that there is none`() async throws {
        try await ManualCluster.run(nil) { cluster in
            let operations = [operation("a", [.gpus(1)]), operation("b", [.gpus(2)])]
            let view = try await cluster.client.submit(Submission(graph: graph(operations)))
            #expect(
                view.warnings?.map(\.text) == [
                    "There is no worker yet: the operations wait until one starts."
                ]
            )

            // No worker is needed.
            let external = OperationDescription(name: "x", work: .external(input: .empty))
            let other = try await cluster.client.submit(Submission(graph: graph([external])))
            #expect(other.warnings == nil)
        }
    }

    @Test func `a warning names a few operations and what the nearest worker lacks`()
        async throws
    {
        try await ManualCluster.run(nil) { cluster in
            let far = WorkerIdentity(
                name: "far",
                incarnation: Incarnation(rawValue: 10),
                connection: 1
            )
            try await cluster.join(far, offer: WorkerOffer())
            try await cluster.join(
                offer: WorkerOffer(
                    resources: [.gpus(1), .memory(bytes: 1 << 30)],
                    labels: [WorkerLabel("region", "us")]
                )
            )
            var operations = (0..<5).map {
                operation("large\($0)", [.gpus(4), .memory(bytes: 99)])
            }
            operations.append(operation("small", [.gpus(1)]))
            operations.append(operation("kept out", []))
            operations[6].workers = [.equals("region", "eu")]
            var submission = Submission(graph: graph(operations))
            submission.isOpen = true
            submission.idempotencyKey = "k"

            let view = try await cluster.client.submit(submission)
            #expect(
                view.warnings?.map(\.text) == [
                    "No worker could ever run “large0”, “large1”, “large2” and 2 more: gpus: 4 "
                        + "needed, 1 offered. Start a worker that offers this.",
                    "No worker could ever run “kept out”: label “region” must be “eu”, and there "
                        + "is no such label. Start a worker that offers this.",
                ]
            )
            #expect(view.warnings?.allSatisfy { $0.code == "noWorkerForResources" } == true)
            #expect(view.warnings?.first?.operations.map(\.name) == ["large0", "large1", "large2"])
            #expect(view.warnings?.first?.more == 2)
            #expect(view.warnings?.first?.missing == "gpus: 4 needed, 1 offered")

            // The same submission gets the same answer; an addition is told of itself alone.
            #expect(try await cluster.client.submit(submission).warnings == view.warnings)
            let addition = Submission(graph: graph([operation("more", [.gpus(9)])]))
            let added = try await cluster.client.add(addition, to: "\(view.id)")
            #expect(added.warnings?.map(\.operations.count) == [1])
            #expect(added.warnings?.first?.operations.first?.name == "more")
            let fine = Submission(graph: graph([operation("fine", [.gpus(1)])]))
            #expect(try await cluster.client.add(fine, to: "\(view.id)").warnings == nil)
        }
    }
}
