/// The outcomes of the operations of a finished graph, by index: as many numbers as there are
/// changes from one to the next, because most operations end like those beside them.
package struct OutcomeRuns: Hashable, Sendable {
    private struct Run: Hashable, Sendable {
        var kind: OutcomeKind
        /// The index behind its last.
        var end: UInt32
    }

    private var runs: [Run] = []

    package init() {}

    /// So many operations that all ended alike.
    package init(repeating kind: OutcomeKind, count: UInt32) {
        if count > 0 { runs = [Run(kind: kind, end: count)] }
    }

    /// Reads what `text` writes; `nil` for anything else.
    package init?(text: String) {
        for word in text.split(separator: " ") {
            guard let letter = word.first, let kind = OutcomeRuns.kind(letter),
                let length = UInt32(word.dropFirst()), length > 0
            else { return nil }
            let (end, overflow) = count.addingReportingOverflow(length)
            guard !overflow else { return nil }
            runs.append(Run(kind: kind, end: end))
        }
    }

    /// Operations in all.
    package var count: UInt32 { runs.last?.end ?? 0 }

    /// The outcome that all operations have; `nil`: they have several, or there are none.
    package var only: OutcomeKind? { runs.count == 1 ? runs[0].kind : nil }

    /// The outcome of the operation with the next index.
    package mutating func append(_ kind: OutcomeKind) {
        if let last = runs.last, last.kind == kind {
            runs[runs.count - 1].end += 1
        } else {
            runs.append(Run(kind: kind, end: count + 1))
        }
    }

    /// `nil` for an operation that there is not.
    package subscript(index: UInt32) -> OutcomeKind? {
        var low = 0
        var high = runs.count
        while low < high {
            let middle = (low + high) / 2
            if runs[middle].end <= index { low = middle + 1 } else { high = middle }
        }
        return low < runs.count ? runs[low].kind : nil
    }

    /// Operations that ended like this.
    package func count(of kind: OutcomeKind) -> Int {
        var first: UInt32 = 0
        var count: UInt32 = 0
        for run in runs {
            if run.kind == kind { count += run.end - first }
            first = run.end
        }
        return Int(count)
    }

    /// As in `s1000 f1 k24`: one thousand succeeded, one failed, 24 were skipped.
    package var text: String {
        var first: UInt32 = 0
        var words: [String] = []
        for run in runs {
            words.append("\(OutcomeRuns.letter(run.kind))\(run.end - first)")
            first = run.end
        }
        return words.joined(separator: " ")
    }

    private static func letter(_ kind: OutcomeKind) -> Character {
        switch kind {
        case .succeeded: "s"
        case .failed: "f"
        case .cancelled: "c"
        case .skipped: "k"
        }
    }

    private static func kind(_ letter: Character) -> OutcomeKind? {
        OutcomeKind.allCases.first { OutcomeRuns.letter($0) == letter }
    }
}
