import DequeModule
import HeapModule
import OperonModel

// Numbers for queues, kinds, keys and lanes. A name gets a number when a graph or a command uses it
// for the first time. When no graph names it any more and it has no settings of its own, it is
// forgotten and its number is given to the next name. This bounds the tables, because new names
// come for as long as a coordinator runs.

/// Numbers that are free at present.
struct UnusedNames: Sendable {
    var freeQueues: [Int] = []
    var freeKinds: [Int] = []
    var freeKeys: [Int] = []
    /// Kinds that no graph names, the one used longest ago first. Some of them are in use again.
    var kinds = Deque<Int>()
}

extension Scheduler {
    mutating func makeQueue(_ name: String) -> Int {
        let number = names.freeQueues.popLast() ?? queues.count
        queues.set(QueueState(name: name), at: number)
        ready.add(queue: number)
        queueNumbers[name] = number
        for index in workers.indices {
            let named = workers[index].queueSet
            workers[index].servesQueue.set(named.isEmpty || named.contains(name), at: number)
        }
        visitCount += workers.count
        return number
    }

    mutating func kindNumber(_ name: String) -> Int {
        if let number = kindNumbers[name] { return number }
        let number = names.freeKinds.popLast() ?? kinds.count
        let kind = KindState(
            name: name,
            canKillWorker: !Work.reservedKinds.contains(name),
            isExternal: name == Work.externalKind
        )
        kinds.set(kind, at: number)
        kindNumbers[name] = number
        for index in workers.indices {
            let knows = workers[index].runsAnyKind || workers[index].kindSet.contains(name)
            workers[index].knowsKind.set(knows, at: number)
        }
        visitCount += workers.count
        return number
    }

    mutating func keyNumber(_ name: String) -> Int {
        if let number = keyNumbers[name] { return number }
        let number = names.freeKeys.popLast() ?? keys.count
        keys.set(KeyState(name: name), at: number)
        keyNumbers[name] = number
        return number
    }

    /// The numbers of the keys of a graph, or of an addition to it. A group with `inFlight` is a
    /// key that belongs to its graph: the graph gives its limit whenever it is read, so no record
    /// does.
    mutating func keyNumbers(of compiled: CompiledGraph, in graph: GraphID) -> [Int] {
        compiled.keys.enumerated().map { local, name in
            guard let limit = compiled.inFlightLimits[UInt32(local)] else { return keyNumber(name) }
            let group = String(name.dropFirst(KeyState.groupPrefix.count))
            let number = keyNumber("\(KeyState.groupPrefix)\(graph)/\(group)")
            // An addition to a group does not change the limit that it has.
            guard keys[number].group == nil else { return number }
            keys[number].group = KeyState.Group(graph: graph, name: group)
            if configuration.violation != .forgetsKeyLimits { keys[number].limit = limit }
            return number
        }
    }

    /// Notes which of the scheduler's queues and kinds a worker named.
    mutating func learnNames(of worker: Int) {
        let names = Set(workers[worker].queueNames)
        workers[worker].queueSet = names
        let wereSelective = areWorkersSelective
        areWorkersSelective = workers.contains { !$0.queueSet.isEmpty }
        if areWorkersSelective || wereSelective { ready.regroupAll() }
        workers[worker].servesQueue = queues.map { names.isEmpty || names.contains($0.name) }
        let kindNames = Set(workers[worker].kindNames)
        workers[worker].kindSet = kindNames
        let runsAny = workers[worker].runsAnyKind
        workers[worker].knowsKind = kinds.map { runsAny || kindNames.contains($0.name) }
        learnOffer(of: worker)
    }

    /// The number of queues, kinds, keys, lanes and demand classes that are known at present.
    package var nameCount: Int {
        queueNumbers.count + kindNumbers.count + keyNumbers.count + ready.usedCount
            + demands.usedCount
    }

    // MARK: - Use

    /// Counts the names that a graph's rules and keys use.
    mutating func useNames(of graph: GraphState) {
        for rule in graph.rules { use(rule) }
        for key in graph.keys { keys[key].users += 1 }
    }

    mutating func use(_ rule: PolicyRule) {
        queues[rule.queue].users += 1
        kinds[rule.kind].users += 1
        ready.use(rule.lane, estimate: rule.estimate)
        demands.use(rule.demand)
    }

