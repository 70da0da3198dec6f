/// The outcomes of the operations of a finished graph, by index. They are stored as runs of equal
/// outcomes, because most operations end like their neighbours.
package struct OutcomeRuns: Hashable, Sendable {
    private struct Run: Hashable, Sendable {
        var kind: OutcomeKind
        /// One more than the last index of the run.
        var end: UInt32
    }

    private var runs: [Run] = []

    package init() {}

    /// The outcomes of this many operations that all ended the same way.
    package init(repeating kind: OutcomeKind, count: UInt32) {
        if count > 0 { runs = [Run(kind: kind, end: count)] }
    }

    /// Parses the format of `text`; `nil` for any other text.
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

    /// The number of operations.
    package var count: UInt32 { runs.last?.end ?? 0 }

    /// The outcome that all operations share; `nil`: they have several outcomes, or there are no
    /// operations.
    package var only: OutcomeKind? { runs.count == 1 ? runs[0].kind : nil }

    /// Adds the outcome of the operation with the next index.
    package mutating func append(_ kind: OutcomeKind) {
        if let last = runs.last, last.kind == kind {
            runs[runs.count - 1].end += 1
        } else {
            runs.append(Run(kind: kind, end: count + 1))
        }
    }

    /// `nil` for an index beyond the last operation.
    package subscript(index: UInt32) -> OutcomeKind? {
        var low = 0
        var high = runs.count
        while low < high {
            let middle = (low + high) / 2
            if runs[middle].end <= index { low = middle + 1 } else { high = middle }
        }
        return low < runs.count ? runs[low].kind : nil
    }

    /// The number of operations with this outcome.
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
