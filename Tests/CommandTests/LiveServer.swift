import OperonCore
import OperonHTTP
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTesting
import Testing

/// A real coordinator behind the real API, with workers whose operations end when the test lets
/// them, for the real commands. Its clients are called ann.
final class LiveServer {
    let workspace: Workspace
    let cluster: TestCluster
    /// What the commands called.
    let tap: ClientTap
    let url: String

    /// Serves until `body` is done.
    ///
    /// - Parameters:
    ///   - clock: Moved by the test; `nil`: the machine's.
    ///   - holdsAll: Whether every operation ends only when the test says so.
    ///   - dispatchedBytes: What may be dispatched at a time.
    static func run(
        clock: ManualClock? = nil,
        holdsAll: Bool = false,
        dispatchedBytes: Int? = nil,
        tokens: AccessTokens = AccessTokens(),
        isolation: isolated (any Actor)? = #isolation,
        _ body: (LiveServer) async throws -> Void
    ) async throws {
        var options = TestCluster.Options()
        options.clock = clock
        options.holdsAll = holdsAll
        options.script = script
        if let dispatchedBytes { options.scheduler.limits.dispatchedBytes = dispatchedBytes }
        let api = try TestAPI.configuration(tokens: tokens)
        try await TestCluster.run(options) { cluster in
            let tap = ClientTap()
            try await TestAPI.serve(api) { _ in
                TappedClient(cluster.client, tap)
            } _: { _, address in
                try await Workspace.run { workspace in
                    try await body(LiveServer(workspace, cluster, tap, url: "http://\(address)"))
                }
            }
        }
    }

    private init(_ workspace: Workspace, _ cluster: TestCluster, _ tap: ClientTap, url: String) {
        self.workspace = workspace
        self.cluster = cluster
        self.tap = tap
        self.url = url
    }

    /// One whose name begins with “bad” fails, any other succeeds; one whose name begins with
    /// “for-” waits before for the operation of the rest, and one called “early” finds that it came
    /// an hour too early.
    private static let script: TestCluster.Script = { invocation in
        let name = invocation.operation.name
        if name.hasPrefix("for-") {
            _ = await invocation.ask(.wait([String(name.dropFirst("for-".count))]))
        }
        if name == "early" { return .notYet(after: .seconds(3_600)) }
        let isBad = name.hasPrefix("bad")
        return isBad
            ? .failed(.thrown(type: "Rain", message: "it rains", payload: [])) : .returned(.empty)
    }

    func shutDown() async { await cluster.host.stop(.forGood(kill: false)) }

    // MARK: - What happens

    /// Starts a worker that knows `Play` besides commands; returns when it is welcome.
    @discardableResult
    func join(
        _ name: String,
        slots: Int,
        queues: [String] = [],
        plays: Bool = true,
        offers resources: ResourceAmounts = []
    ) async throws -> TestCluster.Worker {
        try await cluster.join(
            name,
            slots: slots,
            queues: queues,
            kinds: plays ? ["Play"] : []
        ) {
            $0.offer = WorkerOffer(resources: resources)
            $0.gpus = (0..<(resources["gpus"] ?? 0)).map(String.init)
        }
    }

    /// Operations of these names run until `open`, or until they are asked to stop.
    func gate(_ names: String...) async { for name in names { await cluster.gates.close(name) } }

    func open(_ name: String) async { await cluster.gates.open(name) }

    /// Ends an operation that runs, or will run.
    func finish(
        _ operation: String,
        _ failure: OperationError? = nil,
        output: String = ""
    ) async throws {
        try await cluster.finish(
            OperationSelector(path: operation),
            failure,
            output: Payload(bytes: Array(output.utf8))
        )
    }

    func drain(_ worker: TestCluster.Worker) async throws {
        worker.service.drain(timeout: .seconds(600))
        try await cluster.wait { client in
            try await client.workers().contains { $0.status == "draining" }
        }
    }

    func cut() async throws { try await cluster.cut() }

    func wait(for operation: String, _ state: OperationState) async throws {
        try await cluster.wait(for: OperationSelector(path: operation), state)
    }

    /// Returns when it has failed, and is to be tried again.
    func waitForRetry(_ graph: String, _ operation: String) async throws {
        try await wait(for: "\(graph)/\(operation)", reason: "retryAt")
    }

    /// Returns when it waits for this.
    func wait(for operation: String, reason: String) async throws {
        let selector = OperationSelector(path: operation)
        try await cluster.wait { client in
            try await client.operation(selector).reasons.contains { $0.code == reason }
        }
    }

    // MARK: - Commands

    /// Starts `operon` for this coordinator.
    func start(
        _ line: String,
        environment: [String: String?] = [:],
        streams: Program.Streams = .pipes
    ) throws -> Program {
        let words = line.matches(of: /"([^"]*)"|(\S+)/).map { String($0.1 ?? $0.2 ?? "") }
        return try start(words, environment: environment, streams: streams)
    }

    func start(
        _ arguments: [String],
        environment: [String: String?] = [:],
        streams: Program.Streams = .pipes
    ) throws -> Program {
        let all = environment.merging(["OPERON_COORDINATOR": url]) { given, _ in given }
        return try workspace.start("operon", arguments, environment: all, streams: streams)
    }

    /// Runs `operon` to its end.
    func operon(
        _ line: String,
        environment: [String: String?] = [:],
        streams: Program.Streams = .pipes
    ) async throws -> Ended {
        try await start(line, environment: environment, streams: streams).end()
    }

    /// A command that must succeed; what it printed.
    @discardableResult
    func run(_ line: String) async throws -> String {
        let ended = try await operon(line)
        #expect(ended.end == .exit(0), "\(line): \(ended.errors)")
        return ended.output
    }

    func submit(_ name: String, _ text: String) async throws {
        _ = try workspace.write("\(name).yaml", "name: \(name)\n" + text)
        try await run("submit \(name).yaml")
    }

    /// A graph of four: one to begin with, two after it, and one behind both.
    static let wordcount = """
        name: wordcount
        queues: { licensed: { maxConcurrentOperationCount: 1 } }
        operations:
          split: { run: split book.txt }
          count-a: { run: wc -w xaa, dependencies: [split], exclusive: db }
          count-b: { run: wc -w xab, dependencies: [split], exclusive: db, queue: licensed }
          merge: { run: ./merge, dependencies: [count-a, count-b] }

        """

    func submitWordcount() async throws {
        _ = try workspace.write("wordcount.yaml", Self.wordcount)
        try await run("submit wordcount.yaml")
    }
}
