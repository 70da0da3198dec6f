import DequeModule
import OperonCore
import OperonModel

/// The submission data of graphs: who, when, under which key. Owned by the coordinator's service.
///
/// The name of a dropped graph stays, for dependencies that name it. It takes eight bytes, plus one
/// copy of each name, however many graphs share it.
struct GraphRegister: Sendable {
    struct Entry: Sendable {
        var name: String
        var submitter: String
        var submittedAt: WallTime
        var finishedAt: WallTime?
        var isOpen = false
        /// The graph was dropped: only its name and outcomes are left.
        var isTombstone = false
    }

    /// The data that is kept until the graph is dropped.
    private struct Kept: Sendable {
        var submitter = ""
        var submittedAt = WallTime(nanosecondsSince1970: 0)
        var finishedAt: WallTime?
        var isOpen = false
        /// The owned key under which it was submitted; `nil`: none.
        var key: String?
    }

    /// The earlier use of a key.
    struct Use: Sendable {
        let graph: GraphID
        /// The number of the first operation that was submitted or added.
        var first: UInt32 = 0
        let hash: ContentHash
    }

    /// The keys of the most recent additions to one graph.
    private struct AdditionUses: Sendable {
        /// Only looked up.
        var byKey: [String: Use] = [:]
        /// The keys, oldest first.
        var order = Deque<String>()
    }

    private var kept = NumberedTable(absent: Kept())
    /// The index in `names`, by graph number.
    private var nameNumbers: [UInt32] = []
    /// Each name once.
    private var names: [String] = []
    /// The newest graph of each name.
    private var newest: [GraphID] = []
    /// The index of a name in `names`. Only looked up.
    private var byName: [String: UInt32] = [:]
    /// Only looked up.
    private var uses: [String: Use] = [:]
    /// Only looked up.
    private var additions: [GraphID: AdditionUses] = [:]

    /// One more than the highest number.
    var count: Int { kept.count }

    /// The graphs that are kept, oldest first.
    var keptGraphs: [GraphID] { kept.kept.map { GraphID(rawValue: UInt32($0)) } }

    mutating func append(_ entry: Entry) {
        append(name: entry.name)
        kept.append(
            Kept(
                submitter: entry.submitter,
                submittedAt: entry.submittedAt,
                finishedAt: entry.finishedAt,
                isOpen: entry.isOpen
            )
        )
    }

    /// Adds a graph that an earlier coordinator dropped.
    mutating func append(droppedNamed name: String) {
        append(name: name)
        kept.appendDropped()
    }

    private mutating func append(name: String) {
        let graph = GraphID(rawValue: UInt32(kept.count))
        if let number = byName[name] {
            newest[Int(number)] = graph
            nameNumbers.append(number)
            return
        }
        let number = UInt32(names.count)
        byName[name] = number
        names.append(name)
        newest.append(graph)
        nameNumbers.append(number)
    }

    mutating func keepUse(of key: String, _ use: Use) {
        uses[key] = use
        kept[Int(use.graph.rawValue)].key = key
    }

    /// - Parameters:
    ///   - key: An owned key.
    ///   - graph: The graph that operations were added to under the key; `nil`: it was submitted.
    func use(of key: String, addedTo graph: GraphID? = nil) -> Use? {
        if let graph { additions[graph]?.byKey[key] } else { uses[key] }
    }

    /// Qualifies a key with its client, so that equal keys of two clients do not collide.
    static func owned(_ key: String, by client: String) -> String { client + "\u{0}" + key }

    /// Keeps the use of these operations' key, if they have one, and forgets the oldest use beyond
    /// `maximum`.
    mutating func keepAddition(of kept: StoredContents, _ hash: ContentHash, maximum: Int) {
        guard !kept.idempotencyKey.isEmpty else { return }
        let graph = kept.graph
        let key = Self.owned(kept.idempotencyKey, by: kept.submitter)
        let use = Use(graph: graph, first: kept.first, hash: hash)
        if additions[graph, default: AdditionUses()].byKey.updateValue(use, forKey: key) == nil {
            additions[graph]?.order.append(key)
        }
        guard let count = additions[graph]?.order.count, count > maximum,
            let oldest = additions[graph]?.order.popFirst()
        else { return }
        additions[graph]?.byKey[oldest] = nil
    }

    mutating func finished(_ graph: GraphID, at time: WallTime) {
        kept[Int(graph.rawValue)].finishedAt = time
    }

    /// Forgets dropped graphs: their names stay taken, their keys may be used again.
    mutating func forget(_ graphs: [GraphID]) {
        for graph in graphs {
            let number = Int(graph.rawValue)
            if let key = kept[number].key, uses[key]?.graph == graph { uses[key] = nil }
            additions[graph] = nil
            kept.drop(number)
        }
    }

    subscript(graph: GraphID) -> Entry {
        let number = Int(graph.rawValue)
        return Entry(
            name: names[Int(nameNumbers[number])],
            submitter: kept[number].submitter,
            submittedAt: kept[number].submittedAt,
            finishedAt: kept[number].finishedAt,
            isOpen: kept[number].isOpen,
            isTombstone: kept.isDropped(number)
        )
    }

    /// Finds a graph by `@latest`, number or name; a name finds its newest graph.
    func find(_ selector: String) -> GraphID? {
        if selector == "@latest" {
            return kept.lastKept.map { GraphID(rawValue: UInt32($0)) }
        }
        if let number = UInt32(selector), Int(number) < count {
            return GraphID(rawValue: number)
        }
        return byName[selector].map { newest[Int($0)] }
    }
}
