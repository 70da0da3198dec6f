/// An amount of a resource that a worker offers, or that an operation takes while it runs.
public struct ResourceAmount: Hashable, Sendable, Codable {
    /// `cpus`, `memory`, `gpus`, or any other name: 1…64 letters, digits, `.`, `_`, `-` and `/`.
    public var name: String
    /// Processors in thousandths, memory in bytes, everything else in whole units. 1…2⁵⁰.
    public var amount: Int

    /// Creates an amount in the base unit of the resource.
    public init(name: String, amount: Int) {
        self.name = name
        self.amount = amount
    }

    /// Processors. Fractions of a thousandth are rounded up. A number that is too large becomes one
    /// that is refused as too large, and what is no number becomes 0.
    public static func cpus(_ count: Double) -> ResourceAmount {
        let thousandths = (count * 1_000).rounded(.up)
        if thousandths > Double(amountMax) {
            return ResourceAmount(name: cpusName, amount: amountMax + 1)
        }
        return ResourceAmount(name: cpusName, amount: Int(exactly: thousandths) ?? 0)
    }

    /// Memory, in bytes.
    public static func memory(bytes: Int) -> ResourceAmount {
        ResourceAmount(name: memoryName, amount: bytes)
    }

    /// Whole graphics processors.
    public static func gpus(_ count: Int) -> ResourceAmount {
        ResourceAmount(name: gpusName, amount: count)
    }

    /// The name of the processors.
    public static let cpusName = "cpus"
    /// The name of the memory.
    public static let memoryName = "memory"
    /// The name of the graphics processors.
    public static let gpusName = "gpus"

    /// 2⁵⁰: a pebibyte. The sum for every attempt that a worker can have (`Limits.slots` and
    /// `Limits.yieldedOperations`) fits into 64 bits.
    package static let amountMax = 1 << 50
    /// The most graphics processors that a worker offers, each of which it keeps by its name. A
    /// larger number is considered a typing error.
    package static let gpusMax = 4_096
    /// The thousandths of one processor.
    package static let cpuUnit = 1_000
}

/// Amounts of resources by name, each name once.
public struct ResourceAmounts: Hashable, Sendable, Codable, ExpressibleByArrayLiteral {
    /// Sorted by name.
    public private(set) var all: [ResourceAmount] = []

    /// Of two amounts of one resource the last counts.
    public init(_ amounts: some Sequence<ResourceAmount>) {
        for amount in amounts { self[amount.name] = amount.amount }
    }

    /// Decodes amounts in any order. Of two amounts of one resource the last counts.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.init(try values.decode([ResourceAmount].self, forKey: .all))
    }

    /// Creates amounts from a list: `[.cpus(2), .memory(bytes: 1 << 30)]`.
    public init(arrayLiteral amounts: ResourceAmount...) { self.init(amounts) }

    /// Whether it names no resource.
    public var isEmpty: Bool { all.isEmpty }

    /// The resources that a control group can enforce.
    package static let enforceable = [ResourceAmount.cpusName, ResourceAmount.memoryName]

    /// Whether it names one of them.
    package var hasEnforceable: Bool { Self.enforceable.contains { self[$0] != nil } }

    /// The amount of a resource in its base unit; `nil`: it is not named.
    public subscript(name: String) -> Int? {
        get { all.first { $0.name == name }?.amount }
        set {
            let place = all.firstIndex { $0.name >= name } ?? all.count
            let isThere = place < all.count && all[place].name == name
            switch (newValue, isThere) {
            case (let amount?, true): all[place].amount = amount
            case (let amount?, false):
                all.insert(ResourceAmount(name: name, amount: amount), at: place)
            case (nil, true): all.remove(at: place)
            case (nil, false): break
            }
        }
    }

    /// Checks names and amounts.
    ///
    /// - Throws: `invalid`, or `limitExceeded`.
    package func check(_ limits: Limits, of field: @autoclosure () -> String) throws(Refusal) {
        guard !all.isEmpty else { return }
        try LimitName.resources.check(all.count, limits.resources)
        for one in all {
            guard ResourceText.isName(one.name) else {
                let why = "\(one.name.debugDescription) \(ResourceText.nameHint)"
                throw .invalid(field: field(), why: why)
            }
            guard one.amount >= 1 else {
                let least = ResourceText.text(1, of: one.name)
                throw .invalid(field: field(), why: "\(one.name) is below \(least)")
            }
            guard one.amount <= ResourceAmount.amountMax else {
                let most = ResourceText.text(ResourceAmount.amountMax, of: one.name)
                throw .invalid(field: field(), why: "\(one.name) is over \(most)")
            }
        }
    }
}

