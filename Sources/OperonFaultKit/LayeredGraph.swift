/// Layers of operations, each of which notes its start and its end in a ledger. One of a layer
/// depends on two of the layer before.
package struct LayeredGraph {
    package let text: String
    /// The direct dependencies of each operation.
    package let dependencies: [String: [String]]

    /// `gates`: operations of these layers go on only when their file is there. `isBraided`: each
    /// depends on two of the layer before; otherwise on the one before it in its column.
    package init(
        layers: Int,
        width: Int,
        milliseconds: ClosedRange<Int>,
        ledger: String,
        gates: [Int: String] = [:],
        isBraided: Bool = true
    ) {
        var text = "defaults: { inheritEnvironment: [PATH, TMPDIR] }\noperations:\n"
        var dependencies: [String: [String]] = [:]
        for layer in 0..<layers {
            for column in 0..<width {
                let name = "o\(layer)-\(column)"
                let spread = milliseconds.upperBound - milliseconds.lowerBound
                let length = milliseconds.lowerBound + (layer * 7 + column * 3) % 10 * spread / 9
                let columns = isBraided ? [column, (column + 1) % width] : [column]
                let before = layer == 0 ? [] : Set(columns).map { "o\(layer - 1)-\($0)" }
                dependencies[name] = before.sorted()
                var work = "sleep \(Double(length) / 1_000)"
                if let gate = gates[layer] {
                    work += "; while [ ! -e \(gate) ]; do sleep 0.05; done"
                }
                text += Self.operation(
                    name,
                    Ledger.script(work, in: ledger),
                    after: dependencies[name] ?? []
                )
            }
        }
        self.text = text
        self.dependencies = dependencies
    }

    /// One operation of a graph file; the script may have several lines.
    package static func operation(
        _ name: String,
        _ script: String,
        after dependencies: [String] = []
    ) -> String {
        let lines = script.split(separator: "\n").map { "      \($0)\n" }.joined()
        return "  \(name):\n    run: |\n\(lines)"
            + "    dependencies: [\(dependencies.joined(separator: ", "))]\n"
    }
}
