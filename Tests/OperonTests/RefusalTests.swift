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
        let inside = try #require(await keeper.inside)
        var answers: [Refusal?] = []
        try await FakedCluster.serve(inside.client) { url in
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

    /// With its graph and its number before it, it is longer than a name may be.
    @Test func theLongestNameIsFoundFromAnotherGraph() async throws {
        let keeper = Cluster.inProcess(slots: 2)
        try await keeper.register(.on(Nothing.self))
        let inside = try #require(await keeper.inside)
        try await FakedCluster.serve(inside.client) { url in
            let far = Cluster.remote(url)
            for cluster in [keeper, far] {
                let queue = OperationQueue(cluster: cluster)
                let name = OperationOptions(name: String(Self.long.dropLast()))
                let first = OperationHandle(Nothing(), options: name)
                try await queue.addOperation(first)
                let graph = try #require(first.id?.graph)
                _ = try await inside.client.close(graph: "\(graph)")
                let second = try await queue.addOperation(Nothing(), after: [first])
                #expect(second.id?.graph != graph)
                #expect(try await second.finalOutcome() == .succeeded)
            }
            await far.close(within: .zero)
        }
        await keeper.close(within: .zero)
    }
}
