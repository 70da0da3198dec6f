import Foundation
import OperonGraphFile
import OperonModel
import Testing

/// Where the values of repeated operations come from, and how many there may be.
@Suite struct ElementSourceTests {
    private func read(_ text: String) throws -> GraphDescription {
        try Fixture.read(text, "g.yaml", GraphFileOptions(directory: "/graphs")).graph
    }

    // MARK: - Lines and files

    @Test func `lines and files are read beside the graph file`() throws {
        let text = """
            operations:
              a: { run: x, forEach: { lines: list.txt } }
              b: { run: x, forEach: { files: "*.t?t" } }
              c: { run: x, matrix: { f: { files: ["n*", list.txt, list.txt] } } }
            """
        try Fixture.withFile("g.yaml", Array(text.utf8)) { path in
            let directory = URL(fileURLWithPath: path).deletingLastPathComponent()
            try Data("two\r\n\none".utf8).write(to: directory.appendingPathComponent("list.txt"))
            try Data().write(to: directory.appendingPathComponent("Z.txt"))
            let graph = try GraphFile.read(path: path).graph
            #expect(
                graph.operations.map(\.name) == [
                    "a[two]", "a[one]", "a", "b[Z.txt]", "b[list.txt]", "b", "c[f=list.txt]", "c",
                ]
            )
        }
    }

    /// Reads a graph file that lies beside these files.
    private func read(_ text: String, beside files: KeyValuePairs<String, [UInt8]>) throws
        -> GraphDescription
    {
        var graph: GraphDescription?
        try Fixture.withFile("g.yaml", Array(text.utf8)) { path in
            let directory = URL(fileURLWithPath: path).deletingLastPathComponent()
            for (name, bytes) in files {
                try Data(bytes).write(to: directory.appendingPathComponent(name))
            }
            graph = try GraphFile.read(path: path).graph
        }
        return try #require(graph)
    }

    /// Trying each way in which the wildcards can match would take for ever.
    @Test(.timeLimit(.minutes(5)))
    func `a pattern of as many wildcards as there can be is matched in time`() throws {
        let name = String(repeating: "a", count: 250)
        let wild = String(repeating: "*a", count: 127)
        for (pattern, names) in [(wild, ["a[\(name)]", "a"]), (wild + "b", ["a"])] {
            let text = "operations: { a: { run: x, forEach: { files: '\(pattern)' } } }"
            let graph = try read(text, beside: [name: []])
            #expect(graph.operations.map(\.name) == names)
        }
    }

    @Test func `a directory that does not exist has no files`() throws {
        let text = "operations: { a: { run: x, forEach: { files: 'none/*.png' } } }"
        #expect(try read(text, beside: [:]).operations.map(\.name) == ["a"])
    }

    @Test func `a source without elements is a warning with its place`() throws {
        let text = """
            parameters: { kind: png }
            operations:
              a: { run: x, forEach: { files: ["none/*.${kind}", "*.gif"] } }
              b: { run: x, forEach: { lines: list.txt } }
              c: { run: x, matrix: { f: { files: "*.yaml" } } }
            """
        try Fixture.withFile("g.yaml", Array(text.utf8)) { path in
            let directory = URL(fileURLWithPath: path).deletingLastPathComponent()
            try Data().write(to: directory.appendingPathComponent("list.txt"))
            let warnings = try GraphFile.read(path: path).warnings
            #expect(
                warnings.map { "\($0.line):\($0.column): \($0.message)" } == [
                    "3:34: “files” “none/*.png”, “*.gif”: no file matches, so this repeats nothing",
                    "4:34: “lines” “list.txt”: the file has no lines, so this repeats nothing",
                ]
            )
        }
    }

    @Test func `names that differ only in how Unicode writes them are two files`() throws {
        let text = "operations: { a: { run: x, matrix: { f: { files: '*.x' }, zip: true } } }"
        let problems = Result {
            try read(text, beside: ["\u{E9}.x": [], "e\u{301}.x": []])
        }
        // Both are there, and an element would have the name of the other.
        guard case .failure(let error as GraphFileError) = problems else {
            Issue.record("one of the files was left out")
            return
        }
        #expect(error.problems.map(\.code) == [.duplicateOperation])
    }

    @Test func `lines have no byte order mark, and a control character is told with its line`()
        throws
    {
        let text = "operations: { a: { run: x, forEach: { lines: l } } }"
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        let graph = try read(text, beside: ["l": mark + Array("one\ntwo\n".utf8)])
        #expect(graph.operations.map(\.name) == ["a[one]", "a[two]", "a"])
        let error = #expect(throws: GraphFileError.self) {
            try read(text, beside: ["l": Array("one\n\nt\two".utf8)])
        }
        #expect(
            error?.problems.map(\.message) == [
                "“lines” “l”: line 3 has a control character, and names of operations have none"
            ]
        )
    }

    @Test func `files that cannot be read are named`() throws {
        let text = """
            operations:
              a: { run: x, forEach: { lines: none.txt } }
              b: { run: x, forEach: { files: none.txt } }
              c: { run: x, forEach: { lines: bytes.txt } }
            """
        try Fixture.withFile("g.yaml", Array(text.utf8)) { path in
            let directory = URL(fileURLWithPath: path).deletingLastPathComponent()
            try Data([0x61, 0x0A, 0xFF])
                .write(to: directory.appendingPathComponent("bytes.txt"))
            let error = #expect(throws: GraphFileError.self) { try GraphFile.read(path: path) }
            let problems = error?.problems.map { "\($0.line):\($0.column): \($0.message)" }
            #expect(
                problems == [
                    "2:34: “lines” “none.txt”: the file cannot be read: "
                        + "No such file or directory",
                    "3:34: “files” “none.txt”: there is no such file",
                    "4:34: “lines” “bytes.txt”: line 2 is not UTF-8",
                ]
            )
        }
    }

    @Test func `a coordinator reads no files for a client`() throws {
        let text = "operations: { a: { run: x, forEach: { lines: /etc/passwd } } }"
        let error = #expect(throws: GraphFileError.self) {
            try GraphFileCodec().decode(
                Array(text.utf8),
                contentType: "application/yaml",
                name: "g"
            )
        }
        #expect(error?.problems.map(\.code) == [.unsupported])
    }

    // MARK: - Bounds

    @Test func `a short text does not become a large graph in a coordinator`() throws {
        let text = "operations: { a: { run: 'true', forEach: 1..100000 } }"
        let error = #expect(throws: GraphFileError.self) {
            try GraphFileCodec().decode(
                Array(text.utf8),
                contentType: "application/yaml",
                name: "g"
            )
        }
        #expect(error?.problems.map(\.limit) == [.graphFileBytes])
        #expect(try read(text).operations.count == 100_001)
    }

    @Test(arguments: ["1..1048576", "1..9223372036854775806"])
    func `a graph has a million operations at most`(range: String) {
        let text = "operations: { a: { run: 'true', forEach: \(range) } }"
        #expect(Fixture.problems(text, "g.yaml").map(\.limit) == [.operationsPerGraph])
    }

    @Test func `the error counts the group`() {
        var limits = Limits()
        limits.operationsPerGraph = 3
        let text = "operations: { a: { run: x, forEach: 1..3 } }"
        let problems = Fixture.problems(text, "g.yaml", limits).map(\.message)
        #expect(problems.count == 1 && problems[0].contains("4 is over the limit of 3"))
        let fits = "operations: { a: { run: x, forEach: 1..2 } }"
        #expect(Fixture.problems(fits, "g.yaml", limits).isEmpty)
    }

    @Test func `a file has no more lines than a graph has operations`() throws {
        let text = "operations: { a: { run: x, forEach: { lines: list.txt } } }"
        try Fixture.withFile("g.yaml", Array(text.utf8)) { path in
            let directory = URL(fileURLWithPath: path).deletingLastPathComponent()
            try Data("a\n\nb\nc".utf8).write(to: directory.appendingPathComponent("list.txt"))
            var options = GraphFileOptions()
            options.limits.operationsPerGraph = 2
            let error = #expect(throws: GraphFileError.self) {
                try GraphFile.read(path: path, options: options)
            }
            #expect(
                error?.problems.map(\.message) == [
                    "“lines” “list.txt”: there are more values than operations in a graph, 2"
                ]
            )
        }
    }

    @Test func `a product that no integer counts is over the limit`() {
        let range = "1..9000000000000"
        let text = "operations: { a: { run: x, matrix: { a: \(range), b: \(range) } } }"
        #expect(Fixture.problems(text, "g.yaml").map(\.limit) == [.operationsPerGraph])
    }

    @Test func `dependencies between groups count`() {
        var limits = Limits()
        limits.edgesPerGraph = 1_000
        let text = """
            operations:
              a: { run: x, forEach: 1..100 }
              b: { run: x, forEach: 1..100, dependencies: { a: finished } }
            """
        #expect(Fixture.problems(text, "g.yaml", limits).map(\.limit) == [.edgesPerGraph])
    }

    @Test func `what is left out, and each dependency, counts too`() throws {
        let texts = [
            "operations: { r: { run: x, matrix: { a: 1..100000, b: [1], exclude: [{ b: 1 }] } } }",
            "operations: { a: { run: x, forEach: 1..2000 },"
                + " b: { run: x, forEach: 1..2000, dependencies: { a: finished } } }",
        ]
        let limits = texts.map { text in
            #expect(throws: GraphFileError.self) {
                try GraphFileCodec().decode(
                    Array(text.utf8),
                    contentType: "application/yaml",
                    name: "g"
                )
            }?.problems.map(\.limit)
        }
        #expect(limits == [[.graphFileBytes], [.graphFileBytes]])
    }

    @Test func `a value fits into a name`() {
        let value = String(repeating: "x", count: 257)
        let text = "operations: { r: { run: x, matrix: { a: [\(value)], b: [1] } } }"
        #expect(Fixture.problems(text, "g.yaml").map(\.limit) == [.nameBytes])
    }

    @Test func `the variables of elements and of parameters count in a coordinator`() {
        // In memory, a variable takes more than its characters.
        let letters = "abcdefghjklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
        let many = letters.map { "\($0): [0]" }.joined(separator: ", ")
        let parameters = (0..<900).map { "p\($0): 1" }.joined(separator: ", ")
        let texts = [
            "operations: { r: { run: x, matrix: { i: 1..5000, \(many) } } }",
            "parameters: { \(parameters) }\noperations: { r: { run: x, forEach: 1..1000 } }",
        ]
        for text in texts {
            let error = #expect(throws: GraphFileError.self) {
                try GraphFileCodec().decode(
                    Array(text.utf8),
                    contentType: "application/yaml",
                    name: "g"
                )
            }
            #expect(error?.problems.map(\.limit) == [.graphFileBytes])
        }
    }

    @Test func `a matrix has 64 variables at most`() {
        let values = (1...65).map { "v\($0): [0]" }.joined(separator: ", ")
        #expect(
            Fixture.problems("operations: { r: { run: x, matrix: { \(values) } } }", "g.yaml")
                .map(\.message) == ["65 variables are more than a matrix may have, 64"]
        )
    }
}
