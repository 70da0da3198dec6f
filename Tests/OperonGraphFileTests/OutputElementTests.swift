import OperonModel
import OperonPorts
import Testing

@testable import OperonGraphFile

/// Operations that are repeated for the output of another one: what the file becomes, and what an
/// output then adds.
@Suite struct OutputElementTests {
    private func read(_ text: String) throws -> GraphDescription {
        try Fixture.read(text, "g.yaml", GraphFileOptions(directory: "/graphs")).graph
    }

    /// The operation that adds the elements of `name`, as a coordinator gets it.
    private func adding(_ name: String, _ graph: GraphDescription) throws -> OperationDescription {
        let codec = GraphFileCodec()
        let sent = try codec.encode(graph).reduce(into: [UInt8]()) { $0 += $1 }
        let again = try codec.decode(sent, contentType: GraphFileCodec.contentType, name: "g")
        #expect(again.operations == graph.operations)
        return try #require(again.operations.first { $0.name == name + ".forEach" })
    }

    /// What a worker adds for an output, in pieces of two.
    private func elements(
        _ text: String,
        of name: String = "r",
        _ output: String?,
        limits: Limits = Limits()
    ) throws -> [OperationDescription] {
        let operation = try adding(name, try read(text))
        guard case .registered(Work.forEachKind, let template) = operation.work else {
            Issue.record("\(operation.work)")
            return []
        }
        let payload = output.map { Payload(bytes: Array($0.utf8)) }
        var elements = try ElementExpansion(limits: limits).elements(of: template) { source in
            #expect(source == "list")
            return payload
        }
        var operations: [OperationDescription] = []
        while case let piece = try elements.next(atMost: 2), !piece.isEmpty {
            #expect(piece.count <= 2)
            operations += piece
        }
        #expect(operations.count == elements.count)
        return operations
    }

    private func problem(_ text: String, _ output: String?, limits: Limits = Limits()) -> String {
        do {
            return "accepted: \(try elements(text, output, limits: limits).map(\.name))"
        } catch let error as OutputElementError {
            return error.message
        } catch {
            return "\(error)"
        }
    }

    private static let simple = """
        operations:
          list: { run: x }
          r: { run: 'convert "$item"', forEach: { output: list } }
        """
    private static let named = """
        operations:
          list: { run: x }
          r: { run: convert, forEach: { output: list, variables: [width, file] } }
        """

    // MARK: - The file

