import OperonGraphFile
import OperonModel
import Testing

/// Files made to harm: refused at once, whatever they would expand to.
@Suite(.timeLimit(.minutes(5))) struct HostileInputTests {
    @Test func `nine to the ninth laughs are refused`() {
        var text = "defaults: {timeout: 1s}\noperations:\n  a:\n    operation: X\n    input:\n"
        text += "      l0: &l0 [ha, ha, ha, ha, ha, ha, ha, ha, ha]\n"
        for level in 1...8 {
            let aliases = [String](repeating: "*l\(level - 1)", count: 9).joined(separator: ", ")
            text += "      l\(level): &l\(level) [\(aliases)]\n"
        }
        let problems = Fixture.problems(text, "g.yaml")
        #expect(problems.map(\.limit) == [.yamlAliasExpansion])
        #expect(problems.first?.thing == "*l5")
    }

    @Test func `an alias to a tree is refused as a key without a walk over the tree`() {
        var text = "operations:\n  a:\n    operation: X\n    input:\n      l0: &l0 [ha, ha]\n"
        for level in 1...12 {
            text += "      l\(level): &l\(level) [*l\(level - 1), *l\(level - 1)]\n"
        }
        text += "      ? *l12\n      : 1\n"
        let problems = Fixture.problems(text, "g.yaml")
        #expect(problems.map(\.code) == [.wrongType])
        #expect(problems.first?.line == 18)
    }

    @Test func `merges of merges do not multiply`() {
        var text = "operations:\n  m0: &m0 {run: ls}\n"
        for level in 1...60 {
            let aliases = [String](repeating: "*m\(level - 1)", count: 9).joined(separator: ", ")
            text += "  m\(level): &m\(level) {<<: [\(aliases)]}\n"
        }
        #expect(Fixture.problems(text, "g.yaml").map(\.limit) == [.yamlAliasExpansion])
    }

    @Test(arguments: ["g.json", "g.jsonl", "g.yaml", "g"])
    func `a million nested lists are refused`(file: String) {
        let text = #"{"operations": "# + String(repeating: "[", count: 1_000_000)
        #expect(Fixture.problems(text, file).isEmpty == false)
    }

    @Test(arguments: ["g.json", "g.jsonl", "g.yaml"])
    func `a million nested maps are refused`(file: String) {
        let text = String(repeating: #"{"a":"#, count: 1_000_000)
        #expect(Fixture.problems(text, file).isEmpty == false)
    }

    @Test func `a million directives are refused`() {
        let text = (0..<1_000_000).map { "%TAG !\($0)! tag:\n" }.joined()
        let problems = Fixture.problems(text + "---\noperations: {}\n", "g.yaml")
        #expect(problems.map(\.description) == ["g.yaml:101:1: more than 100 lines begin with “%”"])
        let few = "%YAML 1.2\n---\noperations: {a: {run: \"date\n\n% \"}}\n"
        #expect(Fixture.problems(few, "g.yaml") == [])
    }

    @Test func `a million block levels are refused`() {
        let text = "operations:\n  " + String(repeating: "- ", count: 1_000_000) + "a"
        #expect(Fixture.problems(text, "g.yaml").map(\.limit) == [.yamlDepth])
    }

    @Test(arguments: ["g.json", "g.yaml"])
    func `a map with the same key ten thousand times is told twenty times`(file: String) {
        let keys = [String](repeating: #""a": {"run": "ls"}"#, count: 10_000)
        let text = #"{"operations": {"# + keys.joined(separator: ",\n") + "}}"
        #expect(throws: GraphFileError.self) { try Fixture.read(text, file) }
        do {
            _ = try Fixture.read(text, file)
        } catch {
            #expect(error.problems.count == GraphFileError.problemsMax)
            #expect(error.isTruncated)
            #expect(error.problems.allSatisfy { $0.code == .duplicateOperation })
            #expect(error.description.hasSuffix("these are the first 20"))
        }
    }

    @Test func `a list of a hundred thousand equal dependencies is one dependency`() throws {
        let names = (0..<50_000).map { "\"n\($0)\"" }
        let text =
            #"{"name": "a", "run": "ls", "dependencies": ["#
            + (names + names).joined(separator: ",") + "]}"
        let graph = try Fixture.read(text, "g.jsonl").graph
        #expect(graph.operations.first?.dependencies.count == 50_000)
    }

    @Test(arguments: ["g.yaml", "g.json"])
    func `an operation of more values than any graph has use for is refused`(file: String) {
        var limits = Limits()
        limits.operationsPerGraph = 4
        limits.payloadBytes = 6
        // The map, its operation, the list and seven elements are ten values.
        let text = { (count: Int) in
            #"{"operations": {"a": {"operation": "X", "input": ["#
                + [String](repeating: "1", count: count).joined(separator: ",") + "]}}}"
        }
        let widest = Fixture.problems(text(7), file, limits)
        #expect(widest.map(\.message).allSatisfy { $0.hasPrefix("this input: ") })
        #expect(widest.count == 1)
        let problems = Fixture.problems(text(8), file, limits)
        #expect(
            problems.map(\.description) == [
                "\(file):1:65: more than 10 values in one operation"
                    + " (operationsPerGraph + payloadBytes)"
            ]
        )
    }

    @Test(
        arguments: [
            [0xFF, 0xFE, 0x6F, 0x00], [0xFE, 0xFF, 0x00, 0x6F], [0x00], [0xC3, 0x28],
            [0xEF, 0xBB, 0xBF], [0x7B, 0xFF, 0x7D], [0x7B], [0x5B], [0x22],
        ] as [[UInt8]],
        ["g.yaml", "g.json", "g.jsonl", "g"]
    )
    func `bytes that are no text are refused`(bytes: [UInt8], file: String) {
        #expect(throws: GraphFileError.self) { try GraphFile.read(bytes: bytes, file: file) }
    }

    @Test(
        arguments: [
            ([0x61, 0xFF], "0xFF", "invalid leading UTF-8 octet"),
            ([0x61, 0x01], "0x1", "control characters are not allowed"),
            ([0xC3, 0x28], "0x28", "invalid trailing UTF-8 octet"),
        ] as [([UInt8], String, String)]
    )
    func `a byte that YAML does not allow is shown where it is`(
        bytes: [UInt8],
        thing: String,
        why: String
    ) {
        let text = Array("operations:\n  é: {run: ".utf8) + bytes + Array("}\n".utf8)
        let error = #expect(throws: GraphFileError.self) {
            try GraphFile.read(bytes: text, file: "g.yaml")
        }
        #expect(error?.problems.first?.thing == thing)
        #expect(error?.description == "g.yaml:2:13: not YAML in UTF-8: \(why)")
    }

    @Test(
        arguments: [
            (
                "operations:\n\té: { run: x }\n", "2:1",
                "a tab stands where only spaces may: indent with spaces"
            ),
            (
                "operations:\n  é: { run: @x }\n", "2:13",
                "a text that begins with “@” must be in quotes"
            ),
            (
                "operations:\n  é: { run: x, files: *.png }\n", "2:24",
                "a text that begins with “*” must be in quotes"
            ),
            (
                "operations:\n  é: { run: & }\n", "2:14",
                "a text that begins with “&” must be in quotes"
            ),
            (
                "operations:\n  é:\n    run: echo \"status: ok\": done\n", "3:22",
                "“:” stands where no key can be: a text with “: ” must be in quotes, as in "
                    + "run: 'echo \"a: b\"', or the line is indented too far"
            ),
            (
                "operations:\n  é: { run: echo ${HOME} }\n", "2:19",
                "“,” or “}” is missing: within { … }, a text with braces, brackets, “,” or “: ” "
                    + "must be in quotes, as in \"${item}\""
            ),
            (
                "operations:\n  é: { run: x, dependencies: [é[*]] }\n", "2:34",
                "a name with brackets must be in quotes within a list, as in [\"fetch[*]\"]"
            ),
        ]
    )
    func `common mistakes in YAML are said in words`(text: String, place: String, why: String) {
        let error = #expect(throws: GraphFileError.self) {
            try GraphFile.read(bytes: Array(text.utf8), file: "g.yaml")
        }
        #expect(error?.description == "g.yaml:\(place): not YAML: \(why)")
    }

    @Test func `limits without a bound do not overflow`() {
        var limits = Limits()
        limits.operationsPerGraph = .max
        limits.payloadBytes = .max
        limits.yamlDepth = .max
        limits.yamlAliasExpansion = .max
        limits.graphFileBytes = .max
        for file in ["g.yaml", "g.json"] {
            #expect(Fixture.problems(#"{"operations": {"a": {"wait": 1}}}"#, file, limits) == [])
            let text =
                #"{"operations": {"a": {"operation": "X", "input": "#
                + String(repeating: "[", count: 100_000)
            #expect(Fixture.problems(text, file, limits).isEmpty == false)
        }
    }

    @Test func `a path that cannot be read is refused with the reason`() {
        let error = #expect(throws: GraphFileError.self) {
            try GraphFile.read(path: "/nonexistent/graph.yaml")
        }
        let message = "/nonexistent/graph.yaml: the file cannot be read: No such file or directory"
        #expect(error?.description == message)
        let directory = #expect(throws: GraphFileError.self) { try GraphFile.read(path: "/") }
        #expect(directory?.description == "/: the file cannot be read: it is a directory")
        #expect(throws: GraphFileError.self) { try GraphFile.read(path: "a\0b") }
    }
}
