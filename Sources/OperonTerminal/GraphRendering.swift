package import OperonModel

/// Draws a graph as text: for Graphviz, for Mermaid, or as a tree for reading.
///
/// All traversals are loops, not recursion, because users choose the depth of a graph.
package struct GraphRendering: Sendable {
    package enum Format: String, Hashable, Sendable, CaseIterable {
        case dot
        case mermaid
        case tree
    }

    private let graph: GraphDescription
    /// For each operation, the indices of its dependencies; `nil`: no operation has that name.
    private let dependencies: [[Edge]]

    private struct Edge {
        let name: String
        let index: Int?
        let condition: DependencyCondition
    }

    /// The most lines of a tree: about as many as a person can scroll through.
    package static let treeLinesMax = 10_000
    /// The limit of edges in Mermaid (its `maxEdges`, 500 by default). A browser shows an error for
    /// a larger drawing, so further arrows are left out, and the text says how many.
    package static let mermaidEdgesMax = 500

    package init(_ graph: GraphDescription) {
        self.graph = graph
        var indices: [String: Int] = [:]
        indices.reserveCapacity(graph.operations.count)
        for (index, operation) in graph.operations.enumerated() where indices[operation.name] == nil
        {
            indices[operation.name] = index
        }
        dependencies = graph.operations.map { operation in
            operation.dependencies.map {
                Edge(name: $0.name, index: indices[$0.name], condition: $0.condition)
            }
        }
    }

    /// The whole drawing; each line ends with a newline.
    package func text(_ format: Format, style: TerminalStyle) -> String {
        switch format {
        case .dot: dot()
        case .mermaid: mermaid()
        case .tree: tree(style: style)
        }
    }

    // MARK: - Graphviz

    /// A directed graph with an arrow from each dependency to its dependent. Nodes have numbers as
    /// ids, so that no name can be mistaken for syntax.
    package func dot() -> String {
        var text = "digraph \(TextEscapes.dot(graph.name)) {\n"
        text += "  rankdir=LR;\n  node [shape=box, style=rounded];\n"
        for (index, operation) in graph.operations.enumerated() {
            text += "  n\(index) [label=\(TextEscapes.dot(operation.name))];\n"
        }
        var missing = 0
        for (index, edges) in dependencies.enumerated() {
            for edge in edges {
                var source = "m\(missing)"
                if let found = edge.index {
                    source = "n\(found)"
                } else {
                    let label = TextEscapes.dot(edge.name + " (missing)")
                    text += "  \(source) [label=\(label), color=red];\n"
                    missing += 1
                }
                text += "  \(source) -> n\(index)\(dotAttributes(edge.condition));\n"
            }
        }
        return text + "}\n"
    }

    private func dotAttributes(_ condition: DependencyCondition) -> String {
        condition == .unlessFailed ? "" : " [label=\"\(condition.name)\", style=dashed]"
    }

    // MARK: - Mermaid

    /// A flowchart with the same nodes and arrows.
    package func mermaid() -> String {
        var text = "flowchart LR\n"
        for (index, operation) in graph.operations.enumerated() {
            text += "  n\(index)[\(TextEscapes.mermaid(operation.name))]\n"
        }
        var drawn = 0
        var missing = 0
        var total = 0
        for (index, edges) in dependencies.enumerated() {
            total += edges.count
            for edge in edges where drawn < GraphRendering.mermaidEdgesMax {
                drawn += 1
                var source = "m\(missing)"
                if let found = edge.index {
                    source = "n\(found)"
                } else {
                    text += "  \(source)[\(TextEscapes.mermaid(edge.name + " (missing)"))]\n"
                    missing += 1
                }
                let arrow =
                    edge.condition == .unlessFailed ? "-->" : "-.->|\(edge.condition.name)|"
                text += "  \(source) \(arrow) n\(index)\n"
            }
        }
        if total > drawn {
            text += "  %% \(total - drawn) more arrows are left out: Mermaid draws at most "
            text += "\(GraphRendering.mermaidEdgesMax). The dot format has them all.\n"
        }
        return text
    }

    // MARK: - Tree

    /// Operations without dependents are at the left, and the dependencies of each operation are
    /// listed under it. An operation whose dependencies were already listed is marked instead of
    /// repeated.
    package func tree(
        style: TerminalStyle,
        linesMax: Int = GraphRendering.treeLinesMax
    ) -> String {
        var walk = TreeWalk(style: style, linesMax: linesMax, count: dependencies.count)
        var isDependency = [Bool](repeating: false, count: dependencies.count)
        for edge in dependencies.joined() {
            if let index = edge.index { isDependency[index] = true }
        }
        for root in isDependency.indices where !isDependency[root] { show(root, in: &walk) }
        // Only operations on or behind a cycle are left; a valid graph has none.
        for index in isDependency.indices where !walk.expanded[index] { show(index, in: &walk) }
        return walk.text()
    }

    private func show(_ root: Int, in walk: inout TreeWalk) {
        guard !walk.isCut else { return }
        walk.line(graph.operations[root].name, prefix: "", note: "")
        walk.expanded[root] = true
        // One level of the tree: an operation, and how many of its dependencies have been listed.
        var levels = [(index: root, next: 0, prefix: "")]
        while let level = levels.last {
            let edges = dependencies[level.index]
            guard level.next < edges.count else {
                levels.removeLast()
                continue
            }
            guard !walk.isFull else {
                walk.isCut = true
                return
            }
            levels[levels.count - 1].next += 1
            let edge = edges[level.next]
            let isLast = level.next == edges.count - 1
            let branch = walk.branch(isLast: isLast)
            var note = edge.condition == .unlessFailed ? "" : " (\(edge.condition.name))"
            if edge.index == nil { note += " (missing)" }

            let seen = edge.index.map { walk.expanded[$0] } ?? false
            let hasMore = edge.index.map { !dependencies[$0].isEmpty } ?? false
            if seen, hasMore { note += walk.repeated }
            walk.line(edge.name, prefix: level.prefix + branch.here, note: note)
            if let index = edge.index, !seen {
                walk.expanded[index] = true
                levels.append((index, 0, level.prefix + branch.below))
            }
        }
    }
}

/// The state of a tree that is being written.
private struct TreeWalk {
    private let style: TerminalStyle
    private let linesMax: Int
    private var lines = ""
    private var count = 0
    /// Whether lines were left out because they did not fit.
    var isCut = false
    /// Whether the dependencies of each operation have been listed.
    var expanded: [Bool]

    init(style: TerminalStyle, linesMax: Int, count: Int) {
        self.style = style
        self.linesMax = linesMax
        expanded = Array(repeating: false, count: count)
    }

    var isFull: Bool { count >= linesMax }

    /// The mark after an operation whose dependencies are listed further up.
    var repeated: String { style.hasUnicode ? " ↑" : " ^" }

    func branch(isLast: Bool) -> (here: String, below: String) {
        switch (style.hasUnicode, isLast) {
        case (true, false): ("├─ ", "│  ")
        case (true, true): ("└─ ", "   ")
        case (false, false): ("|- ", "|  ")
        case (false, true): ("`- ", "   ")
        }
    }

    mutating func line(_ name: String, prefix: String, note: String) {
        guard !isFull else {
            isCut = true
            return
        }
        count += 1
        lines += prefix + style.spelled(TerminalText.line(name)) + note + "\n"
    }

    func text() -> String {
        isCut ? lines + style.spelled("… cut after \(linesMax) lines\n") : lines
    }
}
