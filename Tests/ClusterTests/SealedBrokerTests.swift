import ClusterKit
import Foundation
import OperonCore
import OperonFaultKit
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTesting
import OperonWire
import Testing

/// What somebody can do who has the coordinator's or a worker's login at the broker: hear all
/// messages, and send any.
@Suite(.serialized, .timeLimit(.minutes(5))) struct SealedBrokerTests {
    /// Records everything on the way, and sends what it likes.
    private struct Thief {
        /// With the coordinator's login, and with a worker's.
        let broker: RawBroker
        let worker: RawBroker
        let prefix: String

        init(_ cluster: TestCluster) throws {
            broker = try RawBroker(url: try #require(cluster.coordinatorURL))
            worker = try RawBroker(url: try #require(cluster.workerURL))
            prefix = cluster.options.prefix
        }

        func queue(of worker: TestCluster.Worker) -> String {
            "\(prefix)worker.\(worker.incarnation).1"
        }

        /// From now on hears what this worker and its coordinator say, each with the login that may
        /// read it.
        func listen(to honest: TestCluster.Worker) throws {
            try worker.consume(
                "\(prefix)worker.00000000000007ef.1",
                boundTo: [(prefix + "dispatch", queue(of: honest)), (prefix + "broadcast", "")]
            )
            try broker.consume(
                "\(prefix)events.1.4711",
                boundTo: [(prefix + "events", "coordinator"), (prefix + "beats", "coordinator")]
            )
        }

        func heard() throws -> [[UInt8]] {
            var all: [[UInt8]] = []
            for login in [broker, worker] {
                try login.synchronize()
                while true {
                    let messages = try login.receive(milliseconds: 200)
                    if messages.isEmpty { break }
                    all += messages
                }
            }
            return all
        }

        func send(
            _ body: [UInt8],
            to honest: TestCluster.Worker,
            with login: Login = .coordinator
        ) throws {
            let key = queue(of: honest)
            try send(body, exchange: "dispatch", key: key, login == .worker ? worker : broker)
        }

        func sendToCoordinator(_ body: [UInt8]) throws {
            try send(body, exchange: "events", key: "coordinator")
            try send(body, exchange: "beats", key: "coordinator")
        }

        private func send(
            _ body: [UInt8],
            exchange: String,
            key: String,
            _ login: RawBroker? = nil
        ) throws {
            var properties = RawBroker.Properties()
            properties.contentType = Wire.contentType
            try (login ?? broker).publish(body, exchange: prefix + exchange, key: key, properties)
        }
    }

    private func folder(_ body: (String) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("operon-thief-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // benign: the system clears its temporary directory.
        defer { try? FileManager.default.removeItem(at: folder) }
        try await body(folder.path)
    }

    private static func command(_ script: String) -> Work {
        .command(CommandDescription(arguments: ["sh", "-c", script]))
    }

    private static func operation(_ name: String, _ script: String) -> OperationDescription {
        OperationDescription(name: name, work: command(script))
    }

    private static func lines(_ path: String) -> Int {
        (try? String(contentsOfFile: path, encoding: .utf8))?.split(separator: "\n").count ?? 0
    }

    /// A dispatch as the coordinator would send it without seals.
    private static func forged(
        _ script: String,
        _ cluster: TestCluster
    ) async throws -> [UInt8] {
        let operation = DispatchedOperation(
            held: HeldAttempt(
                attempt: AttemptID(epoch: Epoch(rawValue: 1), number: 4_711),
                operation: OperationID(graph: GraphID(rawValue: 0), index: 0)
            ),
            ordinal: 1,
            graphName: "forged",
            name: "forged",
            queue: QueueSettings.defaultName,
            work: command(script),
            priority: .normal,
            rank: 0,
            timeout: nil,
            qualityOfService: .default,
            inputs: []
        )
        let (reign, epoch) = await cluster.service.query { ($0.reign, $0.epoch) }
        return try Wire.encode(
            CoordinatorEnvelope(
                reign: reign,
                epoch: epoch,
                sequence: 1_000,
                sender: .none,
                body: .dispatch(Dispatch(acknowledged: 0, operations: [operation]))
            )
        )
    }

    /// Runs an operation, so that whatever was sent to the worker before has been handled.
    private func run(_ cluster: TestCluster, _ script: String) async throws {
        let graph = GraphDescription(
            name: "g",
            operations: [Self.operation("a", script)]
        )
        let id = try await cluster.submit(graph)
        await cluster.service.waitUntilFinished(id)
        let operation = OperationID(graph: id, index: 0)
        #expect(await cluster.service.query { $0.outcomeKind(of: operation) } == .succeeded)
    }

    private enum Login: CaseIterable {
        case coordinator, worker
    }

    @Test(arguments: Login.allCases)
    private func `a dispatch that is forged with a login of the broker does not run`(
        login: Login
    ) async throws {
        try await folder { folder in
            try await TestCluster.run(.real(.broker)) { cluster in
                let worker = try await cluster.join("w", slots: 1)
                let thief = try Thief(cluster)
                let forged = try await Self.forged("echo x >> \(folder)/forged", cluster)
                do {
                    try thief.send(forged, to: worker, with: login)
                    try (login == .worker ? thief.worker : thief.broker).synchronize()
                } catch {
                    // The rights of a worker end here.
                    #expect(login == .worker)
                }
                try await run(cluster, "echo x >> \(folder)/honest")
                #expect(Self.lines(folder + "/honest") == 1)
                #expect(Self.lines(folder + "/forged") == 0)
            }
        }
    }

    @Test
    func `recorded messages do nothing, to whomever and in whatever order they are sent again`()
        async throws
    {
        try await folder { folder in
            try await TestCluster.run(.real(.broker)) { cluster in
                let worker = try await cluster.join("w", slots: 1)
                let thief = try Thief(cluster)
                try thief.listen(to: worker)
                for number in 1...5 { try await run(cluster, "echo x >> \(folder)/\(number)") }
                let heard = try thief.heard()
                // Each operation takes a dispatch and a report at least.
                #expect(heard.count >= 10)
                let other = try await cluster.join("other", slots: 1)
                for messages in [heard, heard.reversed()] {
                    for message in messages {
                        try thief.send(message, to: worker)
                        try thief.send(message, to: other)
                        try thief.sendToCoordinator(message)
                    }
                }
                try thief.broker.synchronize()
                for number in 6...9 { try await run(cluster, "echo x >> \(folder)/\(number)") }
                for number in 1...9 { #expect(Self.lines("\(folder)/\(number)") == 1) }
                let workers = try await cluster.client.workers()
                #expect(workers.allSatisfy { $0.status == "alive" })
            }
        }
    }

    @Test func `nothing that operations are given or print can be read at the broker`()
        async throws
    {
        try await TestCluster.run(.real(.broker)) { cluster in
            let worker = try await cluster.join("w", slots: 1)
            let thief = try Thief(cluster)
            try thief.listen(to: worker)
            try await run(cluster, "echo canary-said; : canary-given")
            let heard = try thief.heard()
            #expect(!heard.isEmpty)
            for word in ["canary-said", "canary-given", "canary"] {
                #expect(heard.allSatisfy { $0.firstRange(of: Array(word.utf8)) == nil })
            }
        }
    }

    @Test func `messages that were changed at any byte do nothing`() async throws {
        try await folder { folder in
            try await TestCluster.run(.real(.broker)) { cluster in
                let worker = try await cluster.join("w", slots: 1)
                let thief = try Thief(cluster)
                try thief.listen(to: worker)
                try await run(cluster, "echo x >> \(folder)/first")
                for message in try thief.heard() {
                    for place in message.indices {
                        var changed = message
                        changed[place] ^= 0x40
                        try thief.send(changed, to: worker)
                        try thief.sendToCoordinator(changed)
                    }
                }
                try thief.broker.synchronize()
                try await run(cluster, "echo x >> \(folder)/second")
                #expect(Self.lines(folder + "/first") == 1)
                #expect(Self.lines(folder + "/second") == 1)
            }
        }
    }
}
