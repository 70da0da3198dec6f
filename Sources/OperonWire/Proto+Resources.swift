import OperonModel

// Resources and requirements: conversion to the generated types, and back with every field checked.

extension ProtoResourceAmount {
    init(_ one: ResourceAmount) {
        self.init()
        name = one.name
        amount = UInt64(clamping: one.amount)
    }
}

extension ResourceAmounts {
    /// Names that are sorted, and amounts within their bounds.
    init(
        _ protos: [ProtoResourceAmount],
        _ field: String,
        _ limits: Limits
    ) throws(WireError) {
        guard !protos.isEmpty else {
            self.init()
            return
        }
        guard protos.count <= limits.resources else {
            let why = "lists \(protos.count) of at most \(limits.resources) (resources)"
            throw .invalid(field, why)
        }
        for (left, right) in zip(protos, protos.dropFirst()) where left.name >= right.name {
            throw .invalid(field, "is not sorted, or has a name twice")
        }
        self.init(
            try protos.map { proto throws(WireError) in
                let amount = try Check.bytes(proto.amount, field)
                return ResourceAmount(name: proto.name, amount: amount)
            }
        )
        do throws(Refusal) {
            try check(limits, of: field)
        } catch {
            throw .invalid(field, "\(error)")
        }
    }
}

extension ProtoStoredRequirement {
    init(_ requirement: WorkerRequirement) {
        self.init()
        label = requirement.label
        switch requirement.condition {
        case .oneOf(let values): (condition, self.values) = (0, values)
        case .noneOf(let values): (condition, self.values) = (1, values)
        case .exists(true): condition = 2
        case .exists(false): condition = 3
        }
    }
}

extension WorkerRequirement {
    init(_ proto: ProtoStoredRequirement) throws(WireError) {
        let condition: Condition
        switch proto.condition {
        case 0: condition = .oneOf(proto.values)
        case 1: condition = .noneOf(proto.values)
        case 2: condition = .exists(true)
        case 3: condition = .exists(false)
        case _: throw .invalid("requirement.condition", "is \(proto.condition)")
        }
        self.init(proto.label, condition)
    }
}
