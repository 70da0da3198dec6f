package import OperonModel

/// Draws a graph as text: for Graphviz, for Mermaid, or as a tree for reading.
///
/// Every walk is a loop: the depth of a graph is its user's.
package struct GraphRendering: Sendable {
    package enum Format: String, Hashable, Sendable, CaseIterable {
        case dot
        case mermaid
        case tree
    }

    private let graph: GraphDescription
    /// For each operation, where its dependencies are; `nil`: there is none of that name.
    private let dependencies: [[Edge]]

    private struct Edge {
        let name: String
        let index: Int?
        let condition: DependencyCondition
    }

    /// Lines of a tree: what a person may still scroll through.
    package static let treeLinesMax = 10_000
    /// Mermaid's own limit of edges (its `maxEdges`, 500 by default) makes a larger drawing an
    /// error in the browser, so it is said instead of drawn.
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

    /// The whole drawing, with a line end after each line.
    package func text(_ format: Format, style: TerminalStyle) -> String {
        switch format {
        case .dot: dot()
        case .mermaid: mermaid()
        case .tree: tree(style: style)
        }
    }

    // MARK: - Graphviz

    /// A directed graph, an arrow from each dependency to its dependent. Nodes are numbered, so
    /// that no name can be taken for anything else.
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

    /// What nothing waits for stands at the left, and under each operation what it waits for. An
    /// operation that was shown with its dependencies before is marked instead of repeated.
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
        // Only operations on or behind a cycle are left; a graph that is valid has none.
        for index in isDependency.indices where !walk.expanded[index] { show(index, in: &walk) }
        return walk.text()
    }

    private func show(_ root: Int, in walk: inout TreeWalk) {
        guard !walk.isCut else { return }
        walk.line(graph.operations[root].name, prefix: "", note: "")
        walk.expanded[root] = true
        // A level of the tree: an operation, and how many of its dependencies were shown.
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

/// A tree being written.
private struct TreeWalk {
    private let style: TerminalStyle
    private let linesMax: Int
    private var lines = ""
    private var count = 0
    /// There is more that did not fit.
    var isCut = false
    /// Operations that were shown with their dependencies.
    var expanded: [Bool]

    init(style: TerminalStyle, linesMax: Int, count: Int) {
        self.style = style
        self.linesMax = linesMax
        expanded = Array(repeating: false, count: count)
    }

    var isFull: Bool { count >= linesMax }

    /// After an operation whose dependencies stand further up.
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
