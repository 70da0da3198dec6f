import ClusterKit
import Foundation
import Glibc
import OperonCore
import OperonFaultKit
import OperonModel
import OperonRuntime
import Testing

/// Worker programs that are stopped for longer than their lease, and a coordinator that is not.
@Suite struct FrozenWorkerTests {
    /// Says that it started, waits for a file, and says that it ended.
    private func operation(_ name: String, in workspace: Workspace) -> OperationDescription {
        let ledger = workspace.path("ledger")
        let script = """
            echo "start \(name) $OPERON_ATTEMPT" >> \(ledger)
            while ! [ -e \(workspace.path("go")) ]; do sleep 0.05; done
            echo "end \(name) $OPERON_ATTEMPT" >> \(ledger)
            """
        return OperationDescription(
            name: name,
            work: .command(CommandDescription(arguments: CommandDescription.shell(script)))
        )
    }

    private func graph(_ operations: OperationDescription...) -> GraphDescription {
        GraphDescription(name: "frozen", operations: operations)
    }

    @Test func `what a frozen worker ran goes elsewhere, and it starts nothing it must not`()
        async throws
    {
        try await Workspace.run { workspace in
            var options = TestCluster.Options.real(.broker)
            options.prefix = workspace.prefix
            options.trust = workspace.keys
            try await TestCluster.run(options) { cluster in
                let frozen = try workspace.startWorkers(1, slots: 2)[0]
                try await cluster.history.wait { $0.workers.count == 1 }
                let first = try await cluster.submit(graph(operation("a", in: workspace)))
                let a = OperationID(graph: first, index: 0)
                try await workspace.waitForFile("ledger")
                try await cluster.history.wait { $0.started.contains(a) }

                try await frozen.freeze()
                // This one lies in its socket, and is cancelled there.
                let second = try await cluster.submit(graph(operation("b", in: workspace)))
                let b = OperationID(graph: second, index: 0)
                try await cluster.history.wait { $0.attempts.contains { $0.operation == b } }
                try await cluster.service.command(
                    .cancelRequested(.operation(b), reason: "not wanted", cascade: false)
                )
                try workspace.startWorkers(1, slots: 1)
                try await cluster.history.wait { state in
                    state.attempts.filter { $0.operation == a }.count == 2
                        && state.started.filter { $0 == a }.count == 2
                }
                frozen.signal(SIGCONT)
                // It is welcomed again, and its process is ended: it wrote no end.
                try await cluster.history.wait { $0.workers.count == 2 }
                _ = try workspace.write("go", "")
                await cluster.service.waitUntilFinished(first)
                await cluster.service.waitUntilFinished(second)

                let outcomes = await cluster.service.query {
                    [$0.outcome(of: a), $0.outcome(of: b)]
                }
                #expect(outcomes == [.succeeded, .cancelled(reason: "not wanted")])
                let lines = workspace.lines(of: "ledger")
                #expect(lines.filter { $0.hasSuffix(" b 1") }.isEmpty)
                #expect(lines.contains("end a 2"))
                let accepted = cluster.history.current.attempts.filter { $0.ending == .succeeded }
                #expect(accepted.map(\.operation) == [a])
                #expect(!frozen.hasEnded)
            }
        }
    }

    @Test func `a worker that is back before the next attempt has started goes on`() async throws {
        try await Workspace.run { workspace in
            var options = TestCluster.Options.real(.broker)
            options.prefix = workspace.prefix
            options.trust = workspace.keys
            try await TestCluster.run(options) { cluster in
                let frozen = try workspace.startWorkers(1, slots: 1)[0]
                try await cluster.history.wait { $0.workers.count == 1 }
                let graph = try await cluster.submit(graph(operation("a", in: workspace)))
                let a = OperationID(graph: graph, index: 0)
                try await workspace.waitForFile("ledger")
                try await cluster.history.wait { $0.started.contains(a) }

                try await frozen.freeze()
                try await cluster.history.wait { $0.attempts.last?.ending == .lost }
                frozen.signal(SIGCONT)
                try await cluster.history.wait { $0.resumed == [a] }
                _ = try workspace.write("go", "")
                await cluster.service.waitUntilFinished(graph)

                #expect(await cluster.service.query { $0.outcome(of: a) } == .succeeded)
                #expect(workspace.lines(of: "ledger") == ["start a 1", "end a 1"])
            }
        }
    }
}