    /// A dropped graph names nothing any more: names that nothing else uses are forgotten.
    mutating func releaseNames(of graph: GraphState) {
        for rule in graph.rules {
            ready.release(rule.lane)
            demands.release(rule.demand)
            queues[rule.queue].users -= 1
            forgetIfUnused(queue: rule.queue)
            kinds[rule.kind].users -= 1
            if kinds[rule.kind].users == 0 { noteUnused(kind: rule.kind) }
        }
        for key in graph.keys {
            keys[key].users -= 1
            forgetIfUnused(key: key)
        }
        visitCount += graph.rules.count + graph.keys.count
    }

    /// Forgets queues that a submission defines, without settings, and that none of its operations
    /// names.
    mutating func forgetUnused(_ settings: [QueueSettings]) {
        for queue in settings {
            if let number = queueNumbers[queue.name] { forgetIfUnused(queue: number) }
        }
    }

    mutating func forgetIfUnused(queue number: Int) {
        guard queues[number].users == 0, !queues[number].isFree, queues[number].hasNoSettings
        else { return }
        queueNumbers[queues[number].name] = nil
        queues[number] = QueueState(name: "", isFree: true)
        names.freeQueues.append(number)
    }

    mutating func forgetIfUnused(key number: Int) {
        guard keys[number].users == 0, !keys[number].isFree, !keys[number].isCommanded,
            keys[number].group != nil
                || keys[number].limit == KeyState(name: "").limit && keys[number].bucket == nil
        else { return }
        keyNumbers[keys[number].name] = nil
        keys[number] = KeyState(name: "", isFree: true)
        names.freeKeys.append(number)
    }

    /// The run time of a kind is useful when the next graph with that kind comes, so the kinds that
    /// were used last are remembered.
    private mutating func noteUnused(kind number: Int) {
        if !kinds[number].isListedUnused {
            kinds[number].isListedUnused = true
            names.kinds.append(number)
        }
        guard names.kinds.count > configuration.unusedKindsMax,
            let oldest = names.kinds.popFirst()
        else { return }
        kinds[oldest].isListedUnused = false
        guard kinds[oldest].users == 0 else { return }
        kindNumbers[kinds[oldest].name] = nil
        kinds[oldest] = KindState(name: "", canKillWorker: false, isExternal: false, isFree: true)
        names.freeKinds.append(oldest)
    }

    // MARK: - Invariants

    func violatedInvariantOfNames() -> String? {
        var users = [Int](repeating: 0, count: queues.count)
        var laneUsers = [Int](repeating: 0, count: ready.indices.count)
        var kindUsers = [Int](repeating: 0, count: kinds.count)
        var keyUsers = [Int](repeating: 0, count: keys.count)
        for id in graphs.kept {
            for rule in graphs[id].rules {
                users[rule.queue] += 1
                laneUsers[rule.lane] += 1
                kindUsers[rule.kind] += 1
            }
            for key in graphs[id].keys { keyUsers[key] += 1 }
        }
        for index in queues.indices where queues[index].users != users[index] {
            return "queue “\(queues[index].name)” counts \(queues[index].users) users of "
                + "\(users[index])"
        }
        guard ready.indices.allSatisfy({ ready[$0].users == laneUsers[$0] }),
            kinds.indices.allSatisfy({ kinds[$0].users == kindUsers[$0] }),
            keys.indices.allSatisfy({ keys[$0].users == keyUsers[$0] })
        else { return "lanes, kinds or keys count other users than they have" }
        let free = queues.indices.filter { queues[$0].isFree }
        guard free == names.freeQueues.sorted(), queueNumbers.count == queues.count - free.count
        else { return "queues \(names.freeQueues) are listed as free, and \(free) are" }
        guard workers.indices.allSatisfy({ workers[$0].servesQueue.count == queues.count }),
            workers.indices.allSatisfy({ workers[$0].knowsKind.count == kinds.count })
        else { return "a worker does not know all queues and kinds" }
        return ready.violatedInvariant()
    }
}

extension QueueState {
    /// Whether it has default settings.
    fileprivate var hasNoSettings: Bool {
        maximum == nil && suspension == nil && priority == .normal && bucket == nil
            && commanded.isEmpty
    }
}
