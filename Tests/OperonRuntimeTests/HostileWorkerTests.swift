import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTestKit
import OperonWire
import Testing

/// What a worker's login lets anybody say, to a coordinator that keeps its graphs.
@Suite(.timeLimit(.minutes(5))) struct HostileWorkerTests {
    private func withCoordinator(
        limits: Limits = Limits(),
        _ body: (ManualCluster, LocalCoordinator) async throws -> Void
    ) async throws {
        var scheduler = Scheduler.Configuration()
        scheduler.limits = limits
        let store = InMemoryStore(reign: Reign(rawValue: 5))
        try await ManualCluster.run(store, isEncoded: true, scheduler: scheduler) { cluster in
            try await body(cluster, cluster.client)
        }
    }

    private func submission(_ operations: [OperationDescription]) -> Submission {
        Submission(graph: GraphDescription(name: "g", operations: operations))
    }

    private func wait(_ name: String) -> OperationDescription {
        OperationDescription(name: name, work: .wait(.seconds(100)))
    }

    /// An operation of a graph that there cannot be.
    private func strayAddition() throws -> [UInt8] {
        var dependency = DependencyDescription("4000000000/x")
        dependency.resolvedID = OperationID(graph: GraphID(rawValue: 4_000_000_000), index: 7)
        var child = OperationDescription(
            name: "c",
            work: .command(CommandDescription(arguments: ["true"]))
        )
        child.dependencies = [dependency]
        let graph = GraphDescription(name: "added", operations: [child])
        return try StoreFormat.encode(graph, failFast: false)
    }

    @Test func `an addition that names graph 4,000,000,000 as a store would is refused`()
        async throws
    {
        try await withCoordinator { cluster, client in
            try await cluster.join(slots: 64)
            _ = try await client.submit(submission([wait("a")]))
            let held = try await cluster.dispatched("a").held
            try await cluster.report(
                1,
                .started(held, at: .zero),
                .added(held, AdditionRequest(number: 1, operations: try strayAddition()))
            )

            guard case .refused(let refusal) = try await cluster.verdict().content else {
                Issue.record("it was not refused")
                return
            }
            #expect("\(refusal)".contains("elsewhere"))
            #expect(try await client.graph("g").counts.total == 1)
        }
    }

    @Test func `what is asked in the name of no attempt, or of another's, is not looked at`()
        async throws
    {
        try await withCoordinator { cluster, client in
            try await cluster.join(slots: 64)
            _ = try await client.submit(submission([wait("a")]))
            let held = try await cluster.dispatched("a").held
            var nobody = held
            nobody.operation = OperationID(graph: GraphID(rawValue: .max), index: 0)
            var other = held
            other.operation = OperationID(graph: held.operation.graph, index: .max)
            let stray = AdditionRequest(number: 1, operations: try strayAddition())
            let read = ReadRequest(number: 2, name: "4000000000/x")
            try await cluster.report(
                1,
                .added(nobody, stray),
                .added(other, stray),
                .read(nobody, read),
                .read(other, read),
                .yielded(nobody, WaitRequest(number: 3, names: ["a"])),
                .started(held, at: .zero),
                .read(held, ReadRequest(number: 4, name: "4000000000/x"))
            )

            // The first verdict is on the first request that was the sender's to ask.
            #expect(try await cluster.verdict().number == 4)
        }
    }

    @Test func `a verdict quotes little of a name that has millions of bytes`() async throws {
        try await withCoordinator { cluster, client in
            try await cluster.join(slots: 64)
            _ = try await client.submit(submission([wait("a")]))
            let held = try await cluster.dispatched("a").held
            let name = String(repeating: "n", count: 7_000_000)
            try await cluster.report(
                1,
                .started(held, at: .zero),
                .read(held, ReadRequest(number: 1, name: name))
            )

            guard case .refused(let refusal) = try await cluster.verdict().content else {
                Issue.record("it was not refused")
                return
            }
            #expect("\(refusal)".utf8.count < 4_096)
        }
    }

    @Test func `an operation that no message can carry fails alone`() async throws {
        // It was taken when the rules were others, as it were: messages were larger.
        var limits = Limits()
        limits.messageBytes = 100_000
        try await withCoordinator(limits: limits) { cluster, client in
            let directory = String(repeating: "d", count: 200_000)
            var operations = (0..<16).map { wait("w\($0)") }
            operations.insert(
                OperationDescription(
                    name: "big",
                    work: .command(CommandDescription(arguments: ["true"], directory: directory))
                ),
                at: 5
            )
            _ = try await client.submit(submission(operations))
            try await cluster.join(slots: 64)

            for number in 0..<16 { _ = try await cluster.dispatched("w\(number)") }
            let names = cluster.transport.sent.flatMap { envelope -> [String] in
                guard case .dispatch(let dispatch) = envelope.body else { return [] }
                return dispatch.operations.map(\.name)
            }
            #expect(names.count == 16)
            // It fails when its message is sent, which may be after the last of the others.
            let big = OperationSelector(graph: "g", operation: "big")
            while try await client.operation(big).operation.outcome == nil { await Task.yield() }
            #expect(try await client.operation(big).operation.outcome == .failed)
            #expect(try await client.graph("g").counts.failed == 1)
        }
    }
}
