import HeapModule
import OperonModel

// Keys: taking and freeing them, and the operations that wait for them.
extension Scheduler {
    /// The first key of the operation that has no room, or no token.
    func heldKey(of operation: OperationID) -> Int? {
        guard graphs.rule(of: operation).hasKeys else { return nil }
        for local in graphs.policy(of: operation).keys {
            let key = graphs[operation.graph].keys[Int(local)]
            if !isFree(key), configuration.violation != .ignoresKeyLimits { return key }
        }
        return nil
    }

    /// Whether the key can be taken now.
    func isFree(_ key: Int) -> Bool {
        keys[key].hasRoom && keys[key].bucket?.nextStart(at: lastEventAt) == nil
    }

    mutating func takeKeys(of operation: OperationID) {
        for local in graphs.policy(of: operation).keys {
            keys[graphs[operation.graph].keys[Int(local)]].holders.append(operation)
        }
        // For each key that has room for more, the next operation of the same lane goes back there.
        passKeysOn(of: operation)
    }

    mutating func freeKeys(of operation: OperationID) {
        for local in graphs.policy(of: operation).keys {
            freeKey(graphs[operation.graph].keys[Int(local)], of: operation)
        }
    }

    mutating func park(_ entry: ReadyEntry, of lane: Int, at key: Int) {
        if let place = keys[key].parked.firstIndex(where: { $0.lane == lane }) {
            keys[key].parked[place].heap.insert(entry)
        } else {
            var parked = ParkedLane(lane: lane)
            parked.heap.insert(entry)
            keys[key].parked.append(parked)
        }
        armRate(ofKey: key)
    }

    /// The most urgent parked operation of each lane competes again. One alone would not be enough:
    /// it may belong to a suspended queue, and the key must not wait for it.
    private mutating func freeKey(_ key: Int, of operation: OperationID) {
        keys[key].holders.removeAll { $0 == operation }
        offer(key)
    }

    mutating func offer(_ key: Int) {
        guard isFree(key) else { return armRate(ofKey: key) }
        for place in keys[key].parked.indices { unpark(place, of: key) }
        keys[key].parked.removeAll { $0.heap.isEmpty }
    }

    private mutating func unpark(_ place: Int, of key: Int) {
        while let entry = keys[key].parked[place].heap.popMax() {
            let operation = entry.operation
            guard exists(operation), graphs[state: operation] == .ready,
                graphs[flags: operation].contains(.parked),
                entry.urgency == graphs.urgency(of: operation)
            else { continue }
            enqueue(operation)
            return
        }
    }

    /// An operation left its lane without taking its keys, or left room for others. It may have
    /// been the one in the lane that competed for the lane's other operations, parked at a key that
    /// has room. The next one of them takes over.
    mutating func passKeysOn(of operation: OperationID) {
        let rule = graphs.rule(of: operation)
        guard rule.hasKeys else { return }
        for local in graphs.policy(of: operation).keys {
            let key = graphs[operation.graph].keys[Int(local)]
            guard isFree(key),
                let place = keys[key].parked.firstIndex(where: { $0.lane == rule.lane })
            else { continue }
            unpark(place, of: key)
            if keys[key].parked[place].heap.isEmpty { keys[key].parked.remove(at: place) }
        }
    }
}

/// A key: a name that only a limited number of operations in flight may hold.
struct KeyState: Sendable {
    let name: String
    var limit = 1
    /// How often operations that hold it may start; `nil`: any number may.
    var bucket: StartBucket?

    /// Begins the names of keys that stand for groups.
    static let groupPrefix = "\u{1}"

    struct Group: Hashable, Sendable {
        let graph: GraphID
        let name: String
    }

    /// A command set the limit and the rate, so those in later graphs are ignored.
    var isCommanded = false
    /// How many graphs name it.
    var users = 0
    var isFree = false
    /// It is not a key of users: it stands for a group with `inFlight`.
    var group: Group?
    /// The operations that hold the key, in the order in which they took it.
    var holders: [OperationID] = []

    var hasRoom: Bool { holders.count < limit }
    /// Ready operations that reached the front of their lane while the key had no room, by lane.
    /// When the key has room, one operation of each lane returns to its lane. The lanes then
    /// compete as if all their operations had returned, and a release takes as many steps as there
    /// are lanes, however many operations wait.
    var parked: [ParkedLane] = []
}

/// The operations of one lane that wait for a key.
struct ParkedLane: Sendable {
    let lane: Int
    /// Entries of operations that no longer wait stay here until they reach the front.
    var heap = Heap<ReadyEntry>()
}
