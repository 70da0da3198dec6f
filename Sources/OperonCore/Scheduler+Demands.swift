package import OperonModel

// Demand classes, and what workers offer to them.
extension Scheduler {
    /// The number of a demand class, a new one if necessary.
    mutating func demandNumber(_ demand: ResourceDemand) -> Int {
        if let number = demands.number(of: demand) { return number }
        let (number, new) = demands.add(demand)
        for index in workers.indices {
            for resource in new {
                let name = demands.resources[resource].name
                let offered = workers[index].offer.resources[name] ?? 0
                workers[index].room.set(offered: offered, of: resource)
            }
            workers[index].meets.set(demand.isMet(by: workers[index].offer), at: number)
        }
        visitCount += workers.count
        return number
    }

    /// Notes what a worker offers to the demand classes that there are.
    mutating func learnOffer(of worker: Int) {
        let offer = workers[worker].offer
        for (number, resource) in demands.resources.enumerated() {
            workers[worker].room.offer(offer.resources[resource.name] ?? 0, of: number)
        }
        workers[worker].mayBeOver = workers[worker].room.isOver
        workers[worker].meets = demands.classes.map { !$0.isFree && $0.demand.isMet(by: offer) }
    }

    /// What an operation of a graph that is kept asks for besides a slot.
    package func resources(of operation: OperationID) -> ResourceAmounts {
        demandClass(of: operation).demand.resources
    }

    func demandClass(of operation: OperationID) -> DemandClass {
        demands[graphs.rule(of: operation).demand]
    }

    /// What a worker has left of each resource that it offers, in the order of their names.
    func resourcesLeft(of worker: Int) -> ResourceAmounts {
        ResourceAmounts(
            workers[worker].offer.resources.all.map { offered in
                guard let number = demands.resource(offered.name) else { return offered }
                let left = workers[worker].room.left(of: number)
                return ResourceAmount(name: offered.name, amount: max(0, left))
            }
        )
    }

    // MARK: - What clients can see

    /// The demand classes that graphs name, and first the one that asks for nothing, with what is
    /// ready and in flight in each. Operations that need no worker are left out. O(lanes + attempts
    /// in flight).
    package var demandStatus: [DemandStatus] {
        let status = statusOfDemandClasses
        return demands.classes.indices.filter { !demands.classes[$0].isFree }.map { status[$0] }
    }

    /// The demand classes with an operation that is ready or in flight, and what is missing for
    /// those that no live worker could ever run. O(lanes × workers + attempts in flight).
    package var waitingDemands: [DemandStatus] {
        var status = statusOfDemandClasses
        var most = [Int](repeating: 0, count: status.count)
        let hasWorkers = self.hasWorkers
        for number in ready.indices where !ready[number].isExternal && ready[number].count > 0 {
            let lane = ready[number]
            guard
                let missing = missingWorker(
                    queue: lane.queue,
                    kind: lane.kind,
                    demand: lane.demand
                )
            else { continue }
            status[lane.demand].unrunnable += lane.count
            guard hasWorkers, lane.count > most[lane.demand] else { continue }
            most[lane.demand] = lane.count
            status[lane.demand].missing = missing
            status[lane.demand].lane = number
        }
        return status.filter { $0.ready + $0.inFlight > 0 }
    }

    /// What the live workers offer that serve the queue and know the kind of the operations for
    /// which something is missing.
    package func serving(_ status: DemandStatus) -> [WorkerOffer] {
        guard let number = status.lane else { return [] }
        return serving(queue: ready[number].queue, kind: ready[number].kind)
    }

    /// By the number of the class; those of free numbers are empty.
    private var statusOfDemandClasses: [DemandStatus] {
        var status = demands.classes.map { DemandStatus(demand: $0.demand) }
        for lane in ready.indices where !ready[lane].isExternal {
            status[ready[lane].demand].ready += ready[lane].count
        }
        for attempt in attempts.all where !attempt.isYielded {
            status[graphs.rule(of: attempt.operation).demand].inFlight += 1
        }
        return status
    }

    package struct DemandStatus: Hashable, Sendable {
        package let demand: ResourceDemand
        package var ready = 0
        /// Dispatched or executing, with a slot.
        package var inFlight = 0
        /// How many of the ready ones no live worker could ever run; only in `waitingDemands`.
        package var unrunnable = 0
        /// What is missing for most of these; `nil`: nothing, or there is no worker at all.
        package var missing: Missing?
        /// The lane of those.
        fileprivate var lane: Int?
    }

    /// What the workers that take operations offer in all, and what is left of it, by the names of
    /// the resources. O(workers).
    package var resourceStatus: [ResourceStatus] {
        var places: [String: Int] = [:]
        var all: [ResourceStatus] = []
        for index in workers.indices where workers[index].takesWork {
            let left = resourcesLeft(of: index)
            for offered in workers[index].offer.resources.all {
                let place = places[offered.name] ?? all.count
                if place == all.count {
                    places[offered.name] = place
                    all.append(ResourceStatus(name: offered.name))
                }
                all[place].workers += 1
                all[place].offered += Double(offered.amount)
                all[place].left += Double(left[offered.name] ?? 0)
            }
        }
        return all.sorted { $0.name < $1.name }
    }

    /// In the base unit of the resource. Floating point, because the sum over all workers may not
    /// fit into an integer.
    package struct ResourceStatus: Hashable, Sendable {
        package let name: String
        /// How many workers offer it.
        package var workers = 0
        package var offered = 0.0
        package var left = 0.0

        package init(name: String, workers: Int = 0, offered: Double = 0, left: Double = 0) {
            self.name = name
            self.workers = workers
            self.offered = offered
            self.left = left
        }
    }

    // MARK: - Invariants

    func violatedInvariantOfDemands() -> String? {
        var users = [Int](repeating: 0, count: demands.classes.count)
        for id in graphs.kept { for rule in graphs[id].rules { users[rule.demand] += 1 } }
        if let broken = demands.violatedInvariant(users: users) { return broken }
        // Workers are read in place: a copy counts references to all that one holds.
        for index in workers.indices {
            guard workers[index].meets.count == demands.classes.count else {
                return "worker \(index) does not know all demand classes"
            }
            for number in demands.classes.indices where !demands.classes[number].isFree {
                let isMet = demands.classes[number].demand.isMet(by: workers[index].offer)
                guard workers[index].meets[number] == isMet else {
                    return "worker \(index) is wrong about demand class \(number)"
                }
            }
            var taken = [Int](repeating: 0, count: demands.resources.count)
            for (_, attempt) in attempts.owned(by: index) where !attempt.isYielded {
                for need in demandClass(of: attempt.operation).needs {
                    taken[need.resource] += need.amount
                }
            }
            for number in demands.resources.indices where demands.resources[number].users > 0 {
                let name = demands.resources[number].name
                let offered = workers[index].offer.resources[name] ?? 0
                let used = taken[number]
                let left = workers[index].room.left(of: number)
                guard left == offered - used else {
                    return "worker \(index) counts \(left) left of "
                        + "\(name), and has \(offered - used)"
                }
                guard used <= offered || !workers[index].isAlive || workers[index].mayBeOver else {
                    return "worker \(index) has \(used) of \(offered) \(name) taken"
                }
            }
        }
        return violatedInvariantOfReservations()
    }
}
