import Foundation
import OperonModel
import OperonPorts
import Testing

@testable import OperonGraphFile

/// Values that become a part of a script: which are refused, and which a person is warned of.
@Suite struct ShellValueTests {
    static let hostile = [
        "", " ", "a b", "\t", "a\nb", "x; touch y", "$(touch y)", "`touch y`", "${HOME}", "$HOME",
        "a\"b", "a'b", "a\\b", "--", "-rf", "-", "a&b", "a|b", "a<b", "a>b", "*", "a?b", "a[b", "]",
        "~", "~root", "#x", "a#b", "!x", "{a,b}", "}", "(", ")", "^", "\u{7}", "\u{1B}[2J",
        "\u{7F}",
        "é", "e\u{301}", "\u{A0}", "\u{2028}", "漢字", "🙂", ";\u{301}",
    ]
    static let harmless = [
        "main", "feature/a-b_c.1", "2026-11-24T03:00:00+01:00", "50%", "a,b", "user@host:/x", "a=b",
        "0", "_", ".", "..", "@a", "%a", "+x", "=a", "a-", "A-Z",
    ]

    private func read(
        _ text: String,
        _ settings: KeyValuePairs<String, String> = [:],
        isAddition: Bool = false
    ) throws(GraphFileError) -> GraphFile {
        var options = GraphFileOptions(
            directory: "/graphs",
            parameters: settings.map {
                ParameterAssignment($0, $1, source: "--set", directory: nil)
            }
        )
        options.isAddition = isAddition
        return try Fixture.read(text, "g.yaml", options)
    }

    private func warnings(
        _ text: String,
        _ settings: KeyValuePairs<String, String> = [:]
    ) throws -> [String] {
        try read(text, settings).warnings.map(\.description)
    }

    private func script(_ graph: GraphDescription, _ index: Int = 0) throws -> [String] {
        guard case .command(let command) = graph.operations[index].work else {
            throw CocoaError(.coderValueNotFound)
        }
        return command.arguments
    }

    /// The graph of a trigger that sets `branch` to the data of the event.
    private func fired(
        _ text: String,
        _ data: String,
        set: String = #"{"branch": "${event.data}"}"#
    ) throws -> GraphDescription {
        let graph = TriggerGraph(file: "g.yaml", contentType: "application/yaml", text: text)
        let quoted = String(decoding: JSONString.quoted(data), as: UTF8.self)
        let event = """
            {"trigger": "my hook", "identity": "key:a b", "date": "2026-11-24", "data": \(quoted)}
            """
        return try GraphFileCodec().graph(graph, parameters: set, event: event)
    }

    private func refusal(
        _ text: String,
        _ data: String = "$(x)",
        set: String = #"{"branch": "${event.data}"}"#
    ) -> String {
        do {
            _ = try fired(text, data, set: set)
            return "accepted"
        } catch let error as UnsafeEventError {
            return error.description
        } catch {
            return "another error: \(error)"
        }
    }

    private static let spliced =
        "parameters: { branch: }\noperations: { a: { run: 'x ${branch}' } }"

    // MARK: - What fires a trigger

    @Test(arguments: hostile)
    func `a hostile value from an event is refused in a script`(value: String) throws {
        #expect(ShellValue.danger(in: value) != nil)
        let refusal = refusal(Self.spliced, value)
        #expect(refusal.hasPrefix("g.yaml:2:25: ${branch} in “run” of operation “a”"), "\(refusal)")
        #expect(refusal.contains("which comes from what fired the trigger"), "\(refusal)")
        #expect(refusal.hasSuffix("write \"$branch\", a variable that the process has"))
        #expect(!refusal.utf8.contains { $0 < 32 || $0 == 127 }, "\(refusal)")
    }

    @Test(arguments: hostile)
    func `the variable has a hostile value as it is`(value: String) throws {
        let text = "parameters: { branch: }\noperations: { a: { run: 'x \"$branch\"' } }"
        let graph = try fired(text, value)
        #expect(try script(graph) == ["/bin/sh", "-c", "x \"$branch\""])
        guard case .command(let command) = graph.operations[0].work else { return }
        #expect(command.environment["branch"] == value)
    }

