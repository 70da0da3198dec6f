package import OperonModel

// Operations that no worker known now could ever run: because of their kind, their queue, or what
// they ask for.
extension Scheduler {
    /// Whether any live worker takes operations.
    package var hasWorkers: Bool { workers.contains { $0.takesWork } }

    /// What no live worker has that an operation needs.
    package enum Missing: Hashable, Sendable {
        /// No live worker knows the kind.
        case kind(String)
        /// No live worker that knows the kind serves the queue.
        case queue(String)
        /// No live worker that serves the queue and knows the kind offers enough of all resources
        /// and has the labels.
        case demand(ResourceDemand)
    }

    /// Why no live worker could ever run operations of this queue, kind and demand class; `nil`:
    /// one could. What is taken, suspended or out of reach does not count. O(workers).
    func missingWorker(queue: Int, kind: Int, demand: Int) -> Missing? {
        var knowsKind = false
        var serves = false
        for worker in workers where worker.takesWork && worker.knowsKind[kind] {
            knowsKind = true
            guard worker.servesQueue[queue] else { continue }
            if worker.meets[demand] { return nil }
            serves = true
        }
        guard knowsKind else { return .kind(kinds[kind].name) }
        guard serves else { return .queue(queues[queue].name) }
        return .demand(demands[demand].demand)
    }

    /// Unfinished operations of one graph that no live worker could ever run, all for one reason.
    package struct Unrunnable: Hashable, Sendable {
        package let missing: Missing
        /// The first few.
        package internal(set) var operations: [OperationID] = []
        /// How many there are besides.
        package internal(set) var more = 0
    }

    /// The operations that one value of `Unrunnable` names.
    package static var unrunnableNamedMax: Int { 3 }

    /// The operations of a graph, from `first` on, that no live worker could ever run, by reason,
    /// in the order in which the graph names what they ask for. Workers are asked for each lane of
    /// the graph: O(policies + lanes × workers). Operations are looked at only if a worker is
    /// missing.
    package func unrunnable(in id: GraphID, from first: UInt32 = 0) -> [Unrunnable] {
        guard exists(id), !graphs[id].isGone, graphs[id].unfinished > 0 else { return [] }
        let graph = graphs[id]
        var found: [Unrunnable] = []
        var places: [Missing: Int] = [:]
        var placeOfLane: [Int: Int?] = [:]
        let placeOfRule = graph.rules.map { rule -> Int? in
            if rule.isExternal { return nil }
            if let known = placeOfLane[rule.lane] { return known }
            let missing = missingWorker(queue: rule.queue, kind: rule.kind, demand: rule.demand)
            let place = missing.map { places[$0] ?? found.count }
            if let missing, place == found.count {
                places[missing] = found.count
                found.append(Unrunnable(missing: missing))
            }
            placeOfLane[rule.lane] = .some(place)
            return place
        }
        guard !found.isEmpty else { return [] }
        for index in min(first, graph.operations.count)..<graph.operations.count {
            guard let place = placeOfRule[Int(graph.compiled.policy[Int(index)])],
                graph.operations.state[index] != .finished
            else { continue }
            if found[place].operations.count < Self.unrunnableNamedMax {
                found[place].operations.append(OperationID(graph: id, index: index))
            } else {
                found[place].more += 1
            }
        }
        return found.filter { !$0.operations.isEmpty }
    }
}

extension Scheduler.Reason {
    package init(_ missing: Scheduler.Missing) {
        switch missing {
        case .kind(let kind): self = .noWorkerForKind(kind)
        case .queue(let queue): self = .noWorkerForQueue(queue)
        case .demand(let demand): self = .noWorkerForDemand(demand)
        }
    }
}
