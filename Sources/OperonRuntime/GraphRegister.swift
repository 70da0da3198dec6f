import DequeModule
import OperonModel

/// What is known of submitted graphs beside their operations: who, when, under which key. Owned by
/// the coordinator's service.
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

    private(set) var entries: [Entry] = []
    /// Newest graph of each name. Only looked up.
    private var byName: [String: GraphID] = [:]
    /// Only looked up.
    private var uses: [String: Use] = [:]
    /// Only looked up.
    private var additions: [GraphID: AdditionUses] = [:]

    mutating func append(_ entry: Entry) {
        byName[entry.name] = GraphID(rawValue: UInt32(entries.count))
        entries.append(entry)
    }

    mutating func keepUse(of key: String, _ use: Use) { uses[key] = use }

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
        entries[Int(graph.rawValue)].finishedAt = time
    }

    /// Only tombstones of them are left: their names stay taken, their keys may be used again.
    mutating func forget(_ graphs: [GraphID]) {
        for graph in graphs {
            var entry = Entry(
                name: self[graph].name,
                submitter: "",
                submittedAt: WallTime(nanosecondsSince1970: 0)
            )
            entry.isTombstone = true
            self[graph] = entry
            additions[graph] = nil
        }
        let gone = Set(graphs)
        uses = uses.filter { !gone.contains($0.value.graph) }
    }

    subscript(graph: GraphID) -> Entry {
        get { entries[Int(graph.rawValue)] }
        set { entries[Int(graph.rawValue)] = newValue }
    }

    /// By `@latest`, number or name: the newest of a name.
    func find(_ selector: String) -> GraphID? {
        if selector == "@latest" {
            return entries.lastIndex { !$0.isTombstone }.map { GraphID(rawValue: UInt32($0)) }
        }
        if let number = UInt32(selector), Int(number) < entries.count {
            return GraphID(rawValue: number)
        }
        return byName[selector]
    }
}