    @Test func `NUL is no value at all`() {
        #expect(refusal(Self.spliced, "a\0b").hasPrefix("another error: set: “branch” must be"))
    }

    @Test(arguments: harmless)
    func `a harmless value from an event becomes a part of a script`(value: String) throws {
        #expect(try script(fired(Self.spliced, value)).last == "x " + value)
    }

    /// What is allowed is nothing to a shell, wherever it stands in a word.
    @Test func `a shell takes each harmless character for itself`() throws {
        let characters = (1...127).map { String(UnicodeScalar(UInt8($0))) }
        let words = characters.flatMap { ["a\($0)b", "a" + $0, $0 + "b", $0 + $0] }
            .filter { ShellValue.danger(in: $0) == nil }
        #expect(words.count == 4 * (26 + 26 + 10 + 9) + 2)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", words.map { "printf '%s\\n' \($0)\n" }.joined()]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let printed = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        #expect(String(decoding: printed, as: UTF8.self) == words.map { $0 + "\n" }.joined())
    }

    @Test(arguments: [
        // Through a default.
        (
            "{ branch: , out: 'out/${branch}' }", "run: 'x ${out}'",
            "${out} in “run” of operation “a”: the value “out/$(x)”, which"
        ),
        // As the whole script.
        (
            "{ branch: }", "run: '${branch}'",
            "${branch} in “run” of operation “a”: the value “$(x)”"
        ),
        // Among values that the file seems to bound.
        (
            "{ branch: , b: { values: [a, '${branch}'], default: '${branch}' } }", "run: 'x ${b}'",
            "${b} in “run” of operation “a”: the value “$(x)”"
        ),
        // Under a key that a parameter gives.
        ("{ branch: , k: run }", "'${k}': 'x ${branch}'", "${branch} in “run” of operation “a”"),
        // In an element.
        (
            "{ branch: }", "run: 'x ${item} ', forEach: ['${branch}']",
            "${item} in “run” of operation"
        ),
        (
            "{ branch: }", "run: 'x ${j}', matrix: { i: [1], j: ['${branch}'] }",
            "${j} in “run” of operation “a[i=1,j=$(x)]”"
        ),
        // In a script of “command”.
        ("{ branch: }", "command: [sh, -c, 'x ${branch}']", "${branch} in “command” of operation"),
        (
            "{ branch: }", "command: [sudo, /bin/bash, -euo, pipefail, -c, --, '${branch}']",
            "${branch} in “command” of operation"
        ),
    ])
    func `a value is followed to the script`(
        parameters: String,
        fields: String,
        message: String
    ) {
        let text = "parameters: \(parameters)\noperations: { a: { \(fields) } }"
        let refusal = refusal(text)
        #expect(refusal.contains(message), "\(refusal)")
    }

    @Test(arguments: [
        "run: x, environment: { B: '${branch}' }, directory: '${branch}'",
        "command: [x, '${branch}', '-c', '${branch}']",
        "command: [sh, -c, 'x \"$@\"', sh, '${branch}']",
        "command: [bash, script.sh, -c, '${branch}']",
        "operation: K, input: '${branch}'",
        "run: 'x $${branch}'",
        "run: x \"$item\", forEach: ['${branch}']",
    ])
    func `elsewhere a value is no code`(fields: String) {
        let text = "parameters: { branch: }\noperations: { a: { \(fields) } }"
        #expect(refusal(text) == "accepted")
    }

    @Test func `what the coordinator and the file say of an event is no stranger's`() {
        let text = """
            parameters: { name: , day: , n: { type: integer }, one: { values: [a b, c d] } }
            operations: { a: { run: "x ${name} ${day} ${n} ${one}" } }
            """
        let own = #"{"name": "${event.trigger}", "day": "${event.date}", "n": "-5", "one": "a b"}"#
        #expect(refusal(text, set: own) == "accepted")
        let bounded = own.replacing("\"a b\"", with: "\"${event.data}\"")
        #expect(refusal(text, "c d", set: bounded) == "accepted")
        let identity = own.replacing("event.trigger", with: "event.identity")
        #expect(refusal(text, set: identity).contains("the value “key:a b”"))
    }

