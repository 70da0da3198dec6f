/// Dependents that operations gained after the tables were built: one list for each operation, in
/// one array for all lists, so that adding an edge costs O(1) and keeping it twelve bytes.
struct AddedDependents: Sendable {
    fileprivate struct Link: Sendable {
        var edge: Edge
        var next: UInt32
    }

    /// The first and last link of each operation's list; empty until the first edge is added.
    private var heads: [UInt32] = []
    private var tails: [UInt32] = []
    private var links: [Link] = []

    fileprivate static let none = UInt32.max

    var isEmpty: Bool { links.isEmpty }

    mutating func append(_ edge: Edge, to operation: UInt32) {
        let missing = Int(operation) + 1 - heads.count
        if missing > 0 {
            heads.append(contentsOf: repeatElement(Self.none, count: missing))
            tails.append(contentsOf: repeatElement(Self.none, count: missing))
        }
        let place = UInt32(links.count)
        links.append(Link(edge: edge, next: Self.none))
        let last = tails[Int(operation)]
        if last == Self.none {
            heads[Int(operation)] = place
        } else {
            links[Int(last)].next = place
        }
        tails[Int(operation)] = place
    }

    /// In the order in which they were added.
    func list(of operation: UInt32) -> List {
        let isListed = Int(operation) < heads.count
        return List(links: links, place: isListed ? heads[Int(operation)] : Self.none)
    }

    mutating func remove(_ dependent: UInt32, of operation: UInt32) {
        guard Int(operation) < heads.count else { return }
        var place = heads[Int(operation)]
        while place != Self.none {
            let link = links[Int(place)]
            if !link.edge.isRemoved, link.edge.operation == dependent {
                links[Int(place)].edge = .removed
                return
            }
            place = link.next
        }
    }

    struct List: Sequence, IteratorProtocol {
        fileprivate let links: [Link]
        fileprivate var place: UInt32

        mutating func next() -> Edge? {
            guard place != AddedDependents.none else { return nil }
            let link = links[Int(place)]
            place = link.next
            return link.edge
        }
    }
}

extension GraphTopology {
    /// Appends operations: O(1) for each edge. As in `init`, but the edges may lead to any
    /// operation of the whole graph, old or new.
    mutating func append(dependencyOffsets offsets: [UInt32], dependencyEdges edges: [Edge]) {
        precondition(!offsets.isEmpty, "offsets end with the number of edges")
        precondition(Int(offsets[offsets.count - 1]) == edges.count, "the last offset is the end")
        let first = operationCount
        operationCount += offsets.count - 1
        precondition(operationCount <= Edge.operationCountMax, "an edge holds 30 bits of index")
        let base = UInt32(dependencyEdges.count)
        dependencyEdges.append(contentsOf: edges)
        for offset in offsets.dropFirst() { dependencyOffsets.append(base + offset) }
        for new in 0..<offsets.count - 1 {
            for position in Int(offsets[new])..<Int(offsets[new + 1]) {
                let edge = edges[position]
                added.append(Edge(UInt32(first + new), edge.condition), to: edge.operation)
            }
        }
    }

    /// The dependents that were added after the tables were built.
    func addedDependents(of operation: UInt32) -> AddedDependents.List {
        added.list(of: operation)
    }

    /// Removes a dependency: O(in-degree + out-degree). Returns whether it existed.
    mutating func remove(_ dependency: UInt32, of operation: UInt32) -> Bool {
        let place = dependencies(of: operation).firstIndex {
            !$0.isRemoved && $0.operation == dependency
        }
        guard let place else { return false }
        dependencyEdges[place] = .removed
        let dependent = dependents(of: dependency).firstIndex {
            !$0.isRemoved && $0.operation == operation
        }
        if let dependent {
            dependentEdges[dependent] = .removed
        } else {
            added.remove(operation, of: dependency)
        }
        return true
    }
}
