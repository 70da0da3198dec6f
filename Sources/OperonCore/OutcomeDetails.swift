import OperonModel

/// The outcomes of a graph's operations that did not succeed, with their details. Those that were
/// cancelled together take one entry, however many they are.
struct OutcomeDetails: Sendable {
    private struct Run: Sendable {
        var indices: Range<UInt32>
        var outcome: Outcome
    }

    /// Never iterated. It has precedence over `runs`.
    private var single: [UInt32: Outcome] = [:]
    /// In ascending order, without overlaps.
    private var runs: [Run] = []

    /// The outcome of an operation that finished and did not succeed. Of any other operation the
    /// value has no meaning.
    subscript(index: UInt32) -> Outcome? {
        get {
            if let outcome = single[index] { return outcome }
            let place = place(of: index)
            guard place < runs.count, runs[place].indices.contains(index) else { return nil }
            return runs[place].outcome
        }
        set { single[index] = newValue }
    }

    mutating func set(_ indices: Range<UInt32>, to outcome: Outcome) {
        if !single.isEmpty { for index in indices { single[index] = nil } }
        // Nearly always there is none after them.
        let first = place(of: indices.lowerBound)
        var overlapped = first
        while overlapped < runs.count, runs[overlapped].indices.lowerBound < indices.upperBound {
            overlapped += 1
        }
        var new = [Run(indices: indices, outcome: outcome)]
        if first < overlapped {
            // These operations were reopened; what is beyond them stays.
            let (before, after) = (runs[first], runs[overlapped - 1])
            if before.indices.lowerBound < indices.lowerBound {
                let rest = before.indices.lowerBound..<indices.lowerBound
                new.insert(Run(indices: rest, outcome: before.outcome), at: 0)
            }
            if after.indices.upperBound > indices.upperBound {
                let rest = indices.upperBound..<after.indices.upperBound
                new.append(Run(indices: rest, outcome: after.outcome))
            }
        }
        runs.replaceSubrange(first..<overlapped, with: new)
    }

    /// Sets the outcome of an operation after all those before it.
    mutating func append(_ outcome: Outcome, of index: UInt32) {
        guard case .cancelled = outcome, runs.last.map({ $0.indices.upperBound <= index }) ?? true
        else {
            single[index] = outcome
            return
        }
        guard let last = runs.last, last.indices.upperBound == index, last.outcome == outcome
        else {
            runs.append(Run(indices: index..<index + 1, outcome: outcome))
            return
        }
        runs[runs.count - 1].indices = last.indices.lowerBound..<index + 1
    }

    /// The first run that ends after this index.
    private func place(of index: UInt32) -> Int {
        var (low, high) = (0, runs.count)
        while low < high {
            let middle = (low + high) / 2
            if runs[middle].indices.upperBound <= index { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