    @Test func `the file becomes an operation that adds the elements, and their group`() throws {
        let graph = try read(
            """
            defaults: { timeout: 1m, queue: slow }
            operations:
              list: { run: x }
              setup: { run: x }
              r:
                run: ./render "$item"
                forEach: { output: list }
                queue: fast
                exclusive: disk
                retry: 2
                dependencies: { setup: finished, list: unlessFailed }
              after: { run: x, dependencies: [r] }
              last: { run: x, dependencies: { r: finished } }
            """
        )
        #expect(
            graph.operations.map(\.name) == ["list", "setup", "r.forEach", "r", "after", "last"]
        )
        let adding = graph.operations[2]
        #expect(adding.work.kind == Work.forEachKind)
        #expect(
            adding.dependencies == [.init("list", .succeeded), .init("setup", .finished)]
        )
        #expect(adding.queue == "fast")
        #expect(adding.exclusive == [])
        #expect(adding.retry == .never)
        #expect(adding.timeout == nil)
        let group = graph.operations[3]
        #expect(group.work == .nothing)
        #expect(group.queue == "fast")
        #expect(group.dependencies == [.init("r.forEach")])
        #expect(graph.operations[4].dependencies == [.init("r")])
        #expect(graph.operations[5].dependencies == [.init("r", .finished)])
    }

    @Test func `the outputs of all elements are taken through their group`() throws {
        let graph = try read(
            """
            operations:
              list: { run: x }
              r: { run: x, forEach: { output: list } }
              all: { run: x, dependencies: ["r[*]", list] }
              twice: { run: x, dependencies: [r, "r[*]"] }
              ended: { run: x, dependencies: { "r[*]": finished } }
            """
        )
        let elements: (DependencyCondition) -> DependencyDescription = { condition in
            var dependency = DependencyDescription("r", condition)
            dependency.takesElements = true
            return dependency
        }
        let dependencies = graph.operations.dropFirst(3).map(\.dependencies)
        #expect(
            dependencies == [
                [elements(.unlessFailed), DependencyDescription("list")],
                [elements(.unlessFailed)], [elements(.finished)],
            ]
        )
        // A client sends the operations as they are here.
        _ = try adding("r", graph)
    }

    // MARK: - Elements

    @Test func `an element is what the same file with the list in it has`() throws {
        let text = """
            parameters: { day: "$${x} 5", files: [a b, c], width: 1.50, no: { default: false } }
            defaults: { environment: { LANG: "${day}", item: default }, grace: 5s, priority: high }
            operations:
              list: { run: x }
              setup: { run: x }
              r:
                command: [./render, "${item}", "${files}", "$${item}", "${width}", "${no}"]
                description: The element ${item} of ${day}
                environment: { N: "${item}" }
                directory: in/${item}
                timeout: ${item}s
                inFlight: 3
                dependencies: { setup: finished }
                forEach: VALUES
            """
        let added = try elements(text.replacing("VALUES", with: "{ output: list }"), "[1, 20, 3]")
        let spelledOut = try read(text.replacing("VALUES", with: "[1, 20, 3]"))
        #expect(added == spelledOut.operations.filter { $0.name.hasPrefix("r[") })
        #expect(added.map(\.name) == ["r[1]", "r[20]", "r[3]"])
    }

    @Test func `maps give each variable its value, in the order of the file`() throws {
        let added = try elements(
            Self.named,
            #"[{"file": "a b.png", "width": 200}, {"width": 1e3, "file": true}]"#
        )
        #expect(added.map(\.name) == ["r[width=200,file=a b.png]", "r[width=1e3,file=true]"])
        guard case .command(let command) = added[0].work else { return }
        #expect(command.environment == ["width": "200", "file": "a b.png"])
    }

    @Test(arguments: [
        ("[]", []), (#"["a", 1, -0.5, true, ""]"#, ["a", "1", "-0.5", "true", ""]),
        (#""1..3""#, ["1", "2", "3"]), (#" "9..1..-4" "#, ["9", "5", "1"]),
        (#"["forEach", "+", "ä"]"#, ["forEach", "+", "ä"]),
    ])
    func `an output is a list or a range`(output: String, values: [String]) throws {
        #expect(try elements(Self.simple, output).map(\.name) == values.map { "r[\($0)]" })
    }

    /// Fields of an element that is right with these values, by key; `nil`: a variable cannot be
    /// in it.
    private static func fields(with key: OperationKey) -> (fields: String, values: [String])? {
        let item = "${item}"
        return switch key {
        case .name, .forEach, .matrix, .dependencies: nil
        case .description: ("run: x, description: 'The \(item)'", ["first"])
        case .run: ("run: 'x \(item)'", ["first"])
        case .command: ("command: ['\(item)', '\(item)']", ["first"])
        case .operation: ("operation: '\(item)'", ["Resize"])
        case .wait: ("wait: '\(item)'", ["5m"])
        case .external: ("external: '\(item)'", ["true"])
        case .input: ("operation: x, input: { size: ['\(item)'] }", ["large"])
        case .version: ("operation: x, version: '\(item)'", ["2"])
        case .cancelSiblings: ("run: x, cancelSiblings: '\(item)'", ["true", "false"])
        case .queue: ("run: x, queue: '\(item)'", ["fast"])
        case .priority: ("run: x, priority: '\(item)'", ["high", "low"])
        case .qualityOfService: ("run: x, qualityOfService: '\(item)'", ["utility"])
        case .timeout: ("run: x, timeout: '\(item)'", ["5m"])
        case .retry: ("run: x, retry: { limit: '\(item)', delay: '\(item)s' }", ["2"])
        case .expectedDuration: ("run: x, expectedDuration: '\(item)'", ["5m"])
        case .exclusive: ("run: x, exclusive: '\(item)'", ["disk"])
        case .inFlight: ("run: x, inFlight: { group: '\(item)', limit: 2 }", ["few"])
        case .delay: ("run: x, delay: '\(item)'", ["5m"])
        case .notBefore: ("run: x, notBefore: '\(item)'", ["2030-01-01T00:00:00Z"])
        case .deadline: ("run: x, deadline: '\(item)'", ["2030-01-01T00:00:00Z"])
        case .resources:
            ("run: x, resources: { memory: '\(item)GiB', cpus: '\(item)', '\(item)': 1 }", ["2"])
        case .workers:
            ("run: x, workers: { zone: a, disk: { exists: '\(item)' } }", ["true", "false"])
        case .enforce: ("run: x, resources: { cpus: 1 }, enforce: '\(item)'", ["true", "false"])
        case .environment: ("run: x, environment: { N: '\(item)' }", ["first"])
        case .inheritEnvironment: ("run: x, inheritEnvironment: ['\(item)']", ["EDITOR"])
        case .directory: ("run: x, directory: '\(item)'", ["in"])
        case .grace: ("run: x, grace: '\(item)'", ["5m"])
        case .memory: ("run: x, memory: '\(item)'", ["1GiB"])
        case .cpuTime: ("run: x, cpuTime: '\(item)'", ["5m"])
        case .produces: ("run: x, produces: ['\(item).png']", ["a"])
        case .consumes: ("run: x, consumes: ['\(item).png']", ["a"])
        case .skip: ("run: x, produces: [a], skip: '\(item)'", ["upToDate"])
        }
    }

    @Test(arguments: OperationKey.allCases)
    func `a variable can be in each field, as in a file with the list in it`(
        key: OperationKey
    ) throws {
        guard let (fields, values) = Self.fields(with: key) else { return }
        let text = """
            operations:
              list: { run: x }
              r: { \(fields), forEach: VALUES }
            """
        let isText = ![.external, .cancelSiblings, .workers, .enforce, .version, .retry]
            .contains(key)
        let list = values.map { isText ? "\"\($0)\"" : $0 }
        let output = "[" + list.joined(separator: ", ") + "]"
        let added = try elements(text.replacing("VALUES", with: "{ output: list }"), output)
        let spelledOut = try read(text.replacing("VALUES", with: output))
        #expect(added == spelledOut.operations.filter { $0.name.hasPrefix("r[") })
        #expect(added.map(\.name) == values.map { "r[\($0)]" })
    }

    @Test func `elements depend on those of another operation for the same output`() throws {
        let text = """
            operations:
              s:
                run: x
                forEach: { output: list }
                dependencies: ["r[*]": failed, list: finished]
              list: { run: x }
              r: { run: x, forEach: { output: list } }
            """
        let graph = try read(text)
        #expect(
            graph.operations[0].dependencies == [.init("list", .succeeded), .init("r.forEach")]
        )
        let added = try elements(text, of: "s", #"["a", "b"]"#)
        #expect(
            added.map(\.dependencies)
                == ["a", "b"].map {
                    [.init("r[\($0)]", .failed), .init("list", .finished)]
                }
        )
    }

    @Test func `a hundred thousand elements are made piece by piece`() throws {
        let text = Self.simple
        let list = "[" + (0..<100_000).map(String.init).joined(separator: ",") + "]"
        let added = try elements(text, list)
        #expect(added.count == 100_000)
        #expect(added.last?.name == "r[99999]")
        #expect(Set(added.map(\.name)).count == 100_000)
    }

    // MARK: - Hostile outputs

    private static let noList = "“forEach” needs a list, or a range such as \"1..500\""
    private static let noValue = "it must be a string, a number, true or false"
    private static let noControl = "has a control character, and names of operations have none"

    @Test(arguments: [
        ("[1", "is not JSON"), ("[1] 2", "is not JSON"),
        (String(repeating: "[", count: 100_000), "is not JSON"),
        ("{}", "is a map; \(noList)"), ("7", "is 7; \(noList)"), ("null", "is null; \(noList)"),
        (#""a""#, "is “a”; \(noList)"),
        (
            #""1..9000000000000000000""#,
            "has 9000000000000000000 elements, and a graph has at most 1048576 operations"
        ),
    ])
    func `an output that is no list is refused`(output: String, message: String) {
        #expect(problem(Self.simple, output) == "the output of “list” " + message)
    }

    @Test(arguments: [nil, ""])
    func `an operation that left no output is named`(output: String?) {
        #expect(
            problem(Self.simple, output)
                == "“list” left no output; “forEach” needs a list, which a command writes to"
                + " $OPERON_OUTPUT"
        )
    }

    @Test(arguments: ["3..1", "1..2..0", "-9000000000000000000..9000000000000000000"])
    func `a range without values or with too many is refused`(range: String) {
        let message = problem(Self.simple, "\"\(range)\"")
        #expect(message.hasPrefix("in the output of “list”, the "))
        #expect(message.contains("“\(range)”"))
    }

    @Test(
        arguments: [
            ("[1, [2]]", 1, "is a list; \(noValue)"), ("[null]", 0, "is null; \(noValue)"),
            ("[{}]", 0, "is a map; \(noValue)"),
            (#"["a", "*"]"#, 1, "is “*”, which stands for all elements in a dependency"),
            (
                #"["a", 1, "a"]"#, 2,
                "gives the operation the name “r[a]”, and so does element 0"
            ),
            (#"["1", 1]"#, 1, "gives the operation the name “r[1]”, and so does element 0"),
            (#"["\u001b[31m"]"#, 0, noControl), (#"["\u0000"]"#, 0, noControl),
            (
                "[\"" + String(repeating: "x", count: 254) + "\"]", 0,
                "has 254 bytes, and with it the name of the operation has more than 256"
            ),
        ] as [(String, Int, String)]
    )
    func `an element that is no value is refused, with its place`(
        output: String,
        place: Int,
        message: String
    ) {
        #expect(
            problem(Self.simple, output)
                == "element \(place) (counted from 0) of the output of “list” " + message
        )
    }

    @Test(arguments: [
        ("[1]", "is 1; it must be a map with “width”, “file”"),
        (#"[{"width": 1}]"#, "has no “file”"),
        (#"[{"width": 1, "file": 2, "depth": 3}]"#, "has “depth”, which is no variable"),
        (#"[{"width": 1, "file": []}]"#, "has a “file” that is a list; \(noValue)"),
        (
            #"[{"width": 1, "file": "\#(String(repeating: "x", count: 250))"}]"#,
            "gives the operation a name of 266 bytes, which is over the limit of 256"
        ),
    ])
    func `a map without the variables is refused`(output: String, message: String) {
        let lead = "element 0 (counted from 0) of the output of “list” "
        #expect(problem(Self.named, output) == lead + message)
    }

    @Test func `a value that no field takes is refused, with the element`() {
        let text = Self.simple.replacing("forEach", with: "timeout: '${item}', forEach")
        #expect(
            problem(text, #"[1, 2, "soon"]"#)
                == "element 2 (counted from 0): “timeout” must be a duration such as 500ms, 2s, 5m,"
                + " 1h30m, 1d, or a number of seconds, not “soon”"
        )
    }

    @Test func `an output that makes the graph too large is refused`() {
        var limits = Limits()
        limits.operationsPerGraph = 3
        #expect(
            problem(Self.simple, "[1, 2, 3]", limits: limits)
                == "the output of “list” has 3 elements, and a graph has at most 3 operations"
        )
        limits = Limits()
        limits.graphFileBytes = 2_000
        #expect(problem(Self.simple, #""1..500""#, limits: limits).hasPrefix("the elements of"))
    }

    @Test(arguments: ["", "{}", "[]", #"{"name": "r", "output": "x", "fields": []}"#, "null"])
    func `an input that no graph file makes is refused`(input: String) {
        let error = OutputElementError("its input is not what a graph file makes of “forEach”")
        #expect(throws: error) {
            _ = try ElementExpansion().elements(of: Payload(bytes: Array(input.utf8))) { _ in nil }
        }
    }

    // MARK: - Hostile files

    @Test func `a template is not larger than an input`() {
        let text = Self.simple.replacing("convert", with: Sample.letters(1 << 20))
        let problems = Fixture.problems(text, "g.yaml").map(\.message)
        #expect(problems.contains { $0.contains("over the limit of 1048576") })
    }
}
