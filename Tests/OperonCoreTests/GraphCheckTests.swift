import OperonCore
import OperonModel
import OperonTestKit
import Testing

struct GraphCheckTests {
    private func compile(
        _ operations: [OperationDescription],
        queues: [QueueSettings] = [],
        limits: Limits = Limits()
    ) throws(Refusal) -> CompiledGraph {
        var graph = GraphDescription(name: "graph", operations: operations)
        graph.queues = queues
        return try CompiledGraph.compile(graph, limits: limits)
    }

    @Test func `a cycle is named by its path`() {
        #expect(throws: Refusal.dependencyCycle(path: ["a", "c", "b", "a"])) {
            try compile([
                .nothing("before"),
                .nothing("a", after: ["before", "c"]),
                .nothing("b", after: ["a"]),
                .nothing("c", after: ["b"]),
                .nothing("behind", after: ["c"]),
            ])
        }
    }

    @Test func `what only waits for a cycle is not in its path`() {
        #expect(throws: Refusal.dependencyCycle(path: ["a", "b", "a"])) {
            try compile([
                .nothing("first", after: ["a"]),
                .nothing("a", after: ["b"]),
                .nothing("b", after: ["a"]),
            ])
        }
    }

    @Test(arguments: ["OPERON_BROKER", "OPERON_TOKEN_FILE", "OPERON_"])
    func `what the worker itself was given cannot be inherited`(variable: String) {
        let command = CommandDescription(arguments: ["true"], inheritEnvironment: [variable])
        let refusal = Refusal.invalid(
            field: "inherited variable of “a”",
            why: "\(variable) is not inherited: variables named OPERON_… are the worker's own"
        )

        #expect(throws: refusal) {
            try compile([OperationDescription(name: "a", work: .command(command))])
        }
    }

    @Test func `files that no process could make or read are refused`() {
        func refusal(_ change: (inout CommandDescription) -> Void) -> Refusal? {
            var command = CommandDescription(arguments: ["true"], produces: ["p"], consumes: ["c"])
            change(&command)
            do throws(Refusal) {
                _ = try compile([OperationDescription(name: "a", work: .command(command))])
                return nil
            } catch {
                return error
            }
        }
        let limits = Limits()
        let long = String(repeating: "x", count: limits.pathBytes)
        let many = (2...limits.operationFiles).map { "\($0)" }

        #expect(refusal { $0.skipsIfUpToDate = true } == nil)
        #expect(refusal { $0.produces = [long] } == nil)
        #expect(refusal { $0.produces = many } == nil)
        #expect(
            refusal { $0.produces = ["p", ""] }
                == .invalid(field: "produces of “a”", why: "a path is empty")
        )
        #expect(
            refusal { $0.consumes = ["a\u{0}b"] }
                == .invalid(field: "consumes of “a”", why: "a path has a NUL character")
        )
        #expect(
            refusal { ($0.produces, $0.skipsIfUpToDate) = ([], true) }
                == .invalid(
                    field: "skip of “a”",
                    why: "it produces no files that could be up to date"
                )
        )
        #expect(
            refusal { $0.consumes = [long + "x"] }
                == .limitExceeded(limit: .pathBytes, value: 4_096, maximum: 4_095)
        )
        #expect(
            refusal { $0.consumes = many + ["1"] }
                == .limitExceeded(limit: .operationFiles, value: 10_001, maximum: 10_000)
        )
    }

    @Test func `an operation cannot wait for itself`() {
        #expect(throws: Refusal.dependencyCycle(path: ["a", "a"])) {
            try compile([.nothing("a", after: ["a"])])
        }
    }

    @Test func `a cycle of a million operations is found without a deep stack`() {
        let count = UInt32(1_000_000)
        // Each waits for the one before, and the first for the last.
        let topology = GraphTopology(
            dependencyOffsets: Array(0...count),
            dependencyEdges: (0..<count).map { Edge($0 == 0 ? count - 1 : $0 - 1, .unlessFailed) }
        )

        guard case .cycle(let cycle) = topology.sorted() else {
            Issue.record("the cycle was not found")
            return
        }
        #expect(cycle.count == Int(count))
        #expect(cycle.prefix(3) == [0, count - 1, count - 2])
    }

    @Test func `a chain of a million is sorted, and its critical path is its length`() {
        let count = 1_000_000
        let topology = chain(count)

        guard case .order(let order) = topology.sorted() else {
            Issue.record("there is no cycle in a chain")
            return
        }
        let paths = topology.criticalPaths(
            durations: Array(repeating: 1, count: count),
            order: order
        )
        #expect(order.first == 0 && order.last == UInt32(count - 1))
        #expect(paths.first == UInt64(count) && paths.last == 1)
    }

    @Test func `a long cycle is described by its ends`() {
        let path = (0..<100).map { "o\($0)" } + ["o0"]
        let sentence = Refusal.dependencyCycle(path: path).description

        #expect(sentence.hasPrefix("dependency cycle: o0 → o1 → "))
        #expect(sentence.contains("… 89 more …"))
        #expect(sentence.hasSuffix("→ o99 → o0"))
    }

    @Test func `an unknown dependency is refused with who names it`() {
        #expect(throws: Refusal.unknownOperation(name: "ghost", namedBy: "a")) {
            try compile([.nothing("a", after: ["ghost"])])
        }
    }

    @Test func `two operations cannot have one name`() {
        #expect(throws: Refusal.duplicateOperation(name: "a")) {
            try compile([.nothing("a"), .nothing("b"), .nothing("a")])
        }
    }

    @Test func `a dependency that is listed twice counts once`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a"), .nothing("b", after: ["a", "a"])])

        bench.finish("a")

        #expect(bench.state("b") == .dispatched)
    }

    @Test func `a dependency with two conditions is refused, and named`() {
        #expect(
            throws: Refusal.invalid(
                field: "dependencies of “c”",
                why: "“b” is listed with two conditions"
            )
        ) {
            var operation = OperationDescription(name: "c", work: .nothing)
            operation.dependencies = [
                DependencyDescription("a"), DependencyDescription("a"),
                DependencyDescription("b"), DependencyDescription("b", .finished),
            ]
            _ = try compile([.nothing("a"), .nothing("b"), operation])
        }
    }

    @Test(arguments: [
        ("name", "operation", "the name is empty"),
        ("queue", "queue of “a”", "the name is empty"),
        ("kind", "kind of “a”", "the name is empty"),
        ("key", "exclusive of “a”", "the name is empty"),
        ("command", "command of “a”", "it names no program"),
        ("timeout", "timeout of “a”", "0.0 seconds is less than a nanosecond"),
        ("delay", "delay of “a”", "-1.0 seconds is negative"),
        (
            "duration", "expectedDuration of “a”",
            "3153600001.0 seconds is over 3153600000.0 seconds"
        ),
        ("control", "operation", "the name \"a\\u{1B}[0m\" has a control character"),
        ("reserved", "kind of “a”", "“wait” is built in"),
        ("summary", "description of “a”", "it has a NUL character"),
        ("wait", "wait of “a”", "-1.0 seconds is negative"),
        ("variable", "command of “a”", "\"A=B\" cannot be the name of a variable"),
        ("directory", "command of “a”", "its directory has no name"),
        ("memory", "memory of “a”", "0 is below 1"),
        ("dependency", "dependency of “a”", "the name is empty"),
    ])
    func `nonsense in an operation is refused`(_ what: String, _ field: String, _ why: String) {
        var operation = OperationDescription(name: "a", work: .nothing)
        switch what {
        case "name": operation.name = ""
        case "dependency": operation.dependencies = [DependencyDescription("")]
        case "queue": operation.queue = ""
        case "kind": operation.work = .registered(kind: "", input: .empty)
        case "key": operation.exclusive = [""]
        case "command": operation.work = .command(CommandDescription(arguments: []))
        case "timeout": operation.timeout = .zero
        case "delay": operation.delay = .seconds(-1)
        case "duration": operation.expectedDuration = Limits.durationMax + .seconds(1)
        case "control": operation.name = "a\u{1B}[0m"
        case "reserved": operation.work = .registered(kind: "wait", input: .empty)
        case "summary": operation.summary = "\0"
        case "wait": operation.work = .wait(.seconds(-1))
        case "variable", "directory", "memory":
            var command = CommandDescription(arguments: ["true"])
            if what == "variable" {
                // Of several, the same one every time.
                for letter in ["D", "B", "A", "C"] { command.environment["\(letter)=B"] = "" }
            }
            if what == "directory" { command.directory = "" }
            if what == "memory" { command.memory = 0 }
            operation.work = .command(command)
        case _: Issue.record("no such case")
        }
        #expect(throws: Refusal.invalid(field: field, why: why)) { try compile([operation]) }
    }

    @Test(arguments: [
        RetryPolicy(limit: 1, factor: 0.5), RetryPolicy(limit: 1, factor: .infinity),
        RetryPolicy(limit: 1, factor: .nan), RetryPolicy(limit: 1, jitter: 1.1),
        RetryPolicy(limit: 1, jitter: -0.1), RetryPolicy(limit: 1, jitter: .nan),
        RetryPolicy(limit: 1, delay: .seconds(-1)), RetryPolicy(limit: 1, maxDelay: .seconds(-1)),
        RetryPolicy(limit: 1, delay: .seconds(2), maxDelay: .seconds(1)),
    ])
    func `a retry policy that makes no sense is refused`(_ policy: RetryPolicy) {
        #expect(throws: Refusal.self) { try compile([.nothing("a") { $0.retry = policy }]) }
    }

    @Test func `a negative limit of a queue is refused`() {
        #expect(
            throws: Refusal.invalid(
                field: "queue “q”: maxConcurrentOperationCount",
                why: "-1 is negative"
            )
        ) {
            try compile([], queues: [QueueSettings(name: "q", maxConcurrentOperationCount: -1)])
        }
    }

    @Test func `a limit that 32 bits do not hold is refused`() throws {
        let most = Int(Int32.max)
        _ = try compile([], queues: [QueueSettings(name: "q", maxConcurrentOperationCount: most)])
        #expect(
            throws: Refusal.invalid(
                field: "queue “q”: maxConcurrentOperationCount",
                why: "2147483648 is over 2147483647"
            )
        ) {
            try compile(
                [],
                queues: [QueueSettings(name: "q", maxConcurrentOperationCount: most + 1)]
            )
        }
        #expect(
            throws: Refusal.invalid(
                field: "limit of key “k”",
                why: "2147483648 is over 2147483647"
            )
        ) { try KeySettings(name: "k", limit: most + 1).check(Limits()) }
    }

    @Test func `a key that is defined twice is refused`() {
        var graph = GraphDescription(name: "g")
        graph.keys = [KeySettings(name: "k"), KeySettings(name: "k", limit: 2)]
        #expect(throws: Refusal.invalid(field: "key “k”", why: "it is defined twice")) {
            try CompiledGraph.compile(graph)
        }
    }

    @Test func `a queue that is defined twice is refused`() {
        #expect(throws: Refusal.invalid(field: "queue “q”", why: "it is defined twice")) {
            try compile([], queues: [QueueSettings(name: "q"), QueueSettings(name: "q")])
        }
    }

    @Test func `each limit of a graph holds at n and refuses n and one`() throws {
        var limits = Limits()
        limits.operationsPerGraph = 2
        limits.edgesPerGraph = 1
        limits.nameBytes = 7
        limits.payloadBytes = 3
        limits.queues = 1
        func input(_ bytes: Int) -> OperationDescription {
            let payload = Payload(bytes: Array(repeating: 0, count: bytes))
            return OperationDescription(name: "a", work: .registered(kind: "k", input: payload))
        }

        _ = try compile([.nothing("1234567"), .nothing("b", after: ["1234567"])], limits: limits)
        _ = try compile([input(3)], limits: limits)
        #expect(throws: Refusal.limitExceeded(limit: .operationsPerGraph, value: 3, maximum: 2)) {
            try compile([.nothing("a"), .nothing("b"), .nothing("c")], limits: limits)
        }
        limits.operationsPerGraph = 3
        #expect(throws: Refusal.limitExceeded(limit: .edgesPerGraph, value: 2, maximum: 1)) {
            try compile(
                [.nothing("a"), .nothing("b"), .nothing("c", after: ["a", "b"])],
                limits: limits
            )
        }
        #expect(throws: Refusal.limitExceeded(limit: .nameBytes, value: 8, maximum: 7)) {
            try compile([.nothing("123456é")], limits: limits)
        }
        #expect(throws: Refusal.limitExceeded(limit: .payloadBytes, value: 4, maximum: 3)) {
            try compile([input(4)], limits: limits)
        }
        #expect(throws: Refusal.limitExceeded(limit: .queues, value: 2, maximum: 1)) {
            try compile([.nothing("a"), .nothing("b") { $0.queue = "q" }], limits: limits)
        }
        limits.kinds = 1
        _ = try compile([.nothing("a"), .nothing("b")], limits: limits)
        #expect(throws: Refusal.limitExceeded(limit: .kinds, value: 2, maximum: 1)) {
            try compile([.nothing("b"), input(1)], limits: limits)
        }
    }

    @Test func `a refused graph leaves nothing behind`() throws {
        var bench = SchedulerBench()
        bench.join()
        #expect(throws: Refusal.self) {
            try bench.submit([.nothing("a", after: ["b"]), .nothing("b", after: ["a"])])
        }
        #expect(throws: Refusal.self) { try bench.submit([.nothing("a"), .nothing("a")]) }

        bench.drain()
        let graph = try bench.submit([.nothing("a")])

        #expect(graph == GraphID(rawValue: 0))
        #expect(bench.scheduler.graphCount == 1)
        #expect(bench.granted == ["a"])
    }

    @Test func `a request about something unknown is refused and has no effect`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a"), .nothing("b")])
        bench.drain()
        let ghost = OperationID(graph: GraphID(rawValue: 0), index: 2)
        let addition = CompiledAddition(
            first: 2,
            graph: try CompiledGraph.compile(GraphDescription(name: ""))
        )
        let events: [Scheduler.Event] = [
            .cancelRequested(.operation(ghost), reason: "", cascade: true),
            .cancelRequested(.graph(GraphID(rawValue: 9)), reason: "", cascade: false),
            .cancelRequested(.queue("ghost"), reason: "", cascade: false),
            .suspensionRequested(.operation(ghost), Suspension()),
            .suspensionRequested(.graph(GraphID(rawValue: 9)), Suspension()),
            .priorityRequested(ghost, .high),
            .graphClosed(GraphID(rawValue: 9)),
            .operationsAdded(GraphID(rawValue: 9), addition),
            .operationsAdded(GraphID(rawValue: 0), addition),
            .dependencyAdded(ghost, on: bench.id("b"), .finished),
            .dependencyAdded(bench.id("b"), on: ghost, .finished),
            .dependencyRemoved(ghost, on: bench.id("b")),
            .dependencyRemoved(bench.id("b"), on: ghost),
            .retryRequested(GraphID(rawValue: 9), operations: [], cancelled: false),
            .retryRequested(GraphID(rawValue: 0), operations: [2], cancelled: false),
            .queueLimitSet(queue: "default", maximum: -1),
        ]

        for event in events {
            bench.drive(event)
            let effects = bench.drain()
            #expect(effects.refusals.count == 1, "\(event)")
            #expect(effects.records.isEmpty && effects.messages.isEmpty, "\(event)")
            #expect(effects.notices.isEmpty, "\(event)")
        }
        #expect(bench.state("a") == .dispatched)
        #expect(bench.state("b") == .ready)
    }
}
