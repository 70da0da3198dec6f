import OperonModel

extension GraphFile {
    /// The most warnings about names.
    private static let nameWarningsMax = 20

    /// Queues and keys that operations name and the file does not declare, if it declares a similar
    /// one that no operation names: a typing mistake leaves operations without their limit.
    package var nameWarnings: [GraphFileError.Problem] {
        let queues = graph.queues.map(\.name)
        let keys = graph.keys.map(\.name)
        guard !queues.isEmpty || !keys.isEmpty else { return [] }
        let usedQueues = Set(graph.operations.map(\.queue))
        let usedKeys = Set(graph.operations.flatMap(\.exclusive))
        let freeQueues = queues.filter { !usedQueues.contains($0) }
        let freeKeys = keys.filter { !usedKeys.contains($0) }
        guard !freeQueues.isEmpty || !freeKeys.isEmpty else { return [] }
        var known = (queues: Set(queues), keys: Set(keys))
        var warnings: [GraphFileError.Problem] = []
        for (index, operation) in graph.operations.enumerated() {
            let position = sourceMap.position(ofDependency: nil, of: index)
            if known.queues.insert(operation.queue).inserted {
                add("queue", operation.queue, freeQueues, at: position, to: &warnings)
            }
            for key in operation.exclusive where known.keys.insert(key).inserted {
                add("key", key, freeKeys, at: position, to: &warnings)
            }
            if warnings.count == Self.nameWarningsMax { break }
        }
        return warnings
    }

    private func add(
        _ what: String,
        _ name: String,
        _ declared: [String],
        at position: Position,
        to warnings: inout [GraphFileError.Problem]
    ) {
        guard let meant = Suggestion.nearest(to: name, among: declared) else { return }
        var warning = GraphFileError.Problem(
            .invalidValue,
            at: position,
            name,
            "the file declares no \(what) \(name.quoted), and nothing uses its \(what) "
                + "\(meant.quoted): did you mean that?"
        )
        warning.file = file
        warnings.append(warning)
    }
}
