/// Layers of operations, each of which notes its start and its end in a ledger. One of a layer
/// depends on two of the layer before.
package struct LayeredGraph: Sendable {
    package let text: String
    /// The direct dependencies of each operation.
    package let dependencies: [String: [String]]
    /// The operations whose first attempt fails, and is followed by another one.
    package let failing: Set<String>

    /// `gates`: operations of these layers go on only when their file is there. `isBraided`: each
    /// depends on two of the layer before; otherwise on the one before it in its column. `prefix`:
    /// what the names of its operations begin with. `failingColumn`: the first attempts of this
    /// column's operations fail.
    package init(
        layers: Int,
        width: Int,
        milliseconds: ClosedRange<Int>,
        ledger: String,
        gates: [Int: String] = [:],
        isBraided: Bool = true,
        prefix: String = "",
        failingColumn: Int? = nil
    ) {
        let inherited = "PATH, TMPDIR, \(Ledger.workerVariable)"
        var text = "defaults: { inheritEnvironment: [\(inherited)] }\noperations:\n"
        var dependencies: [String: [String]] = [:]
        var failing: Set<String> = []
        for layer in 0..<layers {
            for column in 0..<width {
                let name = "\(prefix)o\(layer)-\(column)"
                let spread = milliseconds.upperBound - milliseconds.lowerBound
                let length = milliseconds.lowerBound + (layer * 7 + column * 3) % 10 * spread / 9
                let columns = isBraided ? [column, (column + 1) % width] : [column]
                let before = layer == 0 ? [] : Set(columns).map { "\(prefix)o\(layer - 1)-\($0)" }
                dependencies[name] = before.sorted()
                var work = "sleep \(Double(length) / 1_000)"
                if let gate = gates[layer] {
                    work += "; while [ ! -e \(gate) ]; do sleep 0.05; done"
                }
                if column == failingColumn { work += "; [ $OPERON_ATTEMPT -gt 1 ] || exit 1" }
                text += Self.operation(
                    name,
                    Ledger.script(work, in: ledger),
                    after: dependencies[name] ?? []
                )
                if column == failingColumn {
                    failing.insert(name)
                    text += "    retry: { limit: 3, delay: 100ms, jitter: 0 }\n"
                }
            }
        }
        self.text = text
        self.dependencies = dependencies
        self.failing = failing
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
