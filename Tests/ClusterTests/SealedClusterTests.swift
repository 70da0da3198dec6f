import ClusterKit
import OperonCore
import OperonFaultKit
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTesting
import OperonTrust
import OperonWire
import Testing

/// What workers may do in a cluster that seals its messages, over a real broker.
@Suite(.serialized, .timeLimit(.minutes(5))) struct SealedClusterTests {
    private static func command(_ name: String, queue: String? = nil) -> OperationDescription {
        var operation = OperationDescription(
            name: name,
            work: .command(CommandDescription(arguments: ["true"]))
        )
        if let queue { operation.queue = queue }
        return operation
    }

    private static func graph(
        _ operations: [OperationDescription],
        queues: [String] = []
    ) -> GraphDescription {
        var graph = GraphDescription(name: "g", operations: operations)
        graph.queues = queues.map { QueueSettings(name: $0) }
        return graph
    }

    private static func token(
        _ cluster: TestCluster,
        queues: [String] = [],
        kinds: [String] = []
    ) throws -> JoinToken {
        JoinToken(try WorkerGrant(queues: queues, kinds: kinds), by: try #require(cluster.keys))
    }

    @Test func `a worker gets operations of the queues of its token alone, whatever it offers`()
        async throws
    {
        try await TestCluster.run(.real(.broker, store: .memory)) { cluster in
            try await cluster.join("a", slots: 4, token: try Self.token(cluster, queues: ["a"]))
            try await cluster.join(
                "b",
                slots: 4,
                queues: ["a", "b"],
                token: try Self.token(cluster, queues: ["b", "c"])
            )
            let operations = (0..<20).map { number in
                Self.command("o\(number)", queue: number.isMultiple(of: 2) ? "a" : "b")
            }
            let id = try await cluster.submit(Self.graph(operations, queues: ["a", "b"]))
            await cluster.service.waitUntilFinished(id)
            for (number, operation) in operations.enumerated() {
                let view = try await cluster.client.operation(
                    OperationSelector(graph: "g", operation: operation.name)
                )
                #expect(view.attempts.map(\.worker) == [number.isMultiple(of: 2) ? "a" : "b"])
            }
        }
    }

    @Test func `a worker whose token allows none of its queues is told so, and ends`()
        async throws
    {
        try await TestCluster.run(.real(.broker)) { cluster in
            let worker = try await cluster.join(
                "w",
                slots: 1,
                queues: ["b"],
                token: try Self.token(cluster, queues: ["a"]),
                isAwaited: false
            )
            let error = await worker.end() as? PortError
            #expect(error?.code == .accessRefused)
            #expect(
                error?.message == "The coordinator refuses this worker: its join token allows none"
                    + " of the queues that it serves."
            )
        }
    }

    @Test func `a worker with a token that has expired is told the date, and ends`() async throws {
        try await TestCluster.run(.real(.broker)) { cluster in
            let keys = try #require(cluster.keys)
            let past = WallTime(nanosecondsSince1970: 1_000_000_000_000_000_000)
            let worker = try await cluster.join(
                "w",
                slots: 1,
                token: JoinToken(try WorkerGrant(expiresAt: past), by: keys),
                isAwaited: false
            )
            let error = await worker.end() as? PortError
            #expect(error?.message.contains("has expired (2001-09-09T01:46:40Z)") == true)
            // Nobody else is disturbed.
            try await cluster.join("other", slots: 1)
            let id = try await cluster.submit(Self.graph([Self.command("a")]))
            await cluster.service.waitUntilFinished(id)
        }
    }

    @Test func `an operation adds and learns nothing that its worker's token excludes`()
        async throws
    {
        var options = TestCluster.Options.real(.broker)
        let answers = Recorder<[WorkerAgent.RequestAnswer.Content]>([])
        options.script = { invocation in
            answers.change { $0 = [] }
            for operation in [
                Self.command("in", queue: "a"), Self.command("out", queue: "b"),
                OperationDescription(
                    name: "other",
                    work: .registered(kind: "Other", input: .empty)
                ),
            ] {
                var operation = operation
                if operation.name == "other" { operation.queue = "a" }
                let graph = Self.graph([operation])
                guard let bytes = try? StoreFormat.encode(graph, failFast: false) else { continue }
                let answer = await invocation.ask(.add(bytes))
                answers.change { $0.append(answer) }
            }
            for content in [.read("other/a"), .wait(["other/a"])]
                as [WorkerAgent.RequestContent]
            {
                let answer = await invocation.ask(content)
                answers.change { $0.append(answer) }
            }
            return .returned(.empty)
        }
        try await TestCluster.run(options) { cluster in
            let other = GraphDescription(name: "other", operations: [Self.command("a", queue: "a")])
            var queued = other
            queued.queues = [QueueSettings(name: "a")]
            let before = try await cluster.submit(queued)
            try await cluster.join(
                "w",
                slots: 2,
                kinds: ["Play", "Other"],
                token: try Self.token(cluster, queues: ["a"], kinds: ["Play"])
            )
            let parent = OperationDescription(
                name: "parent",
                work: .registered(kind: "Play", input: .empty)
            )
            await cluster.service.waitUntilFinished(before)
            var first = parent
            first.queue = "a"
            let id = try await cluster.submit(Self.graph([first], queues: ["a", "b"]))
            await cluster.service.waitUntilFinished(id)
            let words = answers.current.map { "\($0)" }
            try #require(words.count == 5)
            #expect(answers.current[0] == .added(1))
            #expect(words[1].contains("does not allow the queue “b”"), "\(words)")
            #expect(words[2].contains("does not allow the kind “Other”"), "\(words)")
            // Of other graphs it learns nothing, not even that they are there.
            for word in words[3...] {
                #expect(word.contains("“other/a”, which does not exist"), "\(words)")
            }
        }
    }

    // MARK: - Under load

    /// Runs a graph in waves while something is done to the keys, and checks that each operation
    /// succeeded, whoever ran it.
    private func underLoad(
        _ cluster: TestCluster,
        _ change: () async throws -> Void
    ) async throws {
        let operations = (0..<400).map { number in
            var operation = OperationDescription(name: "o\(number)", work: .wait(.milliseconds(20)))
            if number >= 20 { operation.dependencies = [.init("o\(number - 20)")] }
            return operation
        }
        let id = try await cluster.submit(Self.graph(operations))
        try await cluster.wait { try await $0.graph("g").counts.succeeded >= 100 }
        try await change()
        await cluster.service.waitUntilFinished(id)
        let counts = try await cluster.client.graph("g").counts
        #expect(counts.succeeded == operations.count)
    }

    @Test func `keys are replaced under load, and nothing is lost`() async throws {
        try await TestCluster.run(.real(.broker)) { cluster in
            for name in ["a", "b"] { try await cluster.join(name, slots: 5) }
            var keys = try #require(cluster.keys)
            try await underLoad(cluster) {
                for _ in 0..<3 {
                    keys = keys.rotated()
                    cluster.service.replace(CoordinatorTrust(keys))
                    // With a token of the first key.
                    try await cluster.join("\(keys.fingerprint)", slots: 2)
                }
            }
            #expect(try await cluster.client.workers().count == 5)
        }
    }

    @Test(arguments: [true, false])
    func `a worker is revoked under load, what it ran runs elsewhere, and nothing is lost`(
        byKey: Bool
    ) async throws {
        try await TestCluster.run(.real(.broker)) { cluster in
            let token = try Self.token(cluster)
            let revoked = try await cluster.join("revoked", slots: 5, token: token)
            try await cluster.join("other", slots: 5)
            let keys = try #require(cluster.keys)
            try await underLoad(cluster) {
                let views = try await cluster.client.workers()
                let view = try #require(views.first { $0.name == "revoked" })
                let id = byKey ? try #require(revoked.publicKey) : token.grant.id
                // By what the client has been told, it could be revoked.
                let told = id.map { String(UInt16($0) | 0x100, radix: 16).dropFirst() }.joined()
                #expect((byKey ? view.key : view.token) == told)
                cluster.service.replace(CoordinatorTrust(keys, revoked: [id]))
                let error = await revoked.end() as? PortError
                let what = byKey ? "its key was revoked" : "its join token was revoked"
                #expect(error?.message.contains(what) == true)
            }
        }
    }
}
