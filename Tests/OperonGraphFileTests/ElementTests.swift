import Foundation
import OperonGraphFile
import OperonModel
import Testing

/// Repeated operations: `forEach` and `matrix`, their elements and their group.
@Suite struct ElementTests {
    private func read(
        _ text: String,
        file: String = "g.yaml",
        directory: String? = "/graphs"
    ) throws -> GraphDescription {
        try Fixture.read(text, file, GraphFileOptions(directory: directory)).graph
    }

    /// The first problem, as a person reads it, without the file.
    private func problem(_ text: String, file: String = "g.yaml") -> String {
        let problems = Fixture.problems(text, file).map(\.description)
        return problems.count == 1
            ? String(problems[0].dropFirst(file.count + 1)) : "\(problems.count): \(problems)"
    }

    private func names(_ values: String) throws -> [String] {
        try read("operations: { r: { wait: 1s, \(values) } }").operations.map(\.name)
    }

    private func command(_ graph: GraphDescription, _ name: String) throws -> CommandDescription {
        let operation = try #require(graph.operations.first { $0.name == name })
        guard case .command(let command) = operation.work else {
            throw CocoaError(.coderValueNotFound)
        }
        return command
    }

    private func dependencies(_ graph: GraphDescription, _ name: String) throws -> [String] {
        let operation = try #require(graph.operations.first { $0.name == name })
        return operation.dependencies.map(\.name)
    }

    // MARK: - Values

