import OperonGraphFile
import OperonModel
import OperonPorts
import Testing

private typealias Generator = MutationTests.Generator

/// A graph as it travels: what is encoded is decoded as it was, or refused before it leaves.
@Suite struct CodecTests {
    private static let codec = GraphFileCodec()

    private static func bytes(_ graph: GraphDescription) throws -> [UInt8] {
        var bytes: [UInt8] = []
        for piece in try codec.encode(graph) { bytes += piece }
        return bytes
    }

    private static func sent(_ graph: GraphDescription) throws -> GraphDescription {
        try codec.decode(
            try bytes(graph),
            contentType: GraphFileCodec.contentType,
            name: ""
        )
    }

    @Test(arguments: 0..<8)
    func `any graph is decoded as it was, or refused by a sentence`(part: Int) throws {
        var generator = Generator(state: 0xC0DE_C000 + UInt64(part))
        var refused = 0
        for _ in 0..<500 {
            let graph = AnyGraph.make(using: &generator)
            do {
                let sent = try Self.sent(graph)
                #expect(sent == graph)
                #expect(
                    try GraphFile.read(
                        bytes: GraphFile.encodeJSON(graph),
                        file: "g.json",
                        options: GraphFileOptions(name: "")
                    ).graph == graph
                )
            } catch let error as Refusal {
                refused += 1
                #expect(!AnyGraph.isPlain(graph), "\(error)")
                #expect(throws: GraphFileError.self) { try GraphFile.encodeJSON(graph) }
            }
        }
        #expect((50..<450).contains(refused), "the generator makes hardly anything, or nothing bad")
    }

    @Test func `a large graph comes in pieces, of which none is large`() throws {
        let operations = (0..<20_000).map {
            OperationDescription(name: "operation-\($0)", work: .wait(.seconds($0)))
        }
        let graph = GraphDescription(name: "large", operations: operations)
        var pieces = 0
        for piece in try Self.codec.encode(graph) {
            pieces += 1
            #expect(piece.count < 80 << 10)
        }

        #expect(pieces > 10)
        #expect(try Self.sent(graph) == graph)
    }

    @Test func `an input on several lines stays in its line`() throws {
        let input = Payload(bytes: Array("{\r\n  \"a\": [1,\n 2]\n}".utf8))
        let graph = GraphDescription(
            name: "g",
            operations: [
                OperationDescription(name: "o", work: .registered(kind: "K", input: input))
            ]
        )
        let lines = try Self.bytes(graph).split(separator: UInt8(ascii: "\n"))

        #expect(lines.count == 2)
        guard case .registered(_, let read) = try Self.sent(graph).operations[0].work else {
            Issue.record("another kind of work")
            return
        }
        #expect(String(decoding: read.bytes, as: UTF8.self) == #"{"a":[1,2]}"#)
    }

    @Test(arguments: [
        ("application/json; charset=utf-8", #"{"operations": {"a": {"run": "ls"}}}"#),
        ("application/x-ndjson", #"{"name": "a", "run": "ls"}"#),
        ("Application/YAML", "operations: { a: { run: ls } }"),
    ])
    func `every format is known by its media type`(type: String, text: String) throws {
        let graph = try Self.codec.decode(Array(text.utf8), contentType: type, name: "given")

        #expect(graph.name == "given")
        #expect(graph.operations.map(\.name) == ["a"])
    }

    @Test func `what is wrong is named with its line`() {
        #expect {
            try Self.codec.decode(
                Array("{\"name\": \"a\", \"run\": \"ls\"}\n{\"name\": \"b\"}\n".utf8),
                contentType: "application/jsonl",
                name: "sent"
            )
        } throws: { error in
            "\(error)".hasPrefix("sent:2:") && "\(error)".contains("operation “b” has nothing")
        }
        #expect {
            try Self.codec.decode([], contentType: "text/html", name: "")
        } throws: { error in
            "\(error)".contains("“text/html” is no graph: it is application/json")
        }
    }
}

