/// The outcomes of the operations of dropped graphs, by graph number.
///
/// The table takes four bytes for each number up to the highest dropped one, and more only for a
/// graph with mixed outcomes. It must be small: graphs are dropped as long as a store exists, and
/// every coordinator keeps the table in memory.
package struct DroppedGraphs: Hashable, Sendable {
    /// One word per graph: a tag in the upper three bits, a number in the other 29.
    private var words: [UInt32] = []
    /// The outcomes of graphs whose operations ended in different ways.
    private var mixed: [OutcomeRuns] = []

    private static let notDropped: UInt32 = 0
    /// This tag means that the number is an index into `mixed`. A tag from 1 up to this one is an
    /// outcome plus 1; the number then counts the operations, which all had that outcome.
    private static let isMixed = UInt32(OutcomeKind.allCases.count + 1)
    private static let isEmpty = isMixed + 1
    private static let numberBits: UInt32 = 29
    private static let numberMax: UInt32 = 1 << numberBits - 1

    package init() {}

    /// One more than the highest dropped graph number.
    package var end: Int { words.count }

    package func contains(_ graph: GraphID) -> Bool { word(of: graph) != Self.notDropped }

    /// Drops a graph. If it was dropped before, its first outcomes stay.
    package mutating func insert(_ graph: GraphID, _ outcomes: OutcomeRuns) {
        let place = Int(graph.rawValue)
        if place >= words.count {
            words.append(
                contentsOf: repeatElement(Self.notDropped, count: place + 1 - words.count)
            )
        }
        guard words[place] == Self.notDropped else { return }
        if outcomes.count == 0 {
            words[place] = Self.isEmpty << Self.numberBits
        } else if let kind = outcomes.only, outcomes.count <= Self.numberMax {
            words[place] = (UInt32(kind.rawValue) + 1) << Self.numberBits | outcomes.count
        } else {
            words[place] = Self.isMixed << Self.numberBits | UInt32(mixed.count)
            mixed.append(outcomes)
        }
    }

    /// Empty for a graph that was not dropped.
    package subscript(graph: GraphID) -> OutcomeRuns {
        let word = word(of: graph)
        let number = word & Self.numberMax
        if let kind = Self.kind(word) { return OutcomeRuns(repeating: kind, count: number) }
        return word >> Self.numberBits == Self.isMixed ? mixed[Int(number)] : OutcomeRuns()
    }

    /// The outcome of an operation of a dropped graph; `nil`: the graph has no such operation or
    /// was not dropped.
    package func outcome(of operation: OperationID) -> OutcomeKind? {
        let word = word(of: operation.graph)
        let number = word & Self.numberMax
        if let kind = Self.kind(word) { return operation.index < number ? kind : nil }
        guard word >> Self.numberBits == Self.isMixed else { return nil }
        return mixed[Int(number)][operation.index]
    }

    private func word(of graph: GraphID) -> UInt32 {
        let place = Int(graph.rawValue)
        return place < words.count ? words[place] : Self.notDropped
    }

    /// The outcome that all operations of a graph share; `nil`: they have several outcomes, or
    /// there are no operations.
    private static func kind(_ word: UInt32) -> OutcomeKind? {
        let tag = word >> numberBits
        guard (1..<isMixed).contains(tag) else { return nil }
        return OutcomeKind.allCases.first { UInt32($0.rawValue) == tag - 1 }
    }
}