    @Test func `a list makes an operation for each value, and a group`() throws {
        let graph = try read(
            """
            operations:
              render:
                run: ./render "$item" ${item} $${HOME}
                queue: fast
                retry: 2
                forEach: [a.png, in/b c.png, 3, true]
            """
        )
        #expect(
            graph.operations.map(\.name) == [
                "render[a.png]", "render[in/b c.png]", "render[3]", "render[true]", "render",
            ]
        )
        let second = try command(graph, "render[in/b c.png]")
        #expect(second.arguments.last == #"./render "$item" in/b c.png ${HOME}"#)
        #expect(second.environment == ["item": "in/b c.png"])
        let group = graph.operations[4]
        #expect(group.work == .nothing)
        #expect(group.queue == "fast")
        #expect(group.retry == .never)
        #expect(graph.operations[0].retry.limit == 2)
        #expect(group.dependencies == graph.operations.prefix(4).map { .init($0.name) })
    }

    @Test(arguments: [
        ("1..3", ["1", "2", "3"]), ("0..100..50", ["0", "50", "100"]),
        ("0..5..2", ["0", "2", "4"]),
        ("3..1..-1", ["3", "2", "1"]), ("-2..-1", ["-2", "-1"]), ("7..7", ["7"]),
        ("9223372036854775807..9223372036854775807", ["9223372036854775807"]),
    ])
    func `a range has both ends`(range: String, values: [String]) throws {
        #expect(try names("forEach: \(range)") == values.map { "r[\($0)]" } + ["r"])
    }

    @Test func `parameters give the values of an element`() throws {
        let graph = try read(
            """
            parameters: { files: [x, y], count: 2 }
            operations:
              a: { command: [a, "${item}", "${count}"], forEach: "${files}" }
              b: { command: [b, "${item}"], forEach: "1..${count}" }
            """
        )
        #expect(
            graph.operations.map(\.name) == ["a[x]", "a[y]", "a", "b[1]", "b[2]", "b"]
        )
        #expect(try command(graph, "a[y]").arguments == ["a", "y", "2"])
        #expect(try command(graph, "a[y]").environment == ["item": "y", "count": "2"])
    }

    @Test func `an own variable comes before that of the element, and this before the defaults`()
        throws
    {
        let graph = try read(
            """
            defaults: { environment: { item: default, other: default }, timeout: 1m }
            operations:
              a: { run: x, forEach: [1] }
              b: { run: x, forEach: [1], environment: { item: own } }
            """
        )
        #expect(try command(graph, "a[1]").environment == ["item": "1", "other": "default"])
        #expect(try command(graph, "b[1]").environment == ["item": "own", "other": "default"])
        let limits = graph.operations.map(\.timeout)
        #expect(limits == [.seconds(60), nil, .seconds(60), nil])
    }

    @Test func `a value alone keeps its type`() throws {
        let graph = try read(
            """
            operations:
              a: { operation: Sum, input: { n: "${item}", t: "n${item}" }, forEach: [1, x] }
            """
        )
        let inputs = graph.operations.prefix(2).map { operation in
            guard case .registered(_, let input) = operation.work else { return "" }
            return String(decoding: input.bytes, as: UTF8.self)
        }
        #expect(inputs == [#"{"n":1,"t":"n1"}"#, #"{"n":"x","t":"nx"}"#])
    }

    @Test func `no values make a group that has nothing to wait for`() throws {
        let graph = try read(
            "operations: { r: { run: x, forEach: [] }, s: { run: y, dependencies: [r] } }"
        )
        #expect(graph.operations.map(\.name) == ["r", "s"])
        #expect(try dependencies(graph, "s") == ["r"])
    }

    @Test func `without values the group waits for what its elements would have waited for`()
        throws
    {
        let graph = try read(
            """
            operations:
              prepare: { wait: 1s }
              other: { wait: 1s, forEach: [a, b] }
              work:
                wait: 1s
                forEach: []
                dependencies: { prepare: finished, "other[*]": unlessFailed }
              pack: { wait: 1s, dependencies: [work] }
            """
        )
        let work = try #require(graph.operations.first { $0.name == "work" })
        #expect(work.work == .nothing)
        #expect(try dependencies(graph, "work") == ["prepare", "other[a]", "other[b]"])
        #expect(work.dependencies.map(\.condition) == [.finished, .unlessFailed, .unlessFailed])
        #expect(try dependencies(graph, "pack") == ["work"])
    }

    @Test func `without values the group still has the queue of its operation`() throws {
        let graph = try read(
            "operations: { r: { run: 'x ${item}', queue: fast, forEach: [] } }"
        )
        #expect(graph.operations.map(\.queue) == ["fast"])
    }

    @Test func `a name that is defined twice is told once`() {
        let text = "operations: [{ name: r, run: x }, { name: r, run: x, forEach: 1..2 }]"
        #expect(problem(text) == "1:43: operation “r” is defined twice, first in line 1")
    }

    @Test func `a parameter cannot repeat an operation`() {
        let text = "parameters: { k: forEach }\noperations: { r: { run: x, '${k}': [1, 2] } }"
        #expect(
            problem(text)
                == "2:28: “forEach” must be written as it is, not as a value of a parameter"
        )
    }

    // MARK: - Matrix

    @Test func `a matrix is the product, and the last variable changes fastest`() throws {
        #expect(
            try names("matrix: { w: [1, 2], f: [a, b] }") == [
                "r[w=1,f=a]", "r[w=1,f=b]", "r[w=2,f=a]", "r[w=2,f=b]", "r",
            ]
        )
    }

    @Test func `zip takes the values side by side`() throws {
        #expect(
            try names("matrix: { w: 1..2, f: [a, b], zip: true }") == [
                "r[w=1,f=a]", "r[w=2,f=b]", "r",
            ]
        )
    }

    @Test func `combinations are left out and added`() throws {
        let values = """
            matrix: { w: 1..2, f: [a, b], exclude: [{ w: 1, f: b }, { f: a, w: 2 }], \
            include: [{ f: c, w: 9 }] }
            """
        #expect(try names(values) == ["r[w=1,f=a]", "r[w=2,f=b]", "r[w=9,f=c]", "r"])
        #expect(try names("matrix: { w: 1..3, exclude: [{ w: 2 }] }") == ["r[w=1]", "r[w=3]", "r"])
    }

    // MARK: - Dependencies

    @Test func `a dependency on a group is one on all elements`() throws {
        let graph = try read(
            """
            operations:
              sum: { run: x, dependencies: [r] }
              all: { run: x, dependencies: { r: finished, "r[1]": finished } }
              read: { run: x, dependencies: ["r[*]", sum] }
              r: { run: y, forEach: 1..2 }
            """
        )
        // The group has done so if no element failed.
        #expect(try dependencies(graph, "sum") == ["r"])
        #expect(
            graph.operations[1].dependencies
                == [.init("r[1]", .finished), .init("r[2]", .finished)]
        )
        #expect(try dependencies(graph, "read") == ["r[1]", "r[2]", "sum"])
    }

    @Test func `a star names the element of the same label`() throws {
        let graph = try read(
            """
            operations:
              draw: { run: x, forEach: [b, a], dependencies: ["fetch[*]", start] }
              show: { run: x, forEach: [a], dependencies: { "draw[*]": succeeded } }
              fetch: { run: y, forEach: [a, b] }
              start: { run: z }
            """
        )
        #expect(try dependencies(graph, "draw[a]") == ["fetch[a]", "start"])
        #expect(try dependencies(graph, "draw[b]") == ["fetch[b]", "start"])
        #expect(try dependencies(graph, "show[a]") == ["draw[a]"])
        #expect(try dependencies(graph, "draw") == ["draw[b]", "draw[a]"])
    }

    @Test func `an operation that cancels its siblings depends on each element`() throws {
        let graph = try read(
            """
            operations:
              a: { run: x, forEach: 1..2 }
              b: { run: y, dependencies: [a], cancelSiblings: true }
            """
        )
        #expect(try dependencies(graph, "b") == ["a[1]", "a[2]"])
    }

    @Test func `an element is named like any operation`() throws {
        let graph = try read(
            """
            operations:
              a: { run: x, forEach: [in/1, in/2] }
              b: { run: y, dependencies: ["a[in/2]"] }
              c: { run: z, forEach: [in/1], dependencies: ["a[${item}]"] }
            """
        )
        #expect(try dependencies(graph, "b") == ["a[in/2]"])
        #expect(try dependencies(graph, "c[in/1]") == ["a[in/1]"])
    }

    @Test func `what the compiler refuses has the position of the operation`() throws {
        let file = try Fixture.read(
            """
            operations:
              a:
                run: x
                forEach: 1..2
                dependencies: [nowhere]
            """,
            "g.yaml"
        )
        let located = file.located(.unknownOperation(name: "nowhere", namedBy: "a[1]"))
        #expect(located.problems[0].line == 5)
    }

    // MARK: - Formats

    @Test func `JSON and JSON Lines repeat operations too`() throws {
        let map = try read(
            ##"{"operations": {"r": {"run": "x ${item}", "forEach": "1..2"}}}"##,
            file: "g.json"
        )
        let list = try read(
            ##"{"operations": [{"name": "r", "run": "x ${item}", "forEach": [1, 2]}]}"##,
            file: "g.json"
        )
        let lines = try read(
            ##"{"forEach": "1..2", "run": "x ${item}", "name": "r"}"##,
            file: "g.jsonl"
        )
        #expect(map.operations.map(\.name) == ["r[1]", "r[2]", "r"])
        #expect(map == list)
        #expect(map == lines)
    }

    @Test func `anchors and merge keys repeat operations too`() throws {
        let graph = try read(
            """
            operations:
              a: &a { run: "x ${item}", forEach: 1..2 }
              b: { <<: *a, run: "y ${item}" }
            """
        )
        #expect(graph.operations.map(\.name) == ["a[1]", "a[2]", "a", "b[1]", "b[2]", "b"])
        #expect(try command(graph, "b[2]").arguments.last == "y 2")
    }

    // MARK: - Mistakes

    @Test(arguments: [
        (
            "forEach: 5..1",
            """
            2:25: the step of the range “5..1” leads away from its end; did you mean \
            “5..1..-1”?
            """
        ),
        ("forEach: 1..5..0", "2:25: the step of the range “1..5..0” is 0"),
        (
            "forEach: 1-5",
            """
            2:25: “forEach” must be a list, a range such as 1..500, or a map with “lines”, \
            “files” or “output”, not “1-5”
            """
        ),
        (
            "forEach: 3",
            """
            2:25: “forEach” must be a list, a range such as 1..500, or a map with “lines”, \
            “files” or “output”, not 3
            """
        ),
        (
            "forEach: ",
            """
            2:26: “forEach” must be a list, a range such as 1..500, or a map with “lines”, \
            “files” or “output”, not nothing
            """
        ),
        (
            "forEach: -9223372036854775808..9223372036854775807",
            """
            2:25: the range “-9223372036854775808..9223372036854775807” has too many values
            """
        ),
        (
            "forEach: [a, [b]]",
            """
            2:29: each value of “forEach” must be a string, a number, true or false, not a \
            list
            """
        ),
        ("forEach: [a, b, a]", "2:32: two elements have the name “r[a]”"),
        ("forEach: { file: x }", "2:27: unknown key “file”; did you mean “files”?"),
        ("forEach: { lines: x, files: y }", "2:25: “forEach” needs one of “lines” and “files”"),
        ("forEach: [a], matrix: { x: [1] }", "2:30: “matrix” and “forEach” cannot be combined"),
        ("foreach: [a]", "2:16: unknown key “foreach”; did you mean “forEach”?"),
        (
            "matrix: [a]",
            """
            2:24: “matrix” must be a map from variables to their values, not a list
            """
        ),
        (
            "matrix: {}",
            "2:24: “matrix” has no variable; write at least one, such as “width: [320, 640]”"
        ),
        (
            "forEach: [a, \"*\"]",
            "2:29: “*” cannot be the only value of an element, because “r[*]” means all elements"
        ),
        ("matrix: { a: [1], b: [x, x] }", "2:3: two elements have the name “r[a=1,b=x]”"),
        ("forEach: [], rnu: y", "2:29: unknown key “rnu”; did you mean “run”?"),
        (
            "forEach: [], timeout: soon, delay: \"${item}\"",
            """
            2:38: “timeout” must be a duration such as 500ms, 2s, 5m, 1h30m, 1d, or a number \
            of seconds, not “soon”
            """
        ),
        (
            "matrix: { PATH: [1] }",
            """
            2:26: “PATH” cannot be the name of a variable: processes need the variable of \
            this name
            """
        ),
        (
            "matrix: { a: [1], b: [1, 2], zip: true }",
            """
            2:16: “zip” takes the values side by side, but “a” has 1 and “b” has 2
            """
        ),
        (
            "matrix: { a: [1], exclude: [{ a: 2 }] }",
            """
            2:49: “exclude” would leave out nothing: 2 is not among the values of “a”
            """
        ),
        ("matrix: { a: [1], exclude: [{ b: 2 }] }", "2:46: unknown key “b”; did you mean “a”?"),
        (
            "matrix: { a: [1], b: [2], include: [{ a: 2 }] }",
            """
            2:52: each map of “include” sets all variables; this one has no “b”
            """
        ),
        (
            "matrix: { a: [1], include: 3 }",
            """
            2:43: “include” must be a list of maps from variables to values, not 3
            """
        ),
        ("matrix: { a: [1], zip: 3 }", "2:39: “zip” must be true or false, not 3"),
        (
            "forEach: [a], cancelSiblings: soon",
            """
            2:46: “cancelSiblings” must be true or false, not “soon”
            """
        ),
        (
            "forEach: [a], directory: \"${itme}\"",
            """
            2:41: there is no parameter “itme”; a literal “${” is written “$${”; did you \
            mean “item”?
            """
        ),
    ])
    func `a mistake is told once, where it is`(values: String, message: String) {
        #expect(problem("operations:\n  r: { run: x, \(values) }") == message)
    }

    @Test(arguments: [
        (
            "s: { run: x, forEach: [1, 3], dependencies: [\"r[*]\"] }",
            """
            3:48: “s[3]” depends on “r[*]”, but there is no “r[3]”
            """
        ),
        (
            "s: { run: x, forEach: [1], dependencies: [\"q[*]\"] }",
            """
            3:45: “q[*]” names elements of “q”, which is no repeated operation of this file; \
            did you mean “r”?
            """
        ),
        (
            "s: { run: x, forEach: [1], dependencies: { \"r[*]\": finished, \"r[1]\": failed } }",
            """
            3:64: the dependency on “r[1]” has two different conditions
            """
        ),
        (
            "s: { run: x, dependencies: { r: finished, \"r[1]\": failed } }",
            """
            3:45: the dependency on “r[1]” has two different conditions
            """
        ),
        ("\"r[2]\": { run: x }", "3:3: operation “r[2]” is defined twice, first in line 2"),
        (
            "s: { run: x, forEach: [a], dependencies: [\"q[*]\"] }",
            """
            3:45: “q[*]” names elements of “q”, which is no repeated operation of this file; \
            did you mean “r”?
            """
        ),
    ])
    func `a dependency on elements is checked`(operation: String, message: String) {
        #expect(problem("operations:\n  r: { run: x, forEach: 1..2 }\n  \(operation)") == message)
    }

    @Test func `a variable has not the name of a parameter`() {
        let text = "parameters: { item: 1, w: 2 }\noperations:\n  r: { run: x, "
        #expect(
            problem(text + "forEach: [1] }")
                == "3:16: “forEach” sets the variable “item”, which is the name of a parameter; "
                + "rename the parameter, or use “matrix”, which names its variables"
        )
        #expect(
            problem(text + "matrix: { w: [1] } }")
                == "3:26: “w” is the name of a parameter already"
        )
    }

    @Test func `the name of a repeated operation has no values`() {
        #expect(
            problem("operations: { 'r${item}': { run: x, forEach: [1] } }")
                == "1:15: the name “r${item}” of a repeated operation has no “${”: each element "
                + "has its values after the name, as in “render[a.png]”"
        )
    }

    @Test func `defaults repeat nothing`() {
        #expect(
            problem("defaults: { forEach: [1] }\noperations: { r: { run: x } }")
                == "1:13: “forEach” belongs to one operation, not to the defaults"
        )
    }
}
