import Foundation
import OperonGraphFile
import OperonModel
import Testing

/// Parameters of a graph file: declarations, values from outside, references.
@Suite struct ParameterTests {
    private func read(
        _ text: String,
        _ settings: [String] = [],
        file: String = "g.yaml"
    ) throws -> GraphDescription {
        let given = try settings.map {
            try #require(ParameterAssignment($0, source: "--set", directory: "/here"))
        }
        return try Fixture.read(
            text,
            file,
            GraphFileOptions(directory: "/graphs", parameters: given)
        ).graph
    }

    /// What is wrong, as a person reads it.
    private func problems(
        _ text: String,
        _ settings: [String] = [],
        file: String = "g.yaml"
    ) throws -> [String] {
        do {
            _ = try read(text, settings, file: file)
            return []
        } catch let error as GraphFileError {
            return error.problems.map(\.description)
        }
    }

    private func command(_ graph: GraphDescription, _ index: Int = 0) throws -> CommandDescription {
        guard case .command(let command) = graph.operations[index].work else {
            throw CocoaError(.coderValueNotFound)
        }
        return command
    }

    // MARK: - References

    @Test func `a reference is replaced in every text`() throws {
        let graph = try read(
            """
            parameters: { day: "2026-01-02", team: red }
            name: report-${day}
            queues: { "${team}": { priority: high } }
            operations:
              fetch-${day}: { command: [fetch, "--day=${day}"], queue: "${team}" }
              sum:
                run: sum ${day} in ${team}
                dependencies: { "fetch-${day}": finished }
            """
        )
        #expect(graph.name == "report-2026-01-02")
        #expect(graph.queues.map(\.name) == ["red"])
        #expect(graph.operations.map(\.name) == ["fetch-2026-01-02", "sum"])
        #expect(graph.operations[0].queue == "red")
        #expect(try command(graph).arguments == ["fetch", "--day=2026-01-02"])
        #expect(try command(graph, 1).arguments.last == "sum 2026-01-02 in red")
        #expect(
            graph.operations[1].dependencies
                == [DependencyDescription("fetch-2026-01-02", .finished)]
        )
    }

    @Test func `a text that is only a reference takes the type`() throws {
        let graph = try read(
            """
            parameters:
              most: 3
              isSlow: true
              pause: { type: duration, default: 90s }
              room: { type: size, default: 2GiB }
              keys: [db, disk]
              share: 0.5
            queues: { q: { maxConcurrentOperationCount: "${most}", isSuspended: "${isSlow}" } }
            operations:
              a:
                run: "true"
                timeout: ${pause}
                memory: ${room}
                exclusive: ${keys}
              b:
                operation: Sum
                input:
                  { most: "${most}", all: ["x", "${keys}"], share: "${share}", slow: "${isSlow}" }
            """
        )
        #expect(graph.queues.first?.maxConcurrentOperationCount == 3)
        #expect(graph.queues.first?.isSuspended == true)
        #expect(graph.operations[0].timeout == .seconds(90))
        #expect(try command(graph).memory == 2 << 30)
        #expect(graph.operations[0].exclusive == ["db", "disk"])
        guard case .registered(_, let input) = graph.operations[1].work else {
            throw CocoaError(.coderValueNotFound)
        }
        #expect(
            String(decoding: input.bytes, as: UTF8.self)
                == #"{"most":3,"all":["x","db","disk"],"share":0.5,"slow":true}"#
        )
    }

    @Test func `a list is several arguments, or one text`() throws {
        let graph = try read(
            """
            parameters: { files: [a, "b c"] }
            operations:
              a: { command: [cat, "${files}", "all: ${files}"] }
            """
        )
        #expect(try command(graph).arguments == ["cat", "a", "b c", "all: a b c"])
    }

    @Test(arguments: [
        ("$${day}", "${day}"), ("$$${day}", "$${day}"), ("$day", "$day"), ("${day}${day}", "mm"),
        ("a${day}b", "amb"), ("$", "$"), ("$$", "$$"), ("100$ ${day}", "100$ m"),
        ("$${day} ${day}", "${day} m"),
    ])
    func `only a dollar with a brace means something`(text: String, wanted: String) throws {
        let graph = try read(
            """
            parameters: { day: m }
            operations: { a: { command: [echo, '\(text)'] } }
            """
        )
        #expect(try command(graph).arguments == ["echo", wanted])
    }

    @Test func `a file without parameters keeps its dollars`() throws {
        let graph = try read("operations: { a: { run: 'echo ${HOME:-none} $${x}' } }")
        #expect(try command(graph).arguments.last == "echo ${HOME:-none} $${x}")
        #expect(try command(graph).environment == [:])
    }

    // MARK: - Where they stand

    @Test(arguments: ["g.yaml", "g.json"])
    func `parameters may come after what uses them`(file: String) throws {
        let graph = try read(
            """
            {"name": "n", "operations": {"a": {"command": ["echo", "${day}"]}},
             "parameters": {"day": {"default": "m"}}}
            """,
            ["day=t"],
            file: file
        )
        #expect(try command(graph).arguments == ["echo", "t"])
    }

    @Test func `the header of lines has them`() throws {
        let graph = try read(
            """
            {"name": "n-${day}", "parameters": {"day": null}}
            {"name": "a", "run": "echo ${day}"}
            """,
            ["day=m"],
            file: "g.jsonl"
        )
        #expect(graph.name == "n-m")
        #expect(try command(graph).arguments.last == "echo m")
    }

    @Test func `parameters may be an alias, and come from no merge`() throws {
        let graph = try read(
            """
            defaults: { environment: &all { day: m } }
            operations: { a: { run: "echo ${day}", timeout: "${pause}" } }
            parameters: { <<: *all, pause: 5s }
            """
        )
        #expect(try command(graph).arguments.last == "echo m")
        #expect(graph.operations[0].timeout == .seconds(5))
        let wanted = "these “parameters” must come first, as a key of the file itself"
        #expect(
            try problems("<<: { parameters: { day: m } }\noperations: { a: { run: x } }\n")
                == ["g.yaml:1:7: \(wanted)"]
        )
        let below = """
            operations: { a: { run: "echo", environment: &all { day: m } } }
            parameters: *all
            """
        #expect(try problems(below) == ["g.yaml:2:1: \(wanted)"])
    }

    @Test(arguments: [
        ("parameters: { pause: !x 1s }", "g.yaml:23:22: the tag “!x” does not fit"),
        ("parameters: { pause: 1s }, x", "g.yaml:23:26: "),
        ("parameters: { pause: }", "g.yaml:23:15: parameter “pause” has no default"),
    ])
    func `a mistake in late parameters is told, and not what follows from it`(
        last: String,
        wanted: String
    ) throws {
        let operations = (0..<21).map { "  o\($0): { run: x, timeout: '${pause}' }\n" }.joined()
        let found = try problems("operations:\n\(operations)\(last)\n")
        #expect(found.count == 1)
        #expect(found.first?.hasPrefix(wanted) == true, "\(found)")
    }

    @Test func `operations of a list, an alias and a merge have them, too`() throws {
        let list = try read(
            """
            parameters: { day: m }
            operations:
              - &a { name: "x-${day}", run: "echo ${day}" }
              - { <<: *a, name: "y-${day}" }
            """
        )
        #expect(list.operations.map(\.name) == ["x-m", "y-m"])
        #expect(try command(list, 1).arguments.last == "echo m")
        let map = try read(
            """
            parameters: { day: m }
            defaults: { environment: &env { OUT: "${day}" } }
            operations: { a: { run: x, environment: *env }, b: { run: x, environment: *env } }
            """
        )
        #expect(try command(map, 1).environment["OUT"] == "m")
    }

    @Test func `keys that become the same are refused`() throws {
        let text = """
            parameters: { k: x }
            queues: { "${k}": {}, x: {} }
            operations:
              a: { run: x, environment: { x: 1, "${k}": 2 } }
              b: { operation: K, input: { "${k}": 1, x: 2 } }
              x: { run: x }
              ${k}: { run: x }
            """
        let twice = "key “x” appears twice in this map, first in line"
        #expect(
            try problems(text) == [
                "g.yaml:2:23: \(twice) 2", "g.yaml:4:37: \(twice) 4", "g.yaml:5:42: \(twice) 5",
                "g.yaml:7:3: operation “x” is defined twice, first in line 6",
            ]
        )
    }

    @Test func `a default may use the parameters before it`() throws {
        let text = """
            parameters: { day: mon, out: "out/${day}", cost: { default: "$${day}" } }
            operations: { a: { command: [cp, "${out}", "${cost}"] } }
            """
        #expect(try command(read(text, ["day=x"])).arguments == ["cp", "out/x", "${day}"])
        // What comes from outside is taken as it is.
        #expect(try command(read(text, ["out=${day}"])).arguments[1] == "${day}")
    }

    @Test(arguments: [
        "1.10", "12345678901234567890", "12345e7", "01234", "0xFF", "0o755", "+5", "-0", "1e3",
    ])
    func `a number stays as it is written`(text: String) throws {
        let file = """
            parameters: { x: \(text), y: { type: number } }
            operations: { a: { command: ["${x}", "${y}"] } }
            """
        #expect(try command(read(file, ["y=\(text)"])).arguments == [text, text])
        #expect(try command(read(file, ["y=1"])).environment["x"] == text)
    }

    @Test(arguments: [
        ("number", "0.5, 1.0", "1"), ("number", "1000", "1e3"), ("duration", "1m", "60s"),
        ("size", "1GiB", "1024MiB"), ("integer", "7", "07"), ("boolean", "true", "TRUE"),
    ])
    func `one value may be written in several ways`(
        type: String,
        allowed: String,
        given: String
    ) throws {
        let text = """
            parameters: { x: { type: \(type), values: [\(allowed)] } }
            operations: { a: { run: x } }
            """
        #expect(try problems(text, ["x=\(given)"]).isEmpty)
    }

    // MARK: - Processes

    @Test func `processes get the values as variables, after all others`() throws {
        let graph = try read(
            """
            parameters: { day: m, width: 200, files: [a, b], level: info, mode: x }
            defaults: { environment: { level: debug } }
            operations:
              a: { run: ./step }
              b: { run: ./step, environment: { mode: y } }
              c: { wait: 1s }
            """
        )
        #expect(
            try command(graph).environment
                == ["day": "m", "width": "200", "level": "debug", "mode": "x"]
        )
        #expect(try command(graph, 1).environment["mode"] == "y")
    }

    @Test func `paths are relative to the place that gives them`() throws {
        let text = """
            parameters: { out: { type: path, default: out/x } }
            operations: { a: { command: [cp, "${out}"] } }
            """
        #expect(try command(read(text)).arguments == ["cp", "out/x"])
        #expect(try command(read(text, ["out=./y"])).arguments == ["cp", "/here/y"])
        #expect(try command(read(text, ["out=/y"])).arguments == ["cp", "/y"])
    }

    // MARK: - Values from outside

    @Test func `the last value of several counts, and a list has commas`() throws {
        let graph = try read(
            """
            parameters: { files: { type: list }, width: 1 }
            operations: { a: { command: ["${files}", "${width}"] } }
            """,
            ["width=2", "files=a,b", "width=3"]
        )
        #expect(try command(graph).arguments == ["a", "b", "3"])
    }

    // MARK: - Refusals

    private static let needed = "has no default and needs a value (on the command line: --set "
    private static let named =
        "cannot be the name of a parameter: a name has up to 64 letters, digits and _, and does "
        + "not begin with a digit"

    private static let refused: [(parameters: String, settings: [String], wanted: String)] = [
        ("{ day: }", [], "g.yaml:1:15: parameter “day” \(needed)day=VALUE)"),
        (
            "{ day: m }", ["dya=x"],
            "--set dya: the graph has no parameter “dya”; did you mean “day”?"
        ),
        ("{}", ["day=x"], "--set day: the graph has no parameters"),
        ("", ["day=x"], "--set day: the graph has no parameters"),
        ("{ n: 1 }", ["n=x"], "--set n: “n” must be an integer such as 42, not “x”"),
        ("{ n: 0.5 }", ["n=1e999"], "--set n: “n” must be a number such as 0.5, not “1e999”"),
        ("{ n: 0.5 }", ["n=.inf"], "--set n: “n” must be a number such as 0.5, not “.inf”"),
        ("{ b: true }", ["b=yes"], "--set b: “b” must be true or false, not “yes”"),
        (
            "{ d: { type: duration } }", ["d=-1s"],
            "--set d: “d” must be a duration such as 500ms, 2s, 5m, 1h30m, 1d, or a number of "
                + "seconds, not “-1s”"
        ),
        (
            "{ s: { type: size } }", ["s=0"],
            "--set s: “s” must be a size such as 64KiB, 512MiB, 2GiB, or a number of bytes from 1, "
                + "not “0”"
        ),
        ("{ p: { type: path } }", ["p="], "--set p: “p” must be a path, not “”"),
        (
            "{ c: { values: [a, b] } }", ["c=d"],
            "--set c: “c” must be one of “a”, “b”, not “d”"
        ),
        (
            "{ c: { values: [a, b], default: d } }", [],
            "g.yaml:1:45: “c” must be one of “a”, “b”, not “d”"
        ),
        (
            "{ l: { type: list, values: [a] } }", ["l=a,b"],
            "--set l: each of “l” must be one of “a”, not “b”"
        ),
        ("{ c: { typ: list } }", [], "g.yaml:1:20: unknown key “typ”; did you mean “type”?"),
        (
            "{ c: { type: text, default: 5, values: [30s] } }", [],
            "g.yaml:1:26: “type” must be string, integer, number, boolean, duration, size, path or "
                + "list, not “text”"
        ),
        ("{ a-b: 1 }", [], "g.yaml:1:15: “a-b” \(named)"),
        (
            "{ \(String(repeating: "a", count: 65)): 1 }", [],
            "g.yaml:1:15: “\(String(repeating: "a", count: 60))…” \(named)"
        ),
        (
            "{ PATH: x }", [],
            "g.yaml:1:15: “PATH” cannot be the name of a parameter: processes need the variable of "
                + "this name"
        ),
        (
            "{ OPERON_X: x }", [],
            "g.yaml:1:15: “OPERON_X” cannot be the name of a parameter: variables named OPERON_… "
                + "are the worker's own"
        ),
        (
            "{ day: , out: 'out/${day}' }", [],
            "g.yaml:1:15: parameter “day” \(needed)day=VALUE)"
        ),
        (
            "{ width: { type: integer, default: wide } }", ["width=3"],
            "g.yaml:1:48: “width” must be an integer such as 42, not “wide”"
        ),
        (
            "{ n: { type: number } }", ["n=."],
            "--set n: “n” must be a number such as 0.5, not “.”"
        ),
        (
            "[day]", [],
            "g.yaml:1:13: “parameters” must be a map from names to parameters, not a list"
        ),
        (
            "{ out: 'x/${day}', day: m }", [],
            "g.yaml:1:20: there is no parameter “day”; a literal “${” is written “$${”"
        ),
    ]

    @Test(arguments: refused.indices)
    func `a wrong parameter is refused, and nothing after it`(index: Int) throws {
        let (parameters, settings, wanted) = Self.refused[index]
        let text = "parameters: \(parameters)\noperations: { a: { timeout: '${zzz}', run: x } }\n"
        let found = try problems(text, settings)
        #expect(found.first == wanted)
        // Without parameters, “${zzz}” is a text, and wrong there.
        #expect(found.count == 1)
    }

    @Test func `an unknown reference is told with its place`() throws {
        let found = try problems(
            """
            parameters: { day: m }
            operations:
              a: { run: "echo ${dya}" }
              b: { run: "echo ${day" }
              c: { run: "echo ${HOME:-x}" }
              ${dey}: { wait: 1 }
            """
        )
        let literal = "a literal “${” is written “$${”"
        #expect(
            found == [
                "g.yaml:3:13: there is no parameter “dya”; \(literal); did you mean “day”?",
                "g.yaml:4:13: “${” in “echo ${day” has no “}”; \(literal)",
                "g.yaml:5:13: there is no parameter “HOME:-x”; \(literal)",
                "g.yaml:6:3: there is no parameter “dey”; \(literal); did you mean “day”?",
            ]
        )
    }

    @Test func `a value of the wrong type is told where it is used`() throws {
        let found = try problems(
            "parameters: { n: many }\nqueues:\n  q:\n    maxConcurrentOperationCount: ${n}\n"
                + "operations: { a: { wait: 1 } }\n"
        )
        #expect(found.count == 1)
        #expect(
            found.first?.hasPrefix("g.yaml:4:34: “maxConcurrentOperationCount” must be") == true
        )
    }

    @Test func `values do not make a small file large`() throws {
        var limits = Limits()
        limits.graphFileBytes = 2_000
        let value = String(repeating: "x", count: 500)
        let text =
            "parameters: { v: \(value) }\noperations:\n"
            + (0..<4).map { "  o\($0): { command: [a, '${v}'] }\n" }.joined()
        let found = Fixture.problems(text, "g.yaml", limits)
        #expect(found.map(\.limit) == [.graphFileBytes])
        #expect(found.first?.line == 4)
    }

    @Test func `empty elements are not free`() throws {
        var limits = Limits()
        limits.graphFileBytes = 200_000
        let list = (0..<1_000).map { _ in "''" }.joined(separator: ",")
        let uses = (0..<10).map { _ in "'${l}'" }.joined(separator: ",")
        let text = "parameters: { l: [\(list)] }\noperations: { a: { command: [x,\(uses)] } }\n"
        #expect(Fixture.problems(text, "g.yaml", limits).map(\.limit) == [.graphFileBytes])
    }

    @Test func `the variables of all processes count`() throws {
        var limits = Limits()
        limits.graphFileBytes = 3_000
        let text =
            "parameters: { v: \(String(repeating: "x", count: 500)) }\noperations:\n"
            + (0..<6).map { "  o\($0): { run: x }\n" }.joined()
        let found = Fixture.problems(text, "g.yaml", limits)
        #expect(found.map(\.limit) == [.graphFileBytes])
        #expect(found.first?.line == 8)
    }

    @Test func `a text of a client may not grow by much`() throws {
        let value = String(repeating: "x", count: 50_000)
        let uses = (0..<100).map { _ in "'${v}x'" }.joined(separator: ",")
        let text = "parameters: { v: \(value) }\noperations: { a: { command: [\(uses)] } }\n"
        let codec = GraphFileCodec()
        let error = #expect(throws: GraphFileError.self) {
            try codec.decode(Array(text.utf8), contentType: "application/yaml", name: "")
        }
        #expect(error?.problems.map(\.limit) == [.graphFileBytes])
    }

    @Test func `aliases do not nest deeper than the text may`() throws {
        var text = "parameters: { a: x }\noperations:\n  a:\n    operation: K\n    input:\n"
        var last = "'${a}'"
        for level in 0..<40 {
            let nested =
                String(repeating: "[", count: 30) + last + String(repeating: "]", count: 30)
            text += "      l\(level): &l\(level) \(nested)\n"
            last = "*l\(level)"
        }
        let found = try problems(text)
        #expect(found.count == 1)
        #expect(found.first?.contains("deep") == true, "\(found)")
    }

    @Test func `there may be so many parameters, and no more bytes in variables`() throws {
        func text(_ count: Int, _ bytes: Int) -> String {
            let value = String(repeating: "x", count: bytes)
            return "parameters:\n" + (0..<count).map { "  p\($0): v\(value)\n" }.joined()
                + "operations: { a: { wait: 1 } }\n"
        }
        #expect(try problems(text(1_000, 0)).isEmpty)
        #expect(
            try problems(text(1_001, 0))
                == ["g.yaml:1:1: 1001 parameters are more than a graph may have, 1000"]
        )
        #expect(
            try problems(text(2, 40_000)) == [
                "g.yaml:1:1: the names and values of all parameters have 80006 bytes; 65536 are "
                    + "the most, lists not counted"
            ]
        )
    }

    @Test func `a recorded workflow has no parameters`() throws {
        let given = try #require(ParameterAssignment("a=b", source: "--set", directory: nil))
        let error = #expect(throws: GraphFileError.self) {
            try Fixture.read(
                #"{"workflow": {}}"#,
                "w.json",
                GraphFileOptions(replayScale: 1, parameters: [given])
            )
        }
        #expect(error?.description == "--set a: the graph has no parameters")
    }
}
