package import OperonModel

/// The bytes that the inputs of an operation take in a message to a worker, without the outputs
/// themselves.
package enum InputList {
    /// The bytes of an entry in a message without its name: the reference to an output, which is
    /// its hash and some numbers, or an output that is no longer than that.
    static let entryBytes = 80
    /// The most bytes that an entry takes.
    package static func bytes(of name: String) -> Int { name.utf8.count + entryBytes }

    /// The bytes of an entry for a dependency that left no output, without its name.
    static let nameBytes = 4

    /// Whether the inputs of every operation can be sent to a worker, whatever outputs its
    /// dependencies leave.
    ///
    /// - Throws: `limitExceeded`: `nameBytes` or `inputListBytes`.
    static func check(_ graph: GraphDescription, _ limits: Limits) throws(Refusal) {
        // The names of operations that leave no output. Computed when needed, which is seldom.
        var silent: Set<String>?
        for operation in graph.operations where operation.work.takesInputs {
            for dependency in operation.dependencies {
                try LimitName.nameBytes.check(dependency.name.utf8.count, limits.nameBytes)
            }
            // Even with the longest names these inputs fit: no need to look.
            let most = operation.dependencies.count
            guard most > limits.inputListBytes / (entryBytes + limits.nameBytes) else { continue }
            let names =
                silent ?? Set(graph.operations.filter { !$0.work.mayLeaveOutput }.map(\.name))
            silent = names
            let bytes = operation.dependencies.reduce(0) { bytes, dependency in
                let isSilent = names.contains(dependency.name)
                return bytes + dependency.name.utf8.count + (isSilent ? nameBytes : entryBytes)
            }
            try LimitName.inputListBytes.check(bytes, limits.inputListBytes)
        }
    }
}

extension Work {
    /// Whether its kind uses the outputs of dependencies.
    package var takesInputs: Bool {
        switch self {
        // No worker gets the inputs of an external operation; clients read them in another way.
        case .nothing, .wait, .external: false
        case .command, .registered: true
        }
    }

    /// Whether an operation of its kind may have an output.
    var mayLeaveOutput: Bool {
        switch self {
        case .nothing, .wait: false
        case .command, .registered, .external: true
        }
    }
}
