import ClusterKit
import Foundation
import Operon
import OperonCore
import OperonFaultKit
import OperonModel
import OperonRuntime
import ServiceLifecycle
import ServiceLifecycleTestKit
import Testing

/// Operations of registered kinds, from the graph to their outcome.
@Suite(.serialized, .timeLimit(.minutes(5))) struct WorkerTests {
    private static let all = LibraryWorker(
        "all",
        .on(Square.self),
        .on(Sum.self),
        .on(Greet.self),
        .on(Ask.self),
        .on(Fail.self),
        .on(Large.self),
        .on(Wait.self),
        .on(Tree.self),
        .on(Await.self)
    )
    private static let single = LibraryWorker("single", slots: 1, .on(Tree.self), .on(Await.self))

    // MARK: - Adding and waiting

    @Test(arguments: Place.allCases)
    func `a tree that grows as it runs, and waits for itself, needs one slot`(
        place: Place
    ) async throws {
        try await TestCluster.run(place, Self.single) { cluster in
            let graph = try await cluster.submit(
                OperationDescription("root", "Tree", #"{"depth": 3}"#)
            )
            await cluster.service.waitUntilFinished(graph)

            #expect(cluster.history.current.operations.count == 15)
            #expect(cluster.history.current[0].output == #"["2","succeeded","succeeded"]"#)
            let outcomes = cluster.history.current.operations.values.map(\.outcome)
            #expect(outcomes.allSatisfy { $0 == .succeeded })
        }
    }

    @Test(arguments: Place.allCases)
    func `what an operation adds has conditions, options and its queue`(
        place: Place
    ) async throws {
        let list = "grow \(place)"
        let single = LibraryWorker(
            "single",
            slots: 1,
            .on(Grow.self),
            .on(Fail.self),
            .on(Sign.self),
            .on(Second.self),
            .on(Careful.self),
            .on(Square.self)
        )
        try await TestCluster.run(place, single) { cluster in
            var root = OperationDescription("root", "Grow", #"{"list": "\#(list)"}"#)
            root.queue = "own"
            let graph = try await cluster.submit(root)
            await cluster.service.waitUntilFinished(graph)

            let record = cluster.history.current
            // With the group that the condition brings, and its two parts.
            #expect(record[0].output == #"["9","low"]"#)
            #expect(record[2].outcome == .succeeded)
            #expect(record[3].outcome == .skipped(cause: OperationID(graph: graph, index: 1)))
            #expect(record[4].output == #"["2","own"]"#)
            #expect(record[8].output == #"["careful~3"]"#)
            #expect(record[9].outcome == .failed(.timeout))
            let signed = Meeting[list].signed
            #expect(signed.filter { $0 != "if it fails" } == ["high", "low"])
            #expect(signed.contains("if it fails"))
        }
    }

    @Test(arguments: Place.allCases)
    func `what others left can be read by whoever waited for them`(
        place: Place
    ) async throws {
        let single = LibraryWorker(
            "single",
            slots: 1,
            .on(Family.self),
            .on(Square.self),
            .on(Large.self),
            .on(Greet.self),
            .on(Fail.self)
        )
        try await TestCluster.run(place, single) { cluster in
            let graph = try await cluster.submit(OperationDescription("root", "Family"))
            await cluster.service.waitUntilFinished(graph)

            let output = Array(cluster.history.current[0].output.utf8)
            let answers = try JSONDecoder().decode([String].self, from: Data(output))
            #expect(answers == Family.answers("root"))
        }
    }

    @Test(arguments: Place.allCases)
    func `a command is as nice as its quality of service says`(place: Place)
        async throws
    {
        try await TestCluster.run(place, LibraryWorker("w", slots: 1, .on(Niceness.self))) {
            cluster in
            let entry = try await cluster.runToEnd(OperationDescription("root", "Niceness"))
            let values = try JSONDecoder().decode([Int].self, from: Data(entry.output.utf8))
            try #require(values.count == 2)
            let nicer = values[0] + Int(OperonModel.QualityOfService.utility.niceness)
            #expect(values[1] == min(19, nicer))
        }
    }

    @Test(arguments: Place.allCases)
    func `a command whose file is up to date succeeds without a process`(place: Place)
        async throws
    {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await TestCluster.run(place, LibraryWorker("w", slots: 1, .on(Remake.self))) {
            cluster in
            let input = #"{"folder": "\#(folder.path)"}"#
            let entry = try await cluster.runToEnd(OperationDescription("root", "Remake", input))
            #expect(entry.output == #"["first"]"#)
        }
    }

    @Test func `what it cannot wait for is told by name, and a cancel ends its wait`() async throws
    {
        try await TestCluster.run(.inProcess, Self.single) { cluster in
            let graph = try await cluster.submit(
                OperationDescription("a", "Await", #"{"names": ["nobody"]}"#),
                OperationDescription("b", "Await", #"{"names": ["c"]}"#, after: ["a"]),
                OperationDescription("c", "Await", #"{"names": ["a"]}"#, after: ["b"]),
                OperationDescription("d", "Await", #"{"names": ["f"]}"#, after: ["c"]),
                OperationDescription("e", "Nowhere", after: ["c"]),
                OperationDescription("f", "Nowhere", after: ["e"])
            )
            try await cluster.history.wait { $0[3].log == "waiting\n" }
            let waiting = OperationID(graph: graph, index: 3)
            try await cluster.service.command(
                .cancelRequested(.operation(waiting), reason: "", cascade: false)
            )
            try await cluster.history.wait { $0[3].outcome != nil }

            let unknown = cluster.history.current[0].output
            #expect(unknown.contains("refused") && unknown.contains("nobody"), "\(unknown)")
            #expect(cluster.history.current[1].output.contains("b → c → b"))
            #expect(cluster.history.current[2].output == #"["succeeded"]"#)
            guard case .cancelled = cluster.history.current[3].outcome else {
                Issue.record("\(String(describing: cluster.history.current[3].outcome))")
                return
            }
        }
    }

    // MARK: - Inputs and outputs

    @Test(arguments: Place.allCases)
    func `outputs reach those that depend on them`(place: Place) async throws {
        try await TestCluster.run(place, Self.all) { cluster in
            let graph = try await cluster.submit(
                OperationDescription("a", "Square", #"{"number": 3}"#),
                OperationDescription("b", "Square", #"{"number": 4}"#),
                OperationDescription("sum", "Sum", after: ["a", "b"])
            )
            await cluster.service.waitUntilFinished(graph)

            #expect(cluster.history.current[2].outcome == .succeeded)
            #expect(cluster.history.current[2].output == "25")
        }
    }

    @Test func `an operation that returns nothing has a name, a log and no output`() async throws {
        try await TestCluster.run(.inProcess, Self.all) { cluster in
            let entry = try await cluster.runToEnd(
                OperationDescription("hello", "greet.v1", #"{"name": "Ada"}"#)
            )

            #expect(entry.outcome == .succeeded)
            #expect(entry.output.isEmpty)
            #expect(entry.tail == "Hello, Ada!\nI am hello of g in default\n")
        }
    }

    @Test func `what an operation logs is heard while it runs`() async throws {
        try await TestCluster.run(.inProcess, Self.all) { cluster in
            let graph = try await cluster.submit(
                OperationDescription("w", "Wait", #"{"then": "throw"}"#)
            )
            try await cluster.history.wait { $0[0].log == "waiting\n" }
            try await cluster.service.command(
                .cancelRequested(.graph(graph), reason: "", cascade: false)
            )
            await cluster.service.waitUntilFinished(graph)
        }
    }

    @Test func `a dependency without an output is said to have none`() async throws {
        try await TestCluster.run(.inProcess, Self.all) { cluster in
            let graph = try await cluster.submit(
                OperationDescription("hello", "greet.v1", #"{"name": "Ada"}"#),
                OperationDescription("ask", "Ask", #"{"dependency": "hello"}"#, after: ["hello"])
            )
            await cluster.service.waitUntilFinished(graph)

            let answers = try JSONDecoder().decode(
                [String].self,
                from: Data(cluster.history.current[1].output.utf8)
            )
            #expect(
                answers == [
                    "nil", "noOutput “hello” has no output.",
                    "invalid “ask” does not depend on “nobody”.",
                ]
            )
        }
    }

    @Test(arguments: [
        ("Square", "", "the input is no Square: “number” is missing"),
        ("Square", #"{"number": "x"}"#, "the input is no Square: number: "),
        ("Square", "7", "the input is no Square: "),
    ])
    func `an input that is none fails undecodable`(
        kind: String,
        input: String,
        why: String
    ) async throws {
        try await TestCluster.run(.inProcess, Self.all) { cluster in
            let entry = try await cluster.runToEnd(OperationDescription("o", kind, input))

            guard case .failed(.undecodable(let message)) = entry.outcome else {
                Issue.record("\(String(describing: entry.outcome))")
                return
            }
            #expect(message.hasPrefix(why), "\(message)")
        }
    }

    @Test func `an output of the limit passes, and one beyond it fails`() async throws {
        let limit = Limits().payloadBytes
        try await TestCluster.run(.inProcess, Self.all) { cluster in
            // Two bytes are the quotes.
            let fits = try await cluster.runToEnd(
                OperationDescription("fits", "Large", #"{"bytes": \#(limit - 2)}"#)
            )
            let over = try await cluster.runToEnd(
                OperationDescription("over", "Large", #"{"bytes": \#(limit - 1)}"#)
            )

            #expect(fits.outcome == .succeeded)
            #expect(fits.output.utf8.count == limit)
            #expect(over.outcome == .failed(.outputTooLarge(bytes: limit + 1, limit: limit)))
        }
    }

    @Test func `a name that Foundation has too is imported by name`() async throws {
        try await TestCluster.run(.inProcess, LibraryWorker("w", .on(ScopedImport.self))) {
            cluster in
            let entry = try await cluster.runToEnd(
                OperationDescription("d", "ScopedImport", #"{"date": 12.5}"#)
            )

            #expect(entry.output == "12.5")
        }
    }

    // MARK: - Errors

    @Test(arguments: Place.allCases)
    func `an error is told by its type, its words and its value`(place: Place)
        async throws
    {
        try await TestCluster.run(place, Self.all) { cluster in
            let sorry = try await cluster.runToEnd(
                OperationDescription("s", "Fail", #"{"how": "encodable"}"#)
            )
            let plain = try await cluster.runToEnd(
                OperationDescription("p", "Fail", #"{"how": ""}"#)
            )

            #expect(
                sorry.outcome
                    == .failed(
                        .thrown(
                            type: "Sorry",
                            message: "because of rain",
                            payload: Array(#"{"reason":"rain"}"#.utf8)
                        )
                    )
            )
            #expect(
                plain.outcome == .failed(.thrown(type: "Plain", message: "Plain()", payload: []))
            )
        }
    }

    @Test func `the words of an error are cut between characters`() async throws {
        try await TestCluster.run(.inProcess, Self.all) { cluster in
            let entry = try await cluster.runToEnd(
                OperationDescription("l", "Fail", #"{"how": "long"}"#)
            )

            guard case .failed(.thrown(_, let message, _)) = entry.outcome else {
                Issue.record("\(String(describing: entry.outcome))")
                return
            }
            #expect(message.utf8.count <= 16 << 10)
            #expect(message.utf8.count > (16 << 10) - 4)
            #expect(message.hasSuffix("é"))
        }
    }

    @Test func `nobody is cancelled because it says so`() async throws {
        try await TestCluster.run(.inProcess, Self.all) { cluster in
            let entry = try await cluster.runToEnd(
                OperationDescription("c", "Fail", #"{"how": "cancellation"}"#)
            )

            guard case .failed(.thrown(let type, _, _)) = entry.outcome else {
                Issue.record("\(String(describing: entry.outcome))")
                return
            }
            #expect(type == "CancellationError")
        }
    }

    // MARK: - Stopping

    @Test(arguments: [
        ("throw", OutcomeKind.cancelled), ("return", .succeeded), ("fail", .failed),
    ])
    func `a cancelled operation ends as it reports`(
        then: String,
        outcome: OutcomeKind
    ) async throws {
        try await TestCluster.run(.inProcess, Self.all) { cluster in
            let graph = try await cluster.submit(
                OperationDescription("w", "Wait", #"{"then": "\#(then)"}"#)
            )
            try await cluster.history.wait { $0[0].hasStarted }
            try await cluster.service.command(
                .cancelRequested(.graph(graph), reason: "enough", cascade: false)
            )
            await cluster.service.waitUntilFinished(graph)

            let entry = cluster.history.current[0]
            #expect(entry.outcome?.kind == outcome)
            if outcome == .succeeded { #expect(entry.output == #""stopped""#) }
        }
    }

    @Test(arguments: ["throw", "return"])
    func `an operation over its time has failed, whatever it does then`(
        then: String
    ) async throws {
        try await TestCluster.run(.inProcess, Self.all) { cluster in
            var operation = OperationDescription("w", "Wait", #"{"then": "\#(then)"}"#)
            operation.timeout = .milliseconds(50)
            let entry = try await cluster.runToEnd(operation)

            #expect(entry.outcome == .failed(.timeout))
            #expect(entry.tail == "waiting\n")
        }
    }

    // MARK: - Workers

    @Test(arguments: Place.allCases)
    func `each operation runs where its kind is known`(place: Place)
        async throws
    {
        try await TestCluster.run(
            place,
            LibraryWorker("squares", .on(Square.self)),
            LibraryWorker("greets", .on(Greet.self))
        ) { cluster in
            let graph = try await cluster.submit(
                OperationDescription("a", "Square", #"{"number": 3}"#),
                OperationDescription("b", "greet.v1", #"{"name": "Ada"}"#),
                OperationDescription("c", "Square", #"{"number": 4}"#)
            )
            await cluster.service.waitUntilFinished(graph)

            let state = cluster.history.current
            let names = (0..<3).map { state[$0].worker }
            #expect(names == ["squares", "greets", "squares"])
            #expect((0..<3).allSatisfy { state[$0].outcome == .succeeded })
        }
    }

    @Test func `a kind that nobody knows waits for a worker that does`() async throws {
        try await TestCluster.run(.inProcess, LibraryWorker("squares", .on(Square.self))) {
            cluster in
            let graph = try await cluster.submit(
                OperationDescription("b", "greet.v1", #"{"name": "Ada"}"#),
                OperationDescription("a", "Square", #"{"number": 3}"#)
            )
            try await cluster.history.wait { $0[1].outcome == .succeeded }
            #expect(cluster.history.current[0].worker == nil)
            let late = Task { try await cluster.serve(LibraryWorker("late", .on(Greet.self))) }
            await cluster.service.waitUntilFinished(graph)

            #expect(cluster.history.current[0].outcome == .succeeded)
            late.cancel()
            _ = await late.result
        }
    }

    @Test func `as many run at once as there are slots, though each blocks its thread`()
        async throws
    {
        let member = LibraryWorker("one", slots: 12, .on(Meet.self))
        try await TestCluster.run(.inProcess, member) { cluster in
            let name = UUID().uuidString
            let operations = (0..<12).map {
                OperationDescription("\($0)", "Meet", #"{"meeting": "\#(name)", "count": 12}"#)
            }
            let graph = GraphDescription(name: "g", operations: operations)
            let id = try await cluster.submit(graph)
            await cluster.service.waitUntilFinished(id)

            #expect((0..<12).allSatisfy { cluster.history.current[$0].output == "true" })
        }
    }

    @Test func `thousands of operations each have one result`() async throws {
        let member = LibraryWorker("many", slots: 8, .on(Square.self))
        try await TestCluster.run(.inProcess, member) { cluster in
            let count = 3_000
            let operations = (0..<count).map {
                OperationDescription("\($0)", "Square", #"{"number": \#($0)}"#)
            }
            let graph = GraphDescription(name: "g", operations: operations)
            let id = try await cluster.submit(graph)
            await cluster.service.waitUntilFinished(id)

            let state = cluster.history.current
            #expect((0..<count).allSatisfy { state[$0].output == "\($0 * $0)" })
        }
    }

    @Test func `an operation in the only slot may do two things at once`() async throws {
        try #require(OwnProcess.processorCount > 1)
        try await TestCluster.run(.inProcess, LibraryWorker("one", slots: 1, .on(Fork.self))) {
            cluster in
            let entry = try await cluster.runToEnd(
                OperationDescription("f", "Fork", #"{"meeting": "\#(UUID().uuidString)"}"#)
            )

            #expect(entry.output == "true")
        }
    }

    @Test func `a worker that is shut down finishes what runs and gives back the rest`()
        async throws
    {
        let name = UUID().uuidString
        let input = #"{"meeting": "\#(name)"}"#
        try await TestCluster.run(.inProcess) { cluster in
            try await testGracefulShutdown { trigger in
                let worker = cluster.make(LibraryWorker("first", slots: 1, .on(Attend.self)))
                let running = Task.immediate { try await worker.run() }
                try await cluster.history.wait { $0.workers.values.contains("first") }
                let graph = try await cluster.submit(
                    OperationDescription("runs", "Attend", input),
                    OperationDescription("waits", "Attend", input)
                )
                try await cluster.history.wait { $0[0].hasStarted }
                trigger.triggerGracefulShutdown()
                // Detached: it is not to be shut down as well.
                let next = Task.detached {
                    try await cluster.serve(LibraryWorker("next", slots: 1, .on(Attend.self)))
                }
                try await cluster.history.wait { $0[1].hasStarted }
                Meeting[name].end()
                await cluster.service.waitUntilFinished(graph)
                try await running.value

                let state = cluster.history.current
                let names = (0..<2).map { state[$0].worker }
                #expect(names == ["first", "next"])
                #expect(state[0].outcome == .succeeded && state[1].outcome == .succeeded)
                next.cancel()
                _ = await next.result
            }
        }
    }

    @Test func `code that ignores its end does not keep a worker whose task is cancelled`()
        async throws
    {
        let name = UUID().uuidString
        defer { Meeting[name].end() }
        try await TestCluster.run(.inProcess) { cluster in
            let running = Task {
                try await cluster.serve(LibraryWorker("first", slots: 1, .on(Attend.self)))
            }
            try await cluster.history.wait { $0.workers.values.contains("first") }
            try await cluster.submit(
                OperationDescription("runs", "Attend", #"{"meeting": "\#(name)"}"#)
            )
            try await cluster.history.wait { $0[0].hasStarted }
            running.cancel()

            await #expect(throws: CancellationError.self) { try await running.value }
            #expect(Meeting[name].count == 1)
        }
    }

    @Test func `code that ignores its end does not keep a worker that drains`() async throws {
        let name = UUID().uuidString
        defer { Meeting[name].end() }
        try await TestCluster.run(.inProcess) { cluster in
            try await testGracefulShutdown { trigger in
                let member = LibraryWorker("first", slots: 1, .on(Attend.self))
                let worker = cluster.make(member, drainTimeout: .zero, grace: .zero)
                let running = Task { try await worker.run() }
                try await cluster.history.wait { $0.workers.values.contains("first") }
                try await cluster.submit(
                    OperationDescription("runs", "Attend", #"{"meeting": "\#(name)"}"#)
                )
                try await cluster.history.wait { $0[0].hasStarted }
                trigger.triggerGracefulShutdown()

                try await running.value
                #expect(Meeting[name].count == 1)
            }
        }
    }

    // MARK: - What cannot be

    @Test(arguments: [
        (Worker(broker: "amqp://h", slots: 0), "A worker has 1 to 4096 slots, not 0."),
        (Worker(broker: "amqp://h", name: ""), "A worker's name has 1 to 256 bytes."),
        (
            Worker(broker: "amqp://h", drainTimeout: .seconds(-1)),
            "A drain timeout is 0 to 604,800 seconds."
        ),
        (
            Worker(broker: "amqp://h", drainTimeout: .seconds(Int64.max)),
            "A drain timeout is 0 to 604,800 seconds."
        ),
        (
            Worker(broker: "amqp://h", .on(Square.self), .on(Square.self)),
            "Two kinds have the name “Square”."
        ),
        (Worker(broker: "amqp://h", .on(Command.self)), "The kind “command” is built in."),
        (
            Worker(broker: "amqp://h", .on(Nameless.self)),
            "The name of a kind has 1 to 256 bytes, and no control characters."
        ),
    ])
    func `a worker that cannot be is refused`(worker: Worker, message: String) async throws {
        let error = await #expect(throws: OperonError.self) { try await worker.run() }
        #expect(error?.code == .invalid)
        #expect(error?.message == message)
    }

    @Test func `an address that is none is refused`() async throws {
        let error = await #expect(throws: OperonError.self) {
            try await Worker(broker: "http://h", trust: "none", handlesSignals: false).run()
        }
        #expect(error?.code == .invalid)
    }

    @Test func `a broker that refuses the worker ends it`() async throws {
        let url = try BrokerUsers().worker.replacing(/:[^:@\/]+@/, with: ":wrong@")
        let error = await #expect(throws: OperonError.self) {
            try await Worker(broker: url, trust: "none", handlesSignals: false).run()
        }
        #expect(error?.code == .unreachable)
    }
}

private struct Command: Operon.Operation {
    static let kind = "command"

    func main(_ context: OperationContext) async throws {}
}

private struct Nameless: Operon.Operation {
    static let kind = ""

    func main(_ context: OperationContext) async throws {}
}
