import OperonGraphFile
import OperonModel
import Testing

/// Each limit of a graph file holds at its value and refuses one more, and says which it is.
@Suite struct LimitTests {
    /// A limit set to a small value, a text that fills it, and one that is over it by one.
    struct Case: CustomTestStringConvertible, Sendable {
        var limit: LimitName
        var file: String
        var set: @Sendable (inout Limits) -> Void
        var text: @Sendable (Int) -> String
        var full: Int

        var testDescription: String { "\(limit.rawValue) in \(file)" }
    }

    static let cases: [Case] = [
        Case(
            limit: .operationsPerGraph,
            file: "g.json",
            set: { $0.operationsPerGraph = 3 },
            text: { Sample.json(operations: $0) },
            full: 3
        ),
        Case(
            limit: .operationsPerGraph,
            file: "g.jsonl",
            set: { $0.operationsPerGraph = 3 },
            text: { Sample.lines(operations: $0) },
            full: 3
        ),
        Case(
            limit: .operationsPerGraph,
            file: "g.yaml",
            set: { $0.operationsPerGraph = 3 },
            text: { Sample.yaml(operations: $0) },
            full: 3
        ),
        Case(
            limit: .yamlOperations,
            file: "g.yaml",
            set: { $0.yamlOperations = 3 },
            text: { Sample.yaml(operations: $0) },
            full: 3
        ),
        Case(
            limit: .edgesPerGraph,
            file: "g.yaml",
            set: { $0.edgesPerGraph = 4 },
            text: { count in
                let names = (0..<count).map { "d\($0)" }.joined(separator: ", ")
                return "operations: {a: {run: ls, dependencies: [\(names)]}}"
            },
            full: 4
        ),
        Case(
            limit: .graphFileBytes,
            file: "g.json",
            set: { $0.graphFileBytes = 40 },
            text: { Sample.json(operations: 1).padded(to: $0) },
            full: 40
        ),
        Case(
            limit: .graphFileBytes,
            file: "g.jsonl",
            set: { $0.graphFileBytes = 40 },
            text: { Sample.lines(operations: 1).padded(to: $0) },
            full: 40
        ),
        Case(
            limit: .yamlDepth,
            file: "g.yaml",
            set: { $0.yamlDepth = 10 },
            text: { "operations: {a: {operation: X, input: \(Sample.nested($0 - 3))}}" },
            full: 10
        ),
        Case(
            limit: .yamlDepth,
            file: "g.json",
            set: { $0.yamlDepth = 10 },
            text: {
                #"{"operations": {"a": {"operation": "X", "input": \#(Sample.nested($0 - 3))}}}"#
            },
            full: 10
        ),
        Case(
            limit: .yamlDepth,
            file: "g.jsonl",
            set: { $0.yamlDepth = 10 },
            text: { #"{"name": "a", "operation": "X", "input": \#(Sample.nested($0 - 1))}"# },
            full: 10
        ),
        Case(
            limit: .yamlAliasExpansion,
            file: "g.yaml",
            set: { $0.yamlAliasExpansion = 12 },
            text: { count in
                // Each alias stands for three values: the list and its two elements.
                let aliases = [String](repeating: "*x", count: count / 3) + ["1"]
                let rest = [String](repeating: "*y", count: count % 3)
                let list = (["&x [1, 2]", "&y 1"] + aliases + rest).joined(separator: ", ")
                return "operations: {a: {operation: X, input: [\(list)]}}"
            },
            full: 12
        ),
        Case(
            limit: .nameBytes,
            file: "g.yaml",
            set: { $0.nameBytes = 10 },
            text: { "operations: {\(Sample.letters($0)): {run: ls}}" },
            full: 10
        ),
        Case(
            limit: .pathBytes,
            file: "g.yaml",
            set: { $0.pathBytes = 10 },
            text: { "operations: {a: {run: ls, consumes: [\(Sample.letters($0))]}}" },
            full: 10
        ),
        Case(
            limit: .operationFiles,
            file: "g.yaml",
            set: { $0.operationFiles = 4 },
            text: { count in
                let paths = (0..<count).map { "p\($0)" }.joined(separator: ", ")
                return "operations: {a: {run: ls, produces: [\(paths)]}}"
            },
            full: 4
        ),
        Case(
            limit: .operationFiles,
            file: "g.yaml",
            set: { $0.operationFiles = 4 },
            text: { count in
                let paths = (1..<count).map { "p\($0)" }.joined(separator: ", ")
                return "operations: {a: {run: ls, produces: [\(paths)], consumes: x}}"
            },
            full: 4
        ),
        Case(
            limit: .nameBytes,
            file: "g.jsonl",
            set: { $0.nameBytes = 10 },
            text: { #"{"name": "\#(Sample.letters($0))", "run": "ls"}"# },
            full: 10
        ),
        Case(
            limit: .nameBytes,
            file: "g.yaml",
            set: { $0.nameBytes = 10 },
            text: { "{name: \(Sample.letters($0)), operations: {}}" },
            full: 10
        ),
        Case(
            limit: .nameBytes,
            file: "g.yaml",
            set: { $0.nameBytes = 10 },
            text: { "operations: {a: {operation: \(Sample.letters($0))}}" },
            full: 10
        ),
        Case(
            limit: .nameBytes,
            file: "g.yaml",
            set: { $0.nameBytes = 10 },
            text: { "operations: {a: {run: ls, queue: \(Sample.letters($0))}}" },
            full: 10
        ),
        Case(
            limit: .nameBytes,
            file: "g.yaml",
            set: { $0.nameBytes = 10 },
            text: { "operations: {a: {run: ls, exclusive: [\(Sample.letters($0))]}}" },
            full: 10
        ),
        Case(
            limit: .nameBytes,
            file: "g.yaml",
            set: { $0.nameBytes = 10 },
            text: { "operations: {a: {run: ls, dependencies: [\(Sample.letters($0))]}}" },
            full: 10
        ),
        Case(
            limit: .payloadBytes,
            file: "g.yaml",
            set: { $0.payloadBytes = 20 },
            text: { "operations: {a: {operation: X, input: \(Sample.letters($0 - 2))}}" },
            full: 20
        ),
        Case(
            limit: .payloadBytes,
            file: "g.json",
            set: { $0.payloadBytes = 20 },
            text: { #"{"operations": {"a": {"command": ["\#(Sample.letters($0 - 1))"]}}}"# },
            full: 20
        ),
        Case(
            limit: .queues,
            file: "g.yaml",
            set: { $0.queues = 2 },
            text: { count in
                let queues = (0..<count).map { "q\($0): {}" }.joined(separator: ", ")
                return "{queues: {\(queues)}, operations: {}}"
            },
            full: 2
        ),
        Case(
            limit: .keys,
            file: "g.yaml",
            set: { $0.keys = 2 },
            text: { count in
                let keys = (0..<count).map { "k\($0): {}" }.joined(separator: ", ")
                return "{keys: {\(keys)}, operations: {}}"
            },
            full: 2
        ),
    ]

    @Test(arguments: cases)
    func `a file that fills a limit is read`(example: Case) {
        var limits = Limits()
        example.set(&limits)
        #expect(Fixture.problems(example.text(example.full), example.file, limits) == [])
    }

    @Test(arguments: cases)
    func `a file over a limit is refused with the limit's name and value`(example: Case) {
        var limits = Limits()
        example.set(&limits)
        let problems = Fixture.problems(example.text(example.full + 1), example.file, limits)

        #expect(problems.map(\.code) == [.limitExceeded])
        #expect(problems.map(\.limit) == [example.limit])
        let message = problems.first?.message ?? ""
        #expect(message.contains("\(example.full + 1) is over the limit of \(example.full) "))
        #expect(message.hasSuffix("(\(example.limit.rawValue))"))
    }

    @Test func `the limits of the design are the defaults`() {
        let limits = Limits()
        #expect(limits.operationsPerGraph == 1 << 20)
        #expect(limits.edgesPerGraph == 10_000_000)
        #expect(limits.graphFileBytes == 268_435_456)
        #expect(limits.yamlOperations == 100_000)
        #expect(limits.yamlDepth == 64)
        #expect(limits.nameBytes == 256)
        #expect(limits.payloadBytes == 1_048_576)
        #expect(GraphFileOptions().limits == limits)
    }

    @Test(arguments: [("g.yaml", 64), ("g.json", 64)])
    func `nesting of 64 levels is read and of 65 refused by default`(file: String, depth: Int) {
        let text = {
            #"{"operations": {"a": {"operation": "X", "input": \#(Sample.nested($0 - 3))}}}"#
        }
        #expect(Fixture.problems(text(depth), file) == [])
        #expect(Fixture.problems(text(depth + 1), file).map(\.limit) == [.yamlDepth])
    }

    @Test func `a name of 256 bytes is read and of 257 refused by default`() {
        let text = { "operations: {\(Sample.letters($0)): {run: ls}}" }
        #expect(Fixture.problems(text(256), "g.yaml") == [])
        #expect(Fixture.problems(text(257), "g.yaml").map(\.limit) == [.nameBytes])
    }

    @Test func `a name is measured in bytes, not in characters`() {
        let name = String(repeating: "é", count: 129)
        let problems = Fixture.problems("operations: {\(name): {run: ls}}", "g.yaml")
        #expect(problems.first?.message.contains("258 is over the limit of 256") == true)
    }

    @Test func `an input of 1 MiB is read and of one byte more refused by default`() {
        let text = { #"{"name": "a", "operation": "X", "input": "\#(Sample.letters($0 - 2))"}"# }
        #expect(Fixture.problems(text(1 << 20), "g.jsonl") == [])
        #expect(Fixture.problems(text(1 << 20 + 1), "g.jsonl").map(\.limit) == [.payloadBytes])
    }

    @Test func `a file is refused by its size before it is read`() throws {
        var limits = Limits()
        limits.graphFileBytes = 20
        try Fixture.withFile("g.yaml", Array(repeating: 0x20, count: 21)) { path in
            let error = #expect(throws: GraphFileError.self) {
                try GraphFile.read(path: path, options: GraphFileOptions(limits: limits))
            }
            #expect(error?.problems.map(\.limit) == [.graphFileBytes])
            #expect(error?.description.hasPrefix(path + ": the file is too large: 21") == true)
        }
    }
}

extension String {
    fileprivate func padded(to count: Int) -> String {
        self + String(repeating: " ", count: count - utf8.count)
    }
}
