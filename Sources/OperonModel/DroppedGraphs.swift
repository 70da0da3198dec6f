/// How the operations of dropped graphs ended, by the number of the graph.
///
/// Four bytes for each number up to the highest that was dropped, and more only for a graph whose
/// operations ended in different ways: graphs are dropped for as long as a store lives, and every
/// coordinator holds this table.
package struct DroppedGraphs: Hashable, Sendable {
    /// One word for each graph: what it holds in the upper three bits, a number in the others.
    private var words: [UInt32] = []
    /// Of graphs whose operations ended in different ways.
    private var mixed: [OutcomeRuns] = []

    private static let notDropped: UInt32 = 0
    /// Upper bits from 1 on: the number counts operations, which all ended as this outcome says.
    private static let isMixed = UInt32(OutcomeKind.allCases.count + 1)
    private static let isEmpty = isMixed + 1
    private static let numberBits: UInt32 = 29
    private static let numberMax: UInt32 = 1 << numberBits - 1

    package init() {}

    /// One more than the highest number that was dropped.
    package var end: Int { words.count }

    package func contains(_ graph: GraphID) -> Bool { word(of: graph) != Self.notDropped }

    /// Drops a graph. One that was dropped before keeps what was said first.
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

    /// How an operation of a dropped graph ended; `nil`: there is none, or it is not dropped.
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

    /// The outcome of all operations of a graph; `nil`: they have several, or there is none.
    private static func kind(_ word: UInt32) -> OutcomeKind? {
        let tag = word >> numberBits
        guard (1..<isMixed).contains(tag) else { return nil }
        return OutcomeKind.allCases.first { UInt32($0.rawValue) == tag - 1 }
    }
}
