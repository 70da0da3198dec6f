import OperonModel
import OperonTerminal
import Testing

@Suite struct GraphRenderingTests {
    static func graph(_ edges: KeyValuePairs<String, [DependencyDescription]>) -> GraphDescription {
        GraphDescription(
            name: "g",
            operations: edges.map { name, dependencies in
                var operation = OperationDescription(name: name, work: .nothing)
                operation.dependencies = dependencies
                return operation
            }
        )
    }

    static let diamond = graph([
        "split": [],
        "a": [DependencyDescription("split")],
        "b": [DependencyDescription("split", .finished)],
        "merge": [DependencyDescription("a"), DependencyDescription("b")],
    ])

    /// Names that each format could take for something else.
    static let awkward = [
        "a\"b", "back\\slash", "end", "line\nbreak", "<b>html</b>", "#35;", "a;b", "`code`",
        "[x](y)", "\\N", "数え", "%% comment", "a|b", "n0 -> n1", "\u{1B}[2J", "subgraph",
    ]

    @Test func `a tree shows what waits for what, once`() {
        #expect(
            GraphRendering(Self.diamond).tree(style: unicode) == """
                merge
                ├─ a
                │  └─ split
                └─ b
                   └─ split (finished)

                """
        )
    }

    @Test func `what was shown with its dependencies is marked, not repeated`() {
        let graph = Self.graph([
            "x": [],
            "base": [DependencyDescription("x")],
            "a": [DependencyDescription("base")],
            "b": [DependencyDescription("base"), DependencyDescription("gone")],
        ])

        #expect(
            GraphRendering(graph).tree(style: ascii) == """
                a
                `- base
                   `- x
                b
                |- base ^
                `- gone (missing)

                """
        )
    }

    @Test func `a cycle is shown and ends`() {
        let graph = Self.graph([
            "a": [DependencyDescription("b")], "b": [DependencyDescription("a")],
        ])

        #expect(GraphRendering(graph).tree(style: unicode) == "a\n└─ b\n   └─ a ↑\n")
    }

    @Test func `a chain of a hundred thousand is cut, without recursion`() {
        let operations = (0..<100_000).map { index in
            var operation = OperationDescription(name: "o\(index)", work: .nothing)
            if index > 0 { operation.dependencies = [DependencyDescription("o\(index - 1)")] }
            return operation
        }
        let rendering = GraphRendering(GraphDescription(name: "chain", operations: operations))

        let lines = rendering.tree(style: unicode, linesMax: 100).split(separator: "\n")

        #expect(lines.count == 101)
        #expect(lines[0] == "o99999")
        #expect(lines.last == "… cut after 100 lines")
    }

    @Test func `a tree that just fits is not cut`() {
        let names = (0..<3).map { DependencyDescription("d\($0)") }
        let rendering = GraphRendering(Self.graph(["root": names]))

        #expect(!rendering.tree(style: unicode, linesMax: 4).contains("cut"))
        #expect(rendering.tree(style: unicode, linesMax: 3).hasSuffix("… cut after 3 lines\n"))
    }

    // MARK: - Graphviz

    @Test func `dot draws an arrow from each dependency to its dependent`() {
        #expect(
            GraphRendering(Self.diamond).dot() == """
                digraph "g" {
                  rankdir=LR;
                  node [shape=box, style=rounded];
                  n0 [label="split"];
                  n1 [label="a"];
                  n2 [label="b"];
                  n3 [label="merge"];
                  n0 -> n1;
                  n0 -> n2 [label="finished", style=dashed];
                  n1 -> n3;
                  n2 -> n3;
                }

                """
        )
    }

    @Test(arguments: awkward)
    func `every name can be read back from dot`(name: String) throws {
        let text = GraphRendering(Self.graph([name: []])).dot()
        let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("  n0 ") })
        try #require(line.hasPrefix("  n0 [label=\"") && line.hasSuffix("\"];"))

        var result = ""
        var quoted = line.dropFirst("  n0 [label=\"".count).dropLast("\"];".count)
        while let character = quoted.popFirst() {
            // An unescaped quotation mark would have ended the string.
            try #require(character != "\"")
            let escaped = character == "\\" ? quoted.popFirst() : character
            result.append(try #require(escaped))
        }

        #expect(result == Self.pictured(name))
    }

    @Test func `a missing dependency is drawn as missing`() {
        let graph = Self.graph(["a": [DependencyDescription("gone\"")]])

        let text = GraphRendering(graph).dot()

        #expect(text.contains("  m0 [label=\"gone\\\" (missing)\", color=red];\n  m0 -> n0;\n"))
    }

    // MARK: - Mermaid

    @Test func `mermaid draws the same arrows`() {
        #expect(
            GraphRendering(Self.diamond).mermaid() == """
                flowchart LR
                  n0["split"]
                  n1["a"]
                  n2["b"]
                  n3["merge"]
                  n0 --> n1
                  n0 -.->|finished| n2
                  n1 --> n3
                  n2 --> n3

                """
        )
    }

    @Test(arguments: awkward)
    func `every name can be read back from mermaid`(name: String) throws {
        let text = GraphRendering(Self.graph([name: []])).mermaid()
        let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("  n0[") })
        try #require(line.hasPrefix("  n0[\"") && line.hasSuffix("\"]"))

        var result = ""
        var label = line.dropFirst("  n0[\"".count).dropLast("\"]".count)
        while let character = label.popFirst() {
            guard character == "#" else {
                // What Mermaid, or the Markdown and HTML within it, would read as markup.
                try #require(!"\"<>[](){}|`\\;&*_~".contains(character))
                result.append(character)
                continue
            }
            let end = try #require(label.firstIndex(of: ";"))
            let scalar = try #require(UInt32(label[..<end]).flatMap(Unicode.Scalar.init))
            result.unicodeScalars.append(scalar)
            label = label[label.index(after: end)...]
        }

        #expect(result == Self.pictured(name))
    }

    @Test func `mermaid says what it leaves out`() {
        let names = (0..<600).map { DependencyDescription("d\($0)") }

        let text = GraphRendering(Self.graph(["root": names])).mermaid()

        #expect(text.split(separator: "\n").count(where: { $0.contains("-->") }) == 500)
        #expect(text.contains("%% 100 more arrows are left out"))
    }

    /// Control characters are drawn as their pictures; nothing else changes.
    static func pictured(_ name: String) -> String {
        name.replacing("\n", with: "\u{240A}").replacing("\u{1B}", with: "\u{241B}")
    }
}
