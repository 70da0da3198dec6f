import DequeModule
import OperonCore
import OperonModel

/// What is known of submitted graphs beside their operations: who, when, under which key. Owned by
/// the coordinator's service.
///
/// Of a graph that was dropped the name stays, for dependencies that name it: eight bytes, and one
/// copy of each name, however many graphs have it.
struct GraphRegister: Sendable {
    struct Entry: Sendable {
        var name: String
        var submitter: String
        var submittedAt: WallTime
        var finishedAt: WallTime?
        var isOpen = false
        /// Only what its store remembers of it is left.
        var isTombstone = false
    }

    /// What is kept of a graph until it is dropped.
    private struct Kept: Sendable {
        var submitter = ""
        var submittedAt = WallTime(nanosecondsSince1970: 0)
        var finishedAt: WallTime?
        var isOpen = false
        /// The owned key that it was submitted under; `nil`: none.
        var key: String?
    }

    /// What a key was used for.
    struct Use: Sendable {
        let graph: GraphID
        let hash: ContentHash
    }

    /// What a key of an addition was used for.
    struct AdditionUse: Sendable {
        /// The number of the first operation that was added.
        let first: UInt32
        let hash: ContentHash
    }

    /// The keys of the last additions to one graph.
    private struct AdditionUses: Sendable {
        /// Only looked up.
        var byKey: [String: AdditionUse] = [:]
        /// The oldest first.
        var order = Deque<String>()
    }

    private var kept = NumberedTable(absent: Kept())
    /// By the numbers of graphs: the place of the name in `names`.
    private var nameNumbers: [UInt32] = []
    /// Each name once.
    private var names: [String] = []
    /// The newest graph of each name.
    private var newest: [GraphID] = []
    /// The place of a name in `names`. Only looked up.
    private var byName: [String: UInt32] = [:]
    /// Only looked up.
    private var uses: [String: Use] = [:]
    /// Only looked up.
    private var additions: [GraphID: AdditionUses] = [:]

    /// One more than the highest number.
    var count: Int { kept.count }

    /// Those that are kept, the oldest first.
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

    /// A graph that an earlier coordinator dropped.
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

    func use(of key: String) -> Use? { uses[key] }

    /// A client's keys are its own.
    static func owned(_ key: String, by client: String) -> String { client + "\u{0}" + key }

    /// Keeps what the key of these operations was used for, if they have one, and forgets the
    /// oldest use beyond `maximum`.
    mutating func keepAddition(of kept: StoredContents, _ hash: ContentHash, maximum: Int) {
        guard !kept.idempotencyKey.isEmpty else { return }
        let graph = kept.graph
        let key = Self.owned(kept.idempotencyKey, by: kept.submitter)
        let use = AdditionUse(first: kept.first, hash: hash)
        if additions[graph, default: AdditionUses()].byKey.updateValue(use, forKey: key) == nil {
            additions[graph]?.order.append(key)
        }
        guard let count = additions[graph]?.order.count, count > maximum,
            let oldest = additions[graph]?.order.popFirst()
        else { return }
        additions[graph]?.byKey[oldest] = nil
    }

    /// - Parameter key: an owned one.
    func addition(_ key: String, to graph: GraphID) -> AdditionUse? {
        additions[graph]?.byKey[key]
    }

    mutating func finished(_ graph: GraphID, at time: WallTime) {
        kept[Int(graph.rawValue)].finishedAt = time
    }

    /// Only tombstones of them are left: their names stay taken, their keys may be used again.
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

    /// By `@latest`, number or name: the newest of a name.
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
