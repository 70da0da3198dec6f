import OperonModel

/// The parts of compiled graphs that many graphs have in common: graphs with equal parts share
/// their memory. Clients that submit many small graphs submit the same graph, with other values.
struct SharedParts: Sendable {
    private var queues = SharedValues<[QueueSettings]>()
    private var kinds = SharedValues<[String]>()
    private var demands = SharedValues<[ResourceDemand]>()
    private var policies = SharedValues<[OperationPolicy]>()
    private var rules = SharedValues<[PolicyRule]>()

    /// Longer parts are those of large graphs, for which sharing saves little and hashing costs
    /// more.
    private static let countMax = 16

    /// Replaces parts of a graph by equal ones of earlier graphs.
    mutating func share(_ compiled: inout CompiledGraph, _ rules: inout [PolicyRule]) {
        guard compiled.policies.count <= Self.countMax, compiled.queues.count <= Self.countMax,
            compiled.kinds.count <= Self.countMax, compiled.demands.count <= Self.countMax
        else { return }
        compiled.queues = queues.shared(compiled.queues)
        compiled.kinds = kinds.shared(compiled.kinds)
        compiled.demands = demands.shared(compiled.demands)
        compiled.policies = policies.shared(compiled.policies)
        rules = self.rules.shared(rules)
    }
}

/// The values that were seen last, each once.
private struct SharedValues<Value: Hashable & Sendable>: Sendable {
    /// Only looked up.
    private var values: Set<Value> = []

    /// With more, all are forgotten, and those that come from then on are shared.
    private static var countMax: Int { 64 }

    mutating func shared(_ value: Value) -> Value {
        if let known = values.firstIndex(of: value) { return values[known] }
        if values.count == Self.countMax { values.removeAll(keepingCapacity: true) }
        values.insert(value)
        return value
    }
}
