import Foundation
import OperonFaultKit
import Testing

/// The documents show code, and the code is here: what stands in a document has been compiled.
@Suite(.timeLimit(.minutes(2))) struct SnippetTests {
    private static let root = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// Those whose Swift is ours to keep.
    private static let documents: [String] = {
        let catalogue = "Sources/Operon/Operon.docc"
        let articles = files(under: catalogue).filter { $0.hasSuffix(".md") }
        return ["README.md"] + articles
    }()

    private static func files(under folder: String) -> [String] {
        let url = root.appending(path: folder)
        let names = FileManager.default.enumerator(atPath: url.path)?.allObjects as? [String]
        return (names ?? []).sorted().map { "\(folder)/\($0)" }
    }

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    /// Marked regions of the files beside this one, and the whole files of the first example.
    private static func compiled() throws -> [Snippet] {
        var snippets: [Snippet] = []
        for path in files(under: "Tests/SnippetTests") where path.hasSuffix(".swift") {
            snippets += Snippet.marked(try text(path), in: path)
        }
        for path in files(under: "Examples/countwords") where path.hasSuffix(".swift") {
            snippets.append(Snippet(name: path, code: Snippet.plain(try text(path))))
        }
        return snippets
    }

    @Test func `what a document shows is compiled`() throws {
        let compiled = Set(try Self.compiled().map(\.code))
        for document in Self.documents {
            for block in Snippet.blocks(try Self.text(document)) where !compiled.contains(block) {
                Issue.record("\(document) shows what no test compiles:\n\(block)")
            }
        }
    }

    @Test func `what is marked is shown`() throws {
        let shown = Set(try Self.documents.flatMap { Snippet.blocks(try Self.text($0)) })
        #expect(try Self.compiled().filter { !shown.contains($0.code) }.map(\.name) == [])
    }

    @Test func `there are articles`() {
        #expect(Self.documents.count >= 7)
    }

    @Test(arguments: ["Worker", "Submit"])
    func `a whole program takes no more than thirty lines`(program: String) throws {
        let text = try Self.text("Examples/countwords/\(program)/Main.swift")
        #expect(
            text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().count <= 30
        )
    }

    /// Runs a program of the first page to its end: its exit code, and what it said.
    private static func run(
        _ name: String,
        _ arguments: String...,
        environment: [String: String]? = nil
    ) throws -> (code: Int32, output: String, errors: String) {
        let process = Process()
        process.executableURL = URL(filePath: try Program.executable(name))
        process.arguments = arguments
        if let environment { process.environment = environment }
        let (output, errors) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = errors
        try process.run()
        // A line or two: neither fills its pipe.
        let said = [output, errors].map {
            String(decoding: $0.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        }
        process.waitUntilExit()
        return (process.terminationStatus, said[0], said[1])
    }

    @Test func `the program that submits and waits does so`() throws {
        let ended = try Self.run("count-words")
        #expect(ended == (0, "The whale is named 3 times.\n", ""))
    }

    @Test func `a program whose coordinator it cannot reach ends with a sentence`() throws {
        let ended = try Self.run("count-words", "ftp://nowhere")
        #expect(ended.code == 1)
        #expect(ended.output == "")
        #expect(ended.errors.hasPrefix("count-words: "), "\(ended.errors)")
        #expect(ended.errors.split(separator: "\n").count == 1, "\(ended.errors)")
    }

    /// It waits for a minute, as long as a coordinator may take to start again.
    @Test func `a program whose coordinator is away ends with a sentence`() async throws {
        let program = try Program(
            try Program.executable("count-words"),
            ["unix:/nowhere/operon.sock"],
            environment: [:],
            directory: "/"
        )
        let ended = try await program.end()
        #expect(ended.end == .exit(1) && ended.output == "")
        let lines = ended.errors.split(separator: "\n")
        #expect(lines.count == 2, "\(ended.errors)")
        #expect(lines.first?.contains("the coordinator does not answer") == true)
        let why = "count-words: Cannot connect to unix:/nowhere/operon.sock: no "
        #expect(lines.last?.hasPrefix(why) == true, "\(ended.errors)")
    }

    @Test func `the worker says what it cannot begin with`() throws {
        let ended = try Self.run("count-worker", environment: [:])
        let why = "count-worker: No broker is named, by the program or in OPERON_BROKER.\n"
        #expect(ended == (1, "", why))
    }

    // MARK: - The comparison finds what it is for

    @Test func `a region has its name and no marks`() {
        let text = "a\n    // snippet: x\n    let b = 1\n\n      c()\n    // end\nd\n"
        #expect(Snippet.marked(text, in: "f") == [Snippet(name: "f x", code: "let b = 1\n\n  c()")])
    }

    @Test func `a region that does not end is none`() {
        #expect(Snippet.marked("// snippet: x\na\n", in: "f").map(\.code) == ["(no end)"])
    }

    @Test func `only Swift blocks count, wherever they stand`() {
        let text = "```swift\na\n```\n```\nb\n```\n- x\n\n  ```swift\n  c\n  ```\n"
        #expect(Snippet.blocks(text) == ["a", "c"])
    }
}

/// A piece of code, without the indentation that all of it has.
struct Snippet: Equatable {
    var name: String
    var code: String

    /// The regions from `// snippet: NAME` to `// end`.
    static func marked(_ text: String, in path: String) -> [Snippet] {
        let begin = "// " + "snippet: "
        var snippets: [Snippet] = []
        var open: (name: String, lines: [Substring])?
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            let bare = line.trimmingCharacters(in: .whitespaces)
            if bare.hasPrefix(begin) {
                open = ("\(path) \(bare.dropFirst(begin.count))", [])
            } else if bare == "// end", let snippet = open {
                snippets.append(
                    Snippet(name: snippet.name, code: plain(snippet.lines.joined(separator: "\n")))
                )
                open = nil
            } else {
                open?.lines.append(line)
            }
        }
        if let open { snippets.append(Snippet(name: open.name, code: "(no end)")) }
        return snippets
    }

    /// The fenced blocks of a document that are Swift.
    static func blocks(_ text: String) -> [String] {
        var blocks: [String] = []
        var block: [Substring]?
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            let bare = line.trimmingCharacters(in: .whitespaces)
            if let lines = block {
                if bare == "```" {
                    blocks.append(plain(lines.joined(separator: "\n")))
                    block = nil
                } else {
                    block = lines + [line]
                }
            } else if bare == "```swift" {
                block = []
            }
        }
        return blocks
    }

    static func plain(_ text: String) -> String {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let filled = lines.filter { !$0.allSatisfy { $0 == " " } }
        let indentation = filled.map { $0.prefix { $0 == " " }.count }.min() ?? 0
        return lines.map { $0.dropFirst(indentation) }.joined(separator: "\n")
            .trimmingCharacters(in: .newlines)
    }
}
