import Operon
import OperonModel
import OperonRuntime
import Testing

/// What is wrong is refused in the same words wherever the coordinator is.
@Suite(.timeLimit(.minutes(5))) struct RefusalTests {
    /// How an operation is added, and what is wrong with that.
    struct Mistake: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let queueName: String
        let change: @Sendable (inout OperationOptions) -> Void

        init(
            _ what: String,
            queueName: String = "q",
            _ change: @escaping @Sendable (inout OperationOptions) -> Void = { _ in }
        ) {
            testDescription = what
            self.queueName = queueName
            self.change = change
        }

        static func retry(_ what: String, _ policy: RetryPolicy) -> Mistake {
            Mistake("a retry with " + what) { $0.retry = policy }
        }
    }

    private static let long = String(repeating: "a", count: 257)
    private static let forever = Duration.seconds(Int64.max / 2)

    private static let mistakes: [Mistake] = [
        Mistake("no name") { $0.name = "" },
        Mistake("a control character in a name") { $0.name = "a\u{1}b" },
        Mistake("two lines in a name") { $0.name = "a\nb" },
        Mistake("too long a name") { $0.name = long },
        Mistake("a timeout of nothing") { $0.timeout = .zero },
        Mistake("a negative timeout") { $0.timeout = .seconds(-1) },
        Mistake("a timeout below a nanosecond") { $0.timeout = .nanoseconds(1) / 2 },
        Mistake("a timeout beyond all bounds") { $0.timeout = forever },
        Mistake("a delay beyond all bounds") { $0.delay = forever },
        Mistake("an expectation beyond all bounds") { $0.expectedDuration = forever },
        Mistake("a negative expectation") { $0.expectedDuration = .seconds(-1) },
        Mistake("a key without a name") { $0.exclusive = [""] },
        Mistake("a control character in a key") { $0.exclusive = ["a\u{0}"] },
        Mistake("too long a key") { $0.exclusive = [long] },
        Mistake("a NUL character in a summary") { $0.summary = "a\u{0}" },
        Mistake("a resource without a name") {
            $0.resources = [ResourceAmount(name: "", amount: 1)]
        },
        Mistake("no processor") { $0.resources = [.cpus(0)] },
        Mistake("no number of processors") { $0.resources = [.cpus(.nan)] },
        Mistake("infinitely many processors") { $0.resources = [.cpus(.infinity)] },
        Mistake("more processors than fit") { $0.resources = [.cpus(1e30)] },
        Mistake("a negative amount") { $0.resources = [.gpus(-1)] },
        Mistake("memory beyond all bounds") { $0.resources = [.memory(bytes: .max)] },
        Mistake("too many resources") {
            $0.resources = ResourceAmounts(
                (0..<17).map { ResourceAmount(name: "r\($0)", amount: 1) }
            )
        },
        Mistake("a label without a name") { $0.workers = [.equals("", "a")] },
        Mistake("a label without a value") { $0.workers = [WorkerRequirement("a", .oneOf([]))] },
        Mistake("a label that is named twice") {
            $0.workers = [.equals("a", "a"), .equals("a", "b")]
        },
        Mistake("a control character in a value") { $0.workers = [.equals("a", "\u{1}")] },
        .retry("a negative pause", RetryPolicy(limit: 1, delay: .seconds(-1))),
        .retry("a pause beyond all bounds", RetryPolicy(limit: 1, delay: forever)),
        .retry("a negative longest pause", RetryPolicy(limit: 1, maxDelay: .seconds(-1))),
        .retry("a longest pause below the first", RetryPolicy(limit: 1, maxDelay: .zero)),
        .retry("pauses that shrink", RetryPolicy(limit: 1, factor: 0.5)),
        .retry("no number", RetryPolicy(limit: 1, factor: .nan)),
        .retry("an endless factor", RetryPolicy(limit: 1, factor: .infinity)),
        .retry("too much jitter", RetryPolicy(limit: 1, jitter: 2)),
        Mistake("no name of a queue", queueName: ""),
        Mistake("a control character in a name of a queue", queueName: "a\u{1}"),
        Mistake("too long a name of a queue", queueName: long),
    ]

    /// What looks wrong, and is not.
    private static let oddities: [Mistake] = [
        Mistake("a slash in a name") { $0.name = "a/b" },
        Mistake("an at sign in a name") { $0.name = "@b" },
        Mistake("a negative delay") { $0.delay = .seconds(-1) },
        Mistake("the same key twice") { $0.exclusive = ["a", "a"] },
        Mistake("two lines in a summary") { $0.summary = "a\nb" },
        Mistake("a moment that is long over") {
            $0.notBefore = WallTime(nanosecondsSince1970: .min)
        },
        .retry("a first pause over a minute", RetryPolicy(limit: 1, delay: .seconds(120))),
        Mistake("a slash in a name of a queue", queueName: "a/b"),
    ]

    /// What became of the operation in this process, and on a cluster: `nil`, it was taken.
    private func answers(to mistake: Mistake) async throws -> [Refusal?] {
        let keeper = Cluster.inProcess(slots: 2)
        try await keeper.register(.on(Nothing.self))
        let embedded = try #require(await keeper.embedded)
        var answers: [Refusal?] = []
        try await RemoteCluster.serve(embedded.client) { url in
            let far = Cluster.remote(url)
            for cluster in [keeper, far] {
                var options = OperationOptions()
                mistake.change(&options)
                let queue = OperationQueue(name: mistake.queueName, cluster: cluster)
                let handle = OperationHandle(Nothing(), options: options)
                do {
                    try await queue.addOperation(handle)
                    try await handle.waitUntilFinished()
                    answers.append(nil)
                } catch let refusal as Refusal {
                    answers.append(refusal)
                }
            }
            await far.close(within: .zero)
        }
        await keeper.close(within: .zero)
        return answers
    }

    @Test(arguments: mistakes) func aMistakeIsRefusedAlikeEverywhere(mistake: Mistake) async throws
    {
        let answers = try await answers(to: mistake)
        #expect(answers[0] != nil)
        #expect(answers[0] == answers[1])
    }

    @Test(arguments: oddities) func whatIsOddIsTakenEverywhere(oddity: Mistake) async throws {
        #expect(try await answers(to: oddity) == [nil, nil])
    }

    /// A whole graph with one thing wrong.
    struct WrongGraph: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let refusal: Refusal
        let graph: GraphDescription

        init(
            _ what: String,
            _ refusal: Refusal,
            _ change: (inout GraphDescription) -> Void
        ) {
            testDescription = what
            self.refusal = refusal
            var graph = GraphDescription(name: "g")
            graph.operations = ["a", "b"].map { OperationDescription(name: $0, work: .nothing) }
            change(&graph)
            self.graph = graph
        }

        static func input(_ what: String, _ payload: Payload, _ why: String) -> WrongGraph {
            WrongGraph(what, .invalid(field: "input of “b”", why: why)) {
                $0.operations[1].work = .registered(kind: "K", input: payload)
            }
        }
    }

    private static let tooMany = Int(Int32.max) + 1

    private static let wrongGraphs: [WrongGraph] = [
        WrongGraph(
            "a dependency without a name",
            .invalid(field: "dependency of “b”", why: "the name is empty")
        ) { $0.operations[1].dependencies = [DependencyDescription("")] },
        WrongGraph(
            "a dependency with two conditions",
            .invalid(field: "dependencies of “b”", why: "“a” is listed with two conditions")
        ) {
            $0.operations[1].dependencies = [
                DependencyDescription("a"), DependencyDescription("a", .failed),
            ]
        },
        WrongGraph("two operations of one name", .duplicateOperation(name: "a")) {
            $0.operations[1].name = "a"
        },
        WrongGraph("a cycle", .dependencyCycle(path: ["a", "b", "a"])) {
            $0.operations[0].dependencies = [DependencyDescription("b")]
            $0.operations[1].dependencies = [DependencyDescription("a")]
        },
        WrongGraph("an unknown dependency", .unknownOperation(name: "c", namedBy: "b")) {
            $0.operations[1].dependencies = [DependencyDescription("c")]
        },
        WrongGraph("a queue twice", .invalid(field: "queue “q”", why: "it is defined twice")) {
            $0.queues = [QueueSettings(name: "q"), QueueSettings(name: "q")]
        },
        WrongGraph("a key twice", .invalid(field: "key “k”", why: "it is defined twice")) {
            $0.keys = [KeySettings(name: "k"), KeySettings(name: "k", limit: 2)]
        },
        WrongGraph(
            "too high a limit of a queue",
            .invalid(
                field: "queue “q”: maxConcurrentOperationCount",
                why: "2147483648 is over 2147483647"
            )
        ) { $0.queues = [QueueSettings(name: "q", maxConcurrentOperationCount: tooMany)] },
        WrongGraph(
            "too high a limit of a key",
            .invalid(field: "limit of key “k”", why: "2147483648 is over 2147483647")
        ) { $0.keys = [KeySettings(name: "k", limit: tooMany)] },
        .input("an input that is no JSON", Payload(bytes: [0x7B]), "it is not JSON"),
        .input(
            "an input of another type",
            Payload(contentType: "text/plain", bytes: [0x31]),
            "it is not JSON"
        ),
        .input(
            "a version of nothing",
            Payload(contentType: "application/json; version=0", bytes: [0x31]),
            "version 0 is not a number from 1 to 2147483647"
        ),
        WrongGraph(
            "too large an input",
            .limitExceeded(limit: .payloadBytes, value: 1_048_577, maximum: 1_048_576)
        ) {
            let text = "\"" + String(repeating: "a", count: 1_048_575) + "\""
            $0.operations[1].work = .external(input: Payload(bytes: Array(text.utf8)))
        },
        WrongGraph(
            "too long a description",
            .limitExceeded(limit: .payloadBytes, value: 1_048_577, maximum: 1_048_576)
        ) { $0.operations[0].summary = String(repeating: "a", count: 1_048_577) },
    ]

    /// Nobody wrote a file, so no error speaks of one.
    @Test(arguments: wrongGraphs) func `a wrong graph is refused alike everywhere`(
        wrong: WrongGraph
    ) async throws {
        let keeper = Cluster.inProcess(slots: 1)
        let embedded = try #require(await keeper.embedded)
        try await RemoteCluster.serve(embedded.client) { url in
            let far = Cluster.remote(url)
            for cluster in [keeper, far] {
                let refusal = await #expect(throws: Refusal.self) {
                    try await cluster.submit(wrong.graph)
                }
                #expect(refusal == wrong.refusal)
            }
            await far.close(within: .zero)
        }
        await keeper.close(within: .zero)
    }

    /// With its graph and its number before it, it is longer than a name may be.
    @Test func theLongestNameIsFoundFromAnotherGraph() async throws {
        let keeper = Cluster.inProcess(slots: 2)
        try await keeper.register(.on(Nothing.self))
        let embedded = try #require(await keeper.embedded)
        try await RemoteCluster.serve(embedded.client) { url in
            let far = Cluster.remote(url)
            for cluster in [keeper, far] {
                let queue = OperationQueue(cluster: cluster)
                let name = OperationOptions(name: String(Self.long.dropLast()))
                let first = OperationHandle(Nothing(), options: name)
                try await queue.addOperation(first)
                let graph = try #require(first.id?.graph)
                _ = try await embedded.client.close(graph: "\(graph)")
                let second = try await queue.addOperation(Nothing(), after: [first])
                #expect(second.id?.graph != graph)
                #expect(try await second.finalOutcome() == .succeeded)
            }
            await far.close(within: .zero)
        }
        await keeper.close(within: .zero)
    }
}