/// A property of a worker that operations can ask for, such as `region` with the value `eu`.
public struct WorkerLabel: Hashable, Sendable, Codable {
    /// 1…64 letters, digits, `.`, `_`, `-` and `/`.
    public var name: String
    /// 1…256 bytes without control characters.
    public var value: String

    /// Creates a label.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// A condition on a label of the worker that is to run an operation.
public struct WorkerRequirement: Hashable, Sendable, Codable {
    /// What the label must be.
    public enum Condition: Hashable, Sendable, Codable {
        /// The worker has the label, with one of these values.
        case oneOf([String])
        /// The worker does not have the label, or with none of these values.
        case noneOf([String])
        /// Whether the worker has the label, with any value.
        case exists(Bool)
    }

    /// The name of the label.
    public var label: String
    /// What the label must be.
    public var condition: Condition

    /// Creates a requirement.
    public init(_ label: String, _ condition: Condition) {
        self.label = label
        self.condition = condition
    }

    /// The label has this value.
    public static func equals(_ label: String, _ value: String) -> WorkerRequirement {
        WorkerRequirement(label, .oneOf([value]))
    }

    /// - Parameter labels: those of a worker, sorted by name.
    package func isMet(by labels: [WorkerLabel]) -> Bool {
        let value = labels.first { $0.name == label }?.value
        return switch condition {
        case .oneOf(let values): value.map(values.contains) ?? false
        case .noneOf(let values): value.map { !values.contains($0) } ?? true
        case .exists(let exists): exists == (value != nil)
        }
    }

    fileprivate var values: [String] {
        switch condition {
        case .oneOf(let values), .noneOf(let values): values
        case .exists: []
        }
    }

