package import OperonModel

/// What the inputs of an operation take in a message to a worker, beside the outputs themselves.
package enum InputList {
    /// What an entry takes in a message beside its name: the reference to an output, which is its
    /// hash and some numbers, or an output that is no longer than that.
    static let entryBytes = 80
    /// What the name of a dependency takes that left nothing, beside its bytes.
    static let nameBytes = 4

    /// Whether the inputs of every operation can be sent to a worker, whatever its dependencies
    /// leave.
    ///
    /// - Throws: `limitExceeded`: `nameBytes` or `inputListBytes`.
    static func check(_ graph: GraphDescription, _ limits: Limits) throws(Refusal) {
        // Of the names of operations that leave nothing. Made when it is needed, which is seldom.
        var silent: Set<String>?
        for operation in graph.operations where operation.work.takesInputs {
            for dependency in operation.dependencies {
                try LimitName.nameBytes.check(dependency.name.utf8.count, limits.nameBytes)
            }
            // By the longest names: no need to look.
            let most = operation.dependencies.count
            guard most > limits.inputListBytes / (entryBytes + limits.nameBytes) else { continue }
            let names =
                silent
                ?? Set(graph.operations.filter { !$0.work.mayLeaveOutput }.map(\.name))
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
    /// Whether its kind does anything with the outputs of dependencies.
    package var takesInputs: Bool {
        switch self {
        // Of what is completed from outside no worker gets anything; clients read it elsewhere.
        case .nothing, .wait, .external: false
        case .command, .registered: true
        }
    }

    /// Whether one of its kind may have an output.
    var mayLeaveOutput: Bool {
        switch self {
        case .nothing, .wait: false
        case .command, .registered, .external: true
        }
    }
}
