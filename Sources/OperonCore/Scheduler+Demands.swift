import OperonModel

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

    // MARK: - Invariants

    func violatedInvariantOfDemands() -> String? {
        var users = [Int](repeating: 0, count: demands.classes.count)
        for id in graphs.kept { for rule in graphs[id].rules { users[rule.demand] += 1 } }
        if let broken = demands.violatedInvariant(users: users) { return broken }
        for index in workers.indices {
            let worker = workers[index]
            guard worker.meets.count == demands.classes.count else {
                return "worker \(index) does not know all demand classes"
            }
            for (number, one) in demands.classes.enumerated() where !one.isFree {
                guard worker.meets[number] == one.demand.isMet(by: worker.offer) else {
                    return "worker \(index) is wrong about demand class \(number)"
                }
            }
            for (number, resource) in demands.resources.enumerated() where resource.users > 0 {
                let offered = worker.offer.resources[resource.name] ?? 0
                let used = attempts.owned(by: index).reduce(0) { sum, owned in
                    guard !owned.attempt.isYielded else { return sum }
                    let needs = demandClass(of: owned.attempt.operation).needs
                    return sum + needs.filter { $0.resource == number }.reduce(0) { $0 + $1.amount }
                }
                guard worker.room.left(of: number) == offered - used else {
                    return "worker \(index) counts \(worker.room.left(of: number)) left of "
                        + "\(resource.name), and has \(offered - used)"
                }
                guard used <= offered || !worker.isAlive || worker.mayBeOver else {
                    return "worker \(index) has \(used) of \(offered) \(resource.name) taken"
                }
            }
        }
        return nil
    }
}