    package static func check(
        _ requirements: [WorkerRequirement],
        _ limits: Limits,
        of field: @autoclosure () -> String
    ) throws(Refusal) {
        guard !requirements.isEmpty else { return }
        try LimitName.labels.check(requirements.count, limits.labels)
        var names: Set<String> = []
        for requirement in requirements {
            let label = requirement.label
            guard ResourceText.isName(label) else {
                let why = "\(label.debugDescription) \(ResourceText.nameHint)"
                throw .invalid(field: field(), why: why)
            }
            guard names.insert(label).inserted else {
                throw .invalid(field: field(), why: "label “\(label)” is named twice")
            }
            try LimitName.labelValues.check(requirement.values.count, limits.labelValues)
            if case .exists = requirement.condition { continue }
            guard !requirement.values.isEmpty else {
                throw .invalid(field: field(), why: "label “\(label)” has no value")
            }
            for value in requirement.values {
                try limits.check(name: value, of: "value of label “\(label)”")
            }
        }
    }
}

/// What an operation needs of its worker besides a slot, its queue and its kind.
package struct ResourceDemand: Hashable, Sendable {
    package var resources: ResourceAmounts
    /// Sorted by label, so that the same requirements are equal.
    package var requirements: [WorkerRequirement]
    /// Whether the worker must hold the operation to its processors and its memory.
    package var isEnforced: Bool
    /// Whether the worker must know secrets, to which variables of the operation refer.
    package var needsSecrets: Bool

    package init(
        resources: ResourceAmounts = [],
        requirements: [WorkerRequirement] = [],
        isEnforced: Bool = false,
        needsSecrets: Bool = false
    ) {
        self.needsSecrets = needsSecrets
        self.resources = resources
        self.requirements = requirements.sorted { $0.label < $1.label }
        self.isEnforced = isEnforced
    }

    package init(_ operation: OperationDescription) {
        self.init(
            resources: operation.resources,
            requirements: operation.workers,
            isEnforced: operation.enforcesResources,
            needsSecrets: operation.work.needsSecrets
        )
    }

    package var isEmpty: Bool {
        resources.isEmpty && requirements.isEmpty && !isEnforced && !needsSecrets
    }

    /// Whether all names, amounts and values are within their bounds.
    package func isValid(_ limits: Limits) -> Bool {
        do throws(Refusal) {
            try resources.check(limits, of: "")
            try WorkerRequirement.check(requirements, limits, of: "")
            return true
        } catch {
            return false
        }
    }

    /// What a worker with this offer lacks, as clauses: `gpus: 2 needed, 1 offered`. Empty: the
    /// worker could run it.
    package func unmet(by offer: WorkerOffer) -> [String] {
        var clauses = resources.all.compactMap { need -> String? in
            let offered = offer.resources[need.name] ?? 0
            guard offered < need.amount else { return nil }
            let needed = ResourceText.text(need.amount, of: need.name)
            let there = offered == 0 ? "none" : ResourceText.text(offered, of: need.name)
            return "\(need.name): \(needed) needed, \(there) offered"
        }
        for requirement in requirements where !requirement.isMet(by: offer.labels) {
            let value = offer.labels.first { $0.name == requirement.label }?.value
            let has = value.map { "it is “\($0)”" } ?? "there is no such label"
            clauses.append("label \(requirement.text), and \(has)")
        }
        if isEnforced, !offer.enforces {
            clauses.append("enforce needs a worker that was started with --control-group")
        }
        if needsSecrets, !offer.secrets { clauses.append(Self.secretsClause) }
        return clauses
    }

    private static let secretsClause =
        "a secret needs a worker that was started with --secrets, --secrets-program or credentials "
        + "of systemd"

    package func isMet(by offer: WorkerOffer) -> Bool {
        resources.all.allSatisfy { (offer.resources[$0.name] ?? 0) >= $0.amount }
            && requirements.allSatisfy { $0.isMet(by: offer.labels) }
            && (!isEnforced || offer.enforces)
            && (!needsSecrets || offer.secrets)
    }
}

/// What a worker offers besides slots.
package struct WorkerOffer: Hashable, Sendable {
    package var resources: ResourceAmounts
    /// Sorted by name, each name once.
    package var labels: [WorkerLabel]
    /// Whether it holds operations to their processors and their memory if they ask for that.
    package var enforces: Bool
    /// Whether it watches sources of triggers.
    package var watches = false
    /// Whether it knows secrets, to which variables of commands refer.
    package var secrets = false

    package init(
        resources: ResourceAmounts = [],
        labels: [WorkerLabel] = [],
        enforces: Bool = false
    ) {
        self.resources = resources
        self.labels = labels
        self.enforces = enforces
    }

    /// Sets a label, instead of an earlier one of the same name.
    package mutating func set(_ label: WorkerLabel) {
        labels.removeAll { $0.name == label.name }
        let place = labels.firstIndex { $0.name > label.name } ?? labels.count
        labels.insert(label, at: place)
    }

    package func check(_ limits: Limits) throws(Refusal) {
        let field = "resources of the worker"
        try resources.check(limits, of: field)
        guard resources[ResourceAmount.gpusName] ?? 0 <= ResourceAmount.gpusMax else {
            let why = "\(ResourceAmount.gpusName) is over \(ResourceAmount.gpusMax)"
            throw .invalid(field: field, why: why)
        }
        try LimitName.labels.check(labels.count, limits.labels)
        for label in labels {
            guard ResourceText.isName(label.name) else {
                let why = "\(label.name.debugDescription) \(ResourceText.nameHint)"
                throw .invalid(field: "label of the worker", why: why)
            }
            try limits.check(name: label.value, of: "value of label “\(label.name)”")
        }
        for (left, right) in zip(labels, labels.dropFirst()) where left.name >= right.name {
            let why = "“\(right.name)” is there twice, or out of order"
            throw .invalid(field: "label of the worker", why: why)
        }
    }
}
