import OperonModel

// What an operation needs of its worker.
extension FieldReader {
    /// A map from names to amounts. Null is nothing.
    mutating func resources(_ node: Node, _ key: String) throws(Stop) -> ResourceAmounts? {
        if node.isNull { return [] }
        guard let entries = node.entries else {
            try mismatch(node, key, "a map such as { cpus: 2, memory: 8GiB }")
            return nil
        }
        guard try isWithin(.resources, limits.resources, entries.count, node, key) else {
            return nil
        }
        var amounts: ResourceAmounts = []
        for entry in entries {
            guard try isName(entry, "a resource") else { continue }
            if let meant = ResourceText.meant(by: entry.key) {
                // A worker would have to offer a resource of exactly this name.
                try log.report(
                    .unknownKey,
                    at: entry.keyPosition,
                    entry.key,
                    "\(entry.key.quoted) is not the name of a resource; did you mean "
                        + "\(meant.quoted)?"
                )
                continue
            }
            guard entry.value.bool == nil, let text = entry.value.text,
                let amount = ResourceText.amount(text, of: entry.key)
            else {
                try mismatch(entry.value, entry.key, ResourceText.hint(entry.key))
                continue
            }
            amounts[entry.key] = amount
        }
        return amounts
    }

    /// A map from labels to conditions. Null is none.
    mutating func requirements(
        _ node: Node,
        _ key: String
    ) throws(Stop) -> [WorkerRequirement]? {
        if node.isNull { return [] }
        guard let entries = node.entries else {
            try mismatch(node, key, "a map from labels to values such as { region: eu }")
            return nil
        }
        guard try isWithin(.labels, limits.labels, entries.count, node, key) else { return nil }
        var requirements: [WorkerRequirement] = []
        for entry in entries {
            guard try isName(entry, "a label"), let condition = try condition(entry)
            else { continue }
            requirements.append(WorkerRequirement(entry.key, condition))
        }
        return requirements
    }

    private static let conditionKeys = ["in", "notIn", "exists"]

    /// A value, a list of values, or one condition by name.
    private mutating func condition(
        _ entry: Node.Entry
    ) throws(Stop) -> WorkerRequirement.Condition? {
        let node = entry.value
        guard let conditions = node.entries else {
            return try labelValues(node, entry.key).map { .oneOf($0) }
        }
        guard let one = conditions.first, conditions.count == 1 else {
            try mismatch(node, entry.key, "one condition: in, notIn or exists")
            return nil
        }
        switch one.key {
        case "in": return try labelValues(one.value, one.key).map { .oneOf($0) }
        case "notIn": return try labelValues(one.value, one.key).map { .noneOf($0) }
        case "exists": return try bool(one.value, one.key).map { .exists($0) }
        case _:
            try unknownKey(one, among: Self.conditionKeys)
            return nil
        }
    }

    private mutating func labelValues(_ node: Node, _ key: String) throws(Stop) -> [String]? {
        guard node.text != nil || node.elements?.isEmpty == false else {
            try mismatch(node, key, "a value or a list of at least one value")
            return nil
        }
        let count = node.elements?.count ?? 1
        guard try isWithin(.labelValues, limits.labelValues, count, node, key) else { return nil }
        return try names(node, key)
    }

    /// Whether the key may be the name of a resource or a label.
    private mutating func isName(_ entry: Node.Entry, _ what: String) throws(Stop) -> Bool {
        if ResourceText.isName(entry.key) { return true }
        try log.report(
            .invalidValue,
            at: entry.keyPosition,
            entry.key,
            "\(entry.key.quoted) cannot be the name of \(what): a name has 1 to "
                + "\(ResourceText.nameBytesMax) letters, digits, “.”, “_”, “-” and “/”"
        )
        return false
    }

    private mutating func isWithin(
        _ limit: LimitName,
        _ maximum: Int,
        _ count: Int,
        _ node: Node,
        _ key: String
    ) throws(Stop) -> Bool {
        guard count > maximum else { return true }
        try log.report(
            GraphFileError.Problem(
                limit: limit,
                value: count,
                maximum: maximum,
                at: node.position,
                key,
                key.quoted
            )
        )
        return false
    }
}
