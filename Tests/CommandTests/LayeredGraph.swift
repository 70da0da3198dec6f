import Testing

/// Layers of operations, each of which notes its start and its end in a file. One of a layer
/// depends on two of the layer before.
struct LayeredGraph {
    let text: String
    let dependencies: [String: [String]]

    /// `gate`: operations of this layer go on only when the file is there.
    init(
        layers: Int,
        width: Int,
        milliseconds: ClosedRange<Int>,
        ledger: String,
        gate: (layer: Int, file: String)? = nil
    ) {
        var text = "defaults: { inheritEnvironment: [PATH, TMPDIR] }\noperations:\n"
        var dependencies: [String: [String]] = [:]
        for layer in 0..<layers {
            for column in 0..<width {
                let name = "o\(layer)-\(column)"
                let spread = milliseconds.upperBound - milliseconds.lowerBound
                let length = milliseconds.lowerBound + (layer * 7 + column * 3) % 10 * spread / 9
                let before =
                    layer == 0
                    ? [] : ["o\(layer - 1)-\(column)", "o\(layer - 1)-\((column + 1) % width)"]
                dependencies[name] = before
                var work = "sleep \(Double(length) / 1_000)"
                if let gate, gate.layer == layer {
                    work += "; while [ ! -e \(gate.file) ]; do sleep 0.02; done"
                }
                // One short line per echo, appended in one write.
                text += """
                      \(name):
                        run: |
                          echo "start $OPERON_OPERATION $OPERON_ATTEMPT" >> \(ledger)
                          \(work)
                          echo "end $OPERON_OPERATION $OPERON_ATTEMPT" >> \(ledger)
                        dependencies: [\(before.joined(separator: ", "))]

                    """
            }
        }
        self.text = text
        self.dependencies = dependencies
    }
}

extension Scene {
    /// What ran is what the report tells: no attempt of one operation ran twice, and none that the
    /// report does not know.
    func expectLedger(_ report: Report) {
        var starts: [String: Int] = [:]
        for line in lines(of: "ledger") where line.hasPrefix("start ") {
            starts[String(line.dropFirst(6)), default: 0] += 1
        }
        #expect(starts.filter { $0.value > 1 } == [:], "an attempt ran twice")
        let told = Set(
            report.operations.flatMap { operation in
                operation.attempts.map { "\(operation.name) \($0.number)" }
            }
        )
        #expect(Set(starts.keys).subtracting(told) == [], "the report does not tell all that ran")
        let ended = Set(lines(of: "ledger").filter { $0.hasPrefix("end ") })
        let unfinished = report.operations.filter { operation in
            !ended.contains("end \(operation.name) \(operation.attempts.last?.number ?? 0)")
        }
        #expect(unfinished.map(\.name) == [], "what succeeded ran to its end")
    }
}
