import ClusterKit
import OperonCore
import OperonModel
import OperonPorts
import OperonTestKit
import Testing

@testable import OperonRuntime

/// Running operations of a finished graph again, without its file. All of them are external, so
/// the test decides when they end.
@Suite(.timeLimit(.minutes(5))) struct RerunTests {
    private static func submit(
        _ operations: [(name: String, after: [String])],
        to cluster: ManualCluster
    ) async throws {
        var graph = GraphDescription(name: "g")
        graph.order = .submission
        for (name, after) in operations {
            var operation = OperationDescription(name: name, work: .external(input: .empty))
            operation.dependencies = after.map { DependencyDescription($0) }
            graph.operations.append(operation)
        }
        _ = try await cluster.client.submit(Submission(graph: graph))
        for (name, _) in operations { try await complete("0", name, cluster) }
    }

    private static func complete(
        _ graph: String,
        _ name: String,
        _ cluster: ManualCluster
    ) async throws {
        _ = try await cluster.client.complete(
            OperationSelector(graph: graph, operation: name),
            attempt: nil,
            with: .succeeded(.empty)
        )
    }

    /// The names of what would run.
    private static func plan(
        _ graph: String,
        _ names: String...,
        in cluster: ManualCluster
    ) async throws -> [String] {
        var request = RerunRequest(names)
        request.isDryRun = true
        let view = try await cluster.client.rerun(graph: graph, request)
        return view.operations.filter { $0.stays == nil }.map(\.name)
    }

    private static func run(_ body: (ManualCluster) async throws -> Void) async throws {
        try await ManualCluster.run(InMemoryStore(reign: Reign(rawValue: 5)), body)
    }

    @Test func `the order of the graph is kept, and equal keys give one graph`() async throws {
        try await Self.run { cluster in
            try await Self.submit([("a", []), ("b", ["a"])], to: cluster)
            var request = RerunRequest(["b"])
            request.idempotencyKey = "k"
            for _ in 0..<2 {
                let view = try await cluster.client.rerun(graph: "0", request)
                #expect(view.graph?.id == 1)
            }
            let graph = GraphID(rawValue: 1)
            let settings = await cluster.service.query { $0.settings(of: graph).description }
            #expect(settings.order == .submission)
        }
    }

    @Test func `what an operation did is not known once its graph was dropped`() async throws {
        try await Self.run { cluster in
            try await Self.submit([("a", []), ("b", ["a"])], to: cluster)
            _ = try await cluster.client.rerun(graph: "0", RerunRequest(["b"]))
            _ = try await cluster.client.cancel(.graph("1"), CancelRequest())
            #expect(try await Self.plan("1", "a", in: cluster) == ["a", "b"])
            try await cluster.service.prune(beyond: Retention(graphs: 1))
            for name in ["a", "b"] {
                let error = await #expect(throws: ClientError.self) {
                    try await Self.plan("1", name, in: cluster)
                }
                #expect(error?.code == .conflict)
                #expect(error?.message.hasPrefix("“a” ran in graph 0, which was dropped") == true)
            }
        }
    }

    @Test func `a dependency on what stands for an operation counts as one on that`() async throws {
        try await Self.run { cluster in
            try await Self.submit([("y", []), ("h", []), ("z", ["y", "h"])], to: cluster)
            _ = try await cluster.client.rerun(graph: "0", RerunRequest(["h"]))
            let z = OperationSelector(graph: "1", operation: "z")
            let y = OperationSelector(graph: "1", operation: "y")
            _ = try await cluster.client.removeDependency(of: z, on: y)
            _ = try await cluster.client.cancel(.graph("1"), CancelRequest())
            #expect(try await Self.plan("1", "h", in: cluster) == ["h", "z"])
            let again = try await cluster.client.rerun(graph: "1", RerunRequest(["h"]))
            #expect(again.operations.first?.stays?.graph == 0)

            let later = OperationSelector(graph: "2", operation: "z")
            let stand = OperationSelector(graph: "2", operation: "y")
            _ = try await cluster.client.addDependency(of: later, on: stand, .succeeded)
            _ = try await cluster.client.cancel(.graph("2"), CancelRequest())
            let third = try await cluster.client.rerun(graph: "2", RerunRequest(["h"]))
            #expect(third.operations.first?.stays?.graph == 0)
            let id = OperationID(graph: GraphID(rawValue: 3), index: 2)
            let conditions = await cluster.service.query { $0.dependencies(of: id) }
            #expect(conditions.map(\.operation.index) == [1, 0])
            #expect(conditions.map(\.condition) == [.unlessFailed, .succeeded])
        }
    }
}