    @Test func `a list is passed as arguments instead`() {
        let text = """
            parameters: { branch: { type: list } }
            operations: { a: { run: "x ${branch}" } }
            """
        let set = #"{"branch": ["ok", "${event.data}"]}"#
        let refusal = refusal(text, set: set)
        let arguments = #"command: [/bin/sh, -c, 'SCRIPT "$@"', sh, "${branch}"]"#
        #expect(refusal.hasSuffix("pass the list as arguments, " + arguments), "\(refusal)")
        #expect(self.refusal(text, "fine", set: set) == "accepted")
        #expect(self.refusal(text, set: #"{"branch": []}"#) == "accepted", "the trigger's own")
    }

    @Test(arguments: [
        "operations: { a: { run: 'x ${branch}', environment: { branch: main } } }",
        "defaults: { environment: { branch: main } }\noperations: { a: { run: 'x ${branch}' } }",
    ])
    func `a variable that the file sets is not named`(rest: String) {
        let refusal = refusal("parameters: { branch: }\n" + rest)
        #expect(
            refusal.hasSuffix(
                "the variable “branch” has another value, so add one, environment: { VALUE: "
                    + "\"${branch}\" }, and write \"$VALUE\""
            )
        )
    }

    // MARK: - Outputs, lines, files and additions

    private func elements(_ text: String, _ output: String) throws -> [OperationDescription] {
        let graph = try read(text).graph
        guard case .registered(Work.forEachKind, let template) = graph.operations[1].work else {
            throw CocoaError(.coderValueNotFound)
        }
        var elements = try ElementExpansion().elements(of: template) { _ in
            Payload(bytes: Array(output.utf8))
        }
        return try elements.next(atMost: 10)
    }

    private static let repeated = """
        operations:
          list: { run: x }
          r: { run: "cp ${item} y", forEach: { output: list } }
        """

    @Test(arguments: hostile)
    func `a hostile element of an output is refused in a script`(value: String) throws {
        let quoted = String(decoding: JSONString.quoted(value), as: UTF8.self)
        let error = #expect(throws: OutputElementError.self) {
            try elements(Self.repeated, "[\"fine\", -0.5, \(quoted)]")
        }
        let message = error?.message ?? ""
        // Names of operations have neither.
        guard !message.contains("control character"), value != "*" else { return }
        #expect(message.hasPrefix("element 2 (counted from 0): ${item} in “run” of"), "\(message)")
        #expect(message.contains("from the output of “list”"), "\(message)")
        #expect(message.hasSuffix("write \"$item\", a variable that the process has"), "\(message)")
        let text = Self.repeated.replacing("${item}", with: "\\\"$item\\\"")
        #expect(try elements(text, "[\(quoted)]").count == 1)
    }

    @Test func `a harmless element of an output becomes a part of a script`() throws {
        let made = try elements(Self.repeated, #"["a.png", 7, -0.5, true]"#)
        #expect(made.map(\.name) == ["r[a.png]", "r[7]", "r[-0.5]", "r[true]"])
        guard case .command(let command) = made[0].work else { return }
        #expect(command.arguments.last == "cp a.png y")
    }

    @Test func `a hostile value that an operation adds is refused in a script`() throws {
        #expect(try read(Self.spliced, ["branch": "a b"]).graph.operations.count == 1)
        let error = #expect(throws: GraphFileError.self) {
            try read(Self.spliced, ["branch": "a b"], isAddition: true)
        }
        #expect(error?.problems.map(\.code) == [.unsafeValue])
        #expect(error?.description.contains("the operation that runs “operon add”") == true)
        #expect(try read(Self.spliced, ["branch": "a"], isAddition: true).graph.name == "g")
    }

    @Test(arguments: ["{ lines: list }", "{ files: '*.txt' }"])
    func `lines and names of files are refused in a script if they are hostile`(
        source: String
    ) throws {
        let text = "operations: { r: { run: 'cp ${item} y', forEach: \(source) } }"
        func read(_ name: String) throws -> [String] {
            try Fixture.withFile("g.yaml", Array(text.utf8)) { path in
                let folder = URL(fileURLWithPath: path).deletingLastPathComponent()
                try Data((name + "\n").utf8).write(to: folder.appendingPathComponent("list"))
                try Data().write(to: folder.appendingPathComponent(name))
                return try GraphFile.read(path: path).graph.operations.map(\.name)
            }
        }
        #expect(try read("a.txt") == ["r[a.txt]", "r"])
        let error = #expect(throws: GraphFileError.self) { try read("a b.txt") }
        #expect(error?.description.contains("in “run” of operation “r[a b.txt]”: the") == true)
    }

    // MARK: - Warnings

    @Test func `each value in a script that nothing bounds is told once for an operation`() throws {
        let found = try warnings(
            """
            parameters:
              day: monday
              n: 7
              wait: { type: duration, default: 1s }
              size: { default: small, values: [small, large] }
              files: [a, b]
            operations:
              a: { run: "x ${day} ${n} ${day} ${wait} ${size}" }
              b: { run: x "$day" }
              c: { run: "x ${files} ${item} $item", forEach: [1, 2] }
              d: { run: "x ${item}", forEach: "${files}" }
              e: { command: [bash, -c, "x ${day}"] }
            """
        )
        let more = ", or list the allowed “values” of the parameter"
        func warning(_ place: String, _ name: String, _ field: String, _ operation: String)
            -> String
        {
            "g.yaml:\(place): ${\(name)} in “\(field)” of operation “\(operation)” becomes a"
                + " part of the script, and the shell interprets it; "
        }
        #expect(
            found == [
                warning("8:13", "day", "run", "a")
                    + "write \"$day\", a variable that the process has" + more,
                warning("10:13", "files", "run", "c")
                    + #"pass the list as arguments, command: [/bin/sh, -c, 'SCRIPT "$@"', sh, "#
                    + "\"${files}\"]",
                warning("11:13", "item", "run", "d")
                    + "write \"$item\", a variable that the process has" + more,
                warning("12:28", "day", "command", "e")
                    + "write \"$day\", a variable that the process has" + more,
            ]
        )
    }

    @Test func `elements from outside are told although some would be taken`() throws {
        let found = try warnings(Self.repeated)
        #expect(found.count == 1)
        #expect(found.first?.hasSuffix("values with special characters are refused") == true)
        #expect(try warnings(Self.repeated.replacing("${item}", with: "$item")) == [])
    }

    /// Whether a script in it has a reference. What is no graph file has none.
    private func splices(_ node: Node) -> Bool {
        guard let entries = node.entries else {
            return node.elements?.contains(where: splices) ?? false
        }
        return ShellScript.all(in: entries).contains { _, script in
            (GraphParameters.pieces(of: script.text ?? "") ?? []).contains {
                if case .reference(let name) = $0 { name.allSatisfy(\.isLetter) } else { false }
            }
        } || entries.contains { splices($0.value) }
    }

    @Test func `no document and no example shows a value in a script`() throws {
        let root = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        var texts: [(path: String, text: Substring)] = []
        for folder in ["docs", "Examples", "Sources/Operon/Operon.docc", "deploy", "README.md"] {
            let start = root.appendingPathComponent(folder)
            let below = FileManager.default.enumerator(at: start, includingPropertiesForKeys: nil)
            for case let url as URL in [start as Any] + (below?.allObjects ?? []) {
                switch url.pathExtension {
                case "yaml": texts.append((url.path, Substring(try read(url))))
                case "md":
                    let blocks = try read(url).split(separator: "```yaml\n").dropFirst()
                    texts += blocks.map {
                        (
                            url.path,
                            $0.prefix(upTo: $0.firstRange(of: "```")?.lowerBound ?? $0.endIndex)
                        )
                    }
                default: break
                }
            }
        }
        var count = 0
        for (path, text) in texts {
            guard let read = try? YAMLReader.value(Array(text.utf8), limits: Limits()) else {
                continue
            }
            count += 1
            #expect(!splices(read.0), "\(path): \(text)")
        }
        #expect(count > 40, "\(count) of \(texts.count)")
    }

    private func read(_ url: URL) throws -> String {
        String(decoding: try Data(contentsOf: url), as: UTF8.self)
    }

    @Test func `there are at most twenty warnings`() throws {
        let operations = (0..<30).map { "  o\($0): { run: 'x ${day}' }\n" }.joined()
        #expect(try warnings("parameters: { day: m }\noperations:\n" + operations).count == 20)
    }
}
