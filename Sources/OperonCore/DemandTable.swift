import OperonModel

/// Operations that need the same of their worker, besides its queue and its kind.
struct DemandClass: Sendable {
    /// How much of one resource an attempt takes.
    struct Need: Hashable, Sendable {
        /// The scheduler's number of the resource.
        let resource: Int
        /// 1…2⁵⁰.
        let amount: Int
    }

    let demand: ResourceDemand
    let needs: [Need]
    /// How many policy rules of graphs name it.
    var users = 0
    var isFree = false

    /// It takes nothing but a slot.
    var isBare: Bool { needs.isEmpty }

    /// The first class: nothing but a slot, on any worker.
    static let none = DemandClass(demand: ResourceDemand(), needs: [])
}

/// Numbers for demand classes and for the resources that they name. A class without users, and a
/// resource without classes, is forgotten, and its number is given to the next one.
struct DemandTable: Sendable {
    struct Resource: Sendable {
        let name: String
        /// How many classes name it.
        var users = 0
    }

    private(set) var classes = [DemandClass.none]
    private(set) var resources: [Resource] = []
    private var numbers: [ResourceDemand: Int] = [:]
    private var resourceNumbers: [String: Int] = [:]
    private var freeClasses: [Int] = []
    private var freeResources: [Int] = []

    subscript(number: Int) -> DemandClass {
        @inline(__always) _read { yield classes[number] }
    }

    /// The classes that are known, without the first.
    var usedCount: Int { numbers.count }

    func resource(_ name: String) -> Int? { resourceNumbers[name] }

    func number(of demand: ResourceDemand) -> Int? {
        demand.isEmpty ? 0 : numbers[demand]
    }

    /// Adds a class that is not known.
    ///
    /// - Returns: Its number, and those of the resources that were not known.
    mutating func add(_ demand: ResourceDemand) -> (number: Int, new: [Int]) {
        var new: [Int] = []
        let needs = demand.resources.all.map { need in
            DemandClass.Need(resource: use(need.name, &new), amount: need.amount)
        }
        let number = freeClasses.popLast() ?? classes.count
        classes.set(DemandClass(demand: demand, needs: needs), at: number)
        numbers[demand] = number
        return (number, new)
    }

    private mutating func use(_ name: String, _ new: inout [Int]) -> Int {
        if let known = resourceNumbers[name] {
            resources[known].users += 1
            return known
        }
        let number = freeResources.popLast() ?? resources.count
        resources.set(Resource(name: name, users: 1), at: number)
        resourceNumbers[name] = number
        new.append(number)
        return number
    }

    mutating func use(_ number: Int) { classes[number].users += 1 }

    /// A rule that named the class is gone.
    mutating func release(_ number: Int) {
        classes[number].users -= 1
        guard number > 0, classes[number].users == 0 else { return }
        for need in classes[number].needs {
            resources[need.resource].users -= 1
            guard resources[need.resource].users == 0 else { continue }
            resourceNumbers[resources[need.resource].name] = nil
            resources[need.resource] = Resource(name: "")
            freeResources.append(need.resource)
        }
        numbers[classes[number].demand] = nil
        classes[number] = DemandClass(demand: ResourceDemand(), needs: [], isFree: true)
        freeClasses.append(number)
    }

    func violatedInvariant(users: [Int]) -> String? {
        guard classes.indices.allSatisfy({ classes[$0].users == users[$0] }) else {
            return "demand classes count \(classes.map(\.users)) users of \(users)"
        }
        let free = classes.indices.filter { classes[$0].isFree }
        guard free == freeClasses.sorted(), numbers.count == classes.count - free.count - 1 else {
            return "demand classes \(freeClasses) are listed as free, and \(free) are"
        }
        var named = [Int](repeating: 0, count: resources.count)
        for number in classes.indices {
            for need in classes[number].needs { named[need.resource] += 1 }
        }
        guard resources.indices.allSatisfy({ resources[$0].users == named[$0] }) else {
            return "resources count \(resources.map(\.users)) classes of \(named)"
        }
        return nil
    }
}