/// Graphs with every field set in some of them, some of them to what no file can hold.
private enum AnyGraph {
    static let plainNames = ["a", "b.c", "数え", "with space", "é\"\\", "x/y", "🦊", "null", "7"]
    static let plainInputs = [
        "{}", "[1,2.50,-0.5e3]", #"{"a":{"b":[true,false,null]},"c":"\u0000\u0001\b\f\t"}"#, "7",
        #""text""#, "null",
    ]
    static let oddInputs = [
        "{", "nonsense", "{\"a\":1,\"a\":2}", String(repeating: "[", count: 64), "[1] 2",
        String(repeating: "[", count: 64) + String(repeating: "]", count: 64), "\u{FEFF}{}",
    ]

    static func make(using random: inout Generator) -> GraphDescription {
        var graph = GraphDescription(name: some(["", "g", "graph of tests"], &random))
        let names = plainNames.prefix(Int.random(in: 0...plainNames.count, using: &random))
        if chance(3, &random) {
            var queue = QueueSettings(name: "q")
            queue.maxConcurrentOperationCount = some([nil, 0, 7], &random)
            queue.isSuspended = chance(2, &random)
            queue.priority = some(QueuePriority.allCases, &random)
            graph.queues = [queue, QueueSettings(name: "r")]
        }
        if chance(4, &random) {
            graph.keys = [KeySettings(name: "k", limit: some([1, 3], &random))]
        }
        for (index, name) in names.enumerated() {
            var operation = OperationDescription(name: name, work: work(&random))
            operation.dependencies = names.prefix(index).filter { _ in chance(2, &random) }
                .map { DependencyDescription($0, some(DependencyCondition.allCases, &random)) }
            operation.cancelSiblings = chance(4, &random)
            if !operation.work.isExternal {
                if chance(3, &random) {
                    operation.resources = [.cpus(0.25), .memory(bytes: 1 << 30), .gpus(2)]
                    if case .command = operation.work {
                        operation.enforcesResources = chance(2, &random)
                    }
                }
                if chance(3, &random) {
                    operation.workers = [
                        .equals("region", "eu"), WorkerRequirement("disk", .exists(false)),
                        WorkerRequirement("zone", .noneOf(["a", "true", "5"])),
                    ]
                }
            }
            fill(&operation, &random)
            graph.operations.append(operation)
        }
        if chance(4, &random) { spoil(&graph, &random) }
        return graph
    }

    /// Whether nothing that `spoil` does was done to it: such a graph must pass.
    static func isPlain(_ graph: GraphDescription) -> Bool {
        graph.operations.allSatisfy { operation in
            var isPlain =
                plainNames.contains(operation.name) && (operation.timeout ?? .seconds(1)) > .zero
            isPlain = isPlain && operation.retry.factor.isFinite && operation.queue != "\n"
            isPlain = isPlain && operation.retry.maxDelay >= operation.retry.delay
            switch operation.work {
            case .nothing, .wait: break
            case .external(let input):
                let text = String(decoding: input.bytes, as: UTF8.self)
                isPlain = isPlain && (text.isEmpty || plainInputs.contains(text))
            case .registered(let kind, let input):
                let text = String(decoding: input.bytes, as: UTF8.self)
                isPlain = isPlain && kind == "Kind" && (text.isEmpty || plainInputs.contains(text))
                isPlain = isPlain && input.contentType != "text/plain"
            case .command(let command):
                isPlain = isPlain && command.arguments.first?.isEmpty == false
                isPlain = isPlain && command.environment["="] == nil
                isPlain = isPlain && command.memory ?? 1 > 0
            }
            return isPlain
        }
    }

    private static func spoil(_ graph: inout GraphDescription, _ random: inout Generator) {
        guard !graph.operations.isEmpty else { return }
        let index = Int.random(in: 0..<graph.operations.count, using: &random)
        var operation = graph.operations[index]
        var command = CommandDescription(arguments: ["ls"])
        switch Int.random(in: 0..<11, using: &random) {
        case 0: operation.name = some(["", "a\nb", String(repeating: "n", count: 257)], &random)
        case 1: operation.timeout = .zero
        case 2: operation.timeout = .seconds(-1)
        case 3: operation.retry = RetryPolicy(limit: 1, factor: some([.nan, .infinity], &random))
        case 4: operation.retry = RetryPolicy(limit: 1, delay: .seconds(2), maxDelay: .seconds(1))
        case 5: operation.queue = "\n"
        case 6:
            let bytes = Array(some(oddInputs, &random).utf8)
            operation.work = .registered(kind: "Kind", input: Payload(bytes: bytes))
        case 7:
            let payload = Payload(contentType: "text/plain", bytes: some([[], [0x31]], &random))
            operation.work = .registered(kind: "Kind", input: payload)
        case 8:
            let kind = some(["wait", "external", ""], &random)
            operation.work = .registered(kind: kind, input: .empty)
        case 9:
            command.arguments = some([[], [""]], &random)
            operation.work = .command(command)
        default:
            command.environment["="] = "x"
            operation.work = .command(command)
        }
        graph.operations[index] = operation
    }

