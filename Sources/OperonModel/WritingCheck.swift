/// Finds what cannot be submitted, before anything is sent or written: what cannot run as
/// described, and what a graph file cannot represent. A graph that passes is read back from a file
/// unchanged: durations to the nanosecond, lists without repetitions, JSON without white space.
package struct WritingCheck {
    private let limits: Limits
    private let isJSON: (Payload) -> Bool

    /// Up to so many dependencies are compared one by one, without a hash table.
    private static let fewMax = 16

    /// - Parameter isJSON: Whether an input that is not empty is one JSON value.
    package init(_ limits: Limits, isJSON: @escaping (Payload) -> Bool) {
        self.limits = limits
        self.isJSON = isJSON
    }

    /// - Throws: the first problem, worded for a caller that submits the graph without a file.
    package func check(_ graph: GraphDescription) throws(Refusal) {
        try graph.check(limits)
        var names = Set<String>(minimumCapacity: graph.operations.count)
        for operation in graph.operations {
            guard names.insert(operation.name).inserted else {
                throw .duplicateOperation(name: operation.name)
            }
            try check(operation)
        }
    }

    private func check(_ operation: OperationDescription) throws(Refusal) {
        try checkBytes(operation.summary.utf8.count)
        try checkDependencies(of: operation)
        switch operation.work {
        case .registered(_, let input):
            try check(input, of: operation.name, isVersioned: true)
        case .external(let input):
            try check(input, of: operation.name)
        case .command(let command):
            let arguments = command.arguments.reduce(0) { $0 + $1.utf8.count + 1 }
            let environment = [command.environment, command.secrets].joined().reduce(0) {
                $0 + $1.key.utf8.count + $1.value.utf8.count + 2
            }
            let paths = (command.produces + command.consumes).reduce(0) { $0 + $1.utf8.count + 1 }
            try checkBytes(arguments + environment + paths)
        case .nothing, .wait: break
        }
    }

    private func checkBytes(_ count: Int) throws(Refusal) {
        try LimitName.payloadBytes.check(count, limits.payloadBytes)
    }

    private func checkDependencies(of operation: OperationDescription) throws(Refusal) {
        let dependencies = operation.dependencies
        var conditions: [String: DependencyCondition] = [:]
        for (place, dependency) in dependencies.enumerated() {
            let earlier: DependencyCondition?
            if dependencies.count <= Self.fewMax {
                let same = dependencies[..<place].first { $0.name == dependency.name }
                earlier = same?.condition
            } else {
                earlier = conditions.updateValue(dependency.condition, forKey: dependency.name)
            }
            guard let earlier, earlier != dependency.condition else { continue }
            throw .invalid(
                field: "dependencies of “\(operation.name)”",
                why: "“\(dependency.name)” is listed with two conditions"
            )
        }
    }

    private func check(
        _ input: Payload,
        of name: String,
        isVersioned: Bool = false
    ) throws(Refusal) {
        try checkBytes(input.bytes.count)
        let field = "input of “\(name)”"
        var plain = input
        if isVersioned, let version = input.version {
            guard (1...Int(Int32.max)).contains(version),
                input.contentType == Payload.json(version: version)
            else {
                let why = "version \(version) is not a number from 1 to \(Int32.max)"
                throw .invalid(field: field, why: why)
            }
            plain.contentType = Payload.json
        }
        guard plain == .empty || !plain.isEmpty && isJSON(plain) else {
            throw .invalid(field: field, why: "it is not JSON")
        }
    }
}
