import OperonModel

extension GraphFile {
    /// The most warnings about names.
    private static let nameWarningsMax = 20
    /// The most warnings about approvals.
    private static let approvalWarningsMax = 20
    /// The most pairs of names that are compared: a few tenths of a second. A generated file with
    /// thousands of queues and keys has no typing mistakes.
    private static let comparisonsMax = 100_000

    /// Queues and keys that operations name and the file does not declare, if it declares a similar
    /// one: a typing mistake leaves operations without their limit.
    package var nameWarnings: [GraphFileError.Problem] {
        let queues = graph.queues.map(\.name)
        let keys = graph.keys.map(\.name)
        guard !queues.isEmpty || !keys.isEmpty else { return [] }
        let used = Used(
            queues: Set(graph.operations.map(\.queue)),
            keys: Set(graph.operations.flatMap(\.exclusive))
        )
        var known = (queues: Set(queues), keys: Set(keys))
        var warnings: [GraphFileError.Problem] = []
        var comparisons = 0
        for (index, operation) in graph.operations.enumerated() {
            let position = sourceMap.position(ofDependency: nil, of: index)
            if known.queues.insert(operation.queue).inserted {
                comparisons += queues.count
                add("queue", operation.queue, queues, used.queues, at: position, to: &warnings)
            }
            for key in operation.exclusive where known.keys.insert(key).inserted {
                comparisons += keys.count
                add("key", key, keys, used.keys, at: position, to: &warnings)
            }
            guard warnings.count < Self.nameWarningsMax, comparisons < Self.comparisonsMax else {
                break
            }
        }
        return warnings
    }

    /// External operations after which another one runs even if they are cancelled, because it has
    /// no condition: it would go on without the approval that it seems to need.
    ///
    /// - Parameter stated: The positions of dependencies whose condition is the default, and that
    ///   say so.
    func approvalWarnings(stated: Set<Position>) -> [GraphFileError.Problem] {
        var external = Set(graph.operations.lazy.filter(\.work.isExternal).map(\.name))
        guard !external.isEmpty else { return [] }
        var warnings: [GraphFileError.Problem] = []
        for (index, operation) in graph.operations.enumerated() where operation.work != .nothing {
            for (place, dependency) in operation.dependencies.enumerated()
            where dependency.condition == .unlessFailed && external.contains(dependency.name) {
                let position = sourceMap.position(ofDependency: place, of: index)
                guard !stated.contains(position) else { continue }
                // Each once, however many depend on it.
                external.remove(dependency.name)
                var warning = GraphFileError.Problem(
                    .invalidValue,
                    at: position,
                    dependency.name,
                    "\(operation.name.quoted) also runs if \(dependency.name.quoted) is cancelled."
                        + " If it must not, write { \(dependency.name): succeeded }; if it may, "
                        + "{ \(dependency.name): unlessFailed }"
                )
                warning.file = file
                warnings.append(warning)
                if warnings.count == Self.approvalWarningsMax { return warnings }
            }
        }
        return warnings
    }

    private func add(
        _ what: String,
        _ name: String,
        _ declared: [String],
        _ used: Set<String>,
        at position: Position,
        to warnings: inout [GraphFileError.Problem]
    ) {
        // One that nothing uses is the more likely one.
        let free = declared.filter { !used.contains($0) }
        let meant =
            Suggestion.nearest(to: name, among: free)
            ?? Suggestion.nearest(to: name, among: declared.filter { !Self.isSibling($0, name) })
        guard let meant else { return }
        let isUsed = used.contains(meant)
        var warning = GraphFileError.Problem(
            .invalidValue,
            at: position,
            name,
            "the file declares no \(what) \(name.quoted)"
                + (isUsed ? "" : ", and nothing uses its \(what) \(meant.quoted)")
                + ": did you mean "
                + (isUsed ? "\(meant.quoted)?" : "that?")
        )
        warning.file = file
        warnings.append(warning)
    }

    /// Whether two names differ in their numbers alone, as `gpu1` and `gpu2` do on purpose.
    private static func isSibling(_ name: String, _ other: String) -> Bool {
        name.filter { !$0.isNumber } == other.filter { !$0.isNumber }
    }

    private struct Used {
        let queues: Set<String>
        let keys: Set<String>
    }
}