    private static func work(_ random: inout Generator) -> Work {
        switch Int.random(in: 0..<6, using: &random) {
        case 0: return .nothing
        case 5:
            let input = chance(3, &random) ? "" : some(plainInputs, &random)
            return .external(input: Payload(bytes: Array(input.utf8)))
        case 1: return .wait(.nanoseconds(Int.random(in: 0...5_000_000_000, using: &random)))
        case 2:
            let input = chance(3, &random) ? "" : some(plainInputs, &random)
            let type = some([Payload.json, Payload.json(version: 7)], &random)
            let payload = Payload(contentType: type, bytes: Array(input.utf8))
            return .registered(kind: "Kind", input: payload)
        default:
            let lines = [
                ["ls", "-l"], CommandDescription.shell("ls | wc"), ["/bin/sh", "-c", ""],
            ]
            var command = CommandDescription(arguments: some(lines, &random))
            if chance(2, &random) { command.environment = ["A": "", "B": "x=\ny\u{1B}"] }
            if chance(3, &random) { command.secrets = ["AB": "db", "Z": "a.b_C-1"] }
            if chance(2, &random) { command.inheritEnvironment = some([[], ["HOME"]], &random) }
            command.directory = some([nil, "/tmp", "relative/path"], &random)
            if chance(2, &random) { command.grace = .milliseconds(1_500) }
            if chance(2, &random) { command.memory = some([1, 4_096, 3 << 30], &random) }
            if chance(2, &random) { command.cpuTime = .seconds(90) }
            if chance(2, &random) { command.consumes = some([["a"], ["/b c", "ä\"\n"]], &random) }
            if chance(2, &random) {
                command.produces = some([["out/"], ["1", "true"]], &random)
                command.skipsIfUpToDate = chance(2, &random)
            }
            return .command(command)
        }
    }

    private static func fill(_ operation: inout OperationDescription, _ random: inout Generator) {
        if chance(3, &random) {
            operation.summary = some(["why", "two\nlines", "\u{1B}[2J"], &random)
        }
        if chance(3, &random) { operation.queue = some(["q", "r", "other"], &random) }
        if chance(3, &random) { operation.priority = some(QueuePriority.allCases, &random) }
        operation.qualityOfService = some(QualityOfService.allCases, &random)
        if chance(3, &random) { operation.timeout = .milliseconds(1) }
        if chance(3, &random) {
            operation.retry = RetryPolicy(
                limit: some([0, 3, .max], &random),
                delay: .milliseconds(250),
                factor: some([1, 1.5, 1e300], &random),
                maxDelay: .seconds(7_200),
                jitter: some([0, 0.125, 1], &random)
            )
        }
        if chance(3, &random) {
            operation.expectedDuration = some([.zero, .seconds(3_661)], &random)
        }
        if chance(3, &random) { operation.exclusive = ["db", "gpu"] }
        if chance(3, &random) { operation.inFlight = InFlightLimit(group: "a \"b\"", limit: 7) }
        if chance(3, &random) { operation.delay = .seconds(86_400 * 365) }
        let moments: [Int64] = [0, 1, -1, .min, .max, 1_790_000_000_000_000_000]
        if chance(3, &random) {
            operation.notBefore = WallTime(nanosecondsSince1970: some(moments, &random))
        }
        if chance(3, &random) {
            operation.deadline = WallTime(nanosecondsSince1970: some(moments, &random))
        }
    }

    private static func chance(_ one: Int, _ random: inout Generator) -> Bool {
        Int.random(in: 0..<one, using: &random) == 0
    }

    private static func some<Value>(_ values: [Value], _ random: inout Generator) -> Value {
        values[Int.random(in: 0..<values.count, using: &random)]
    }
}
