import OperonModel

/// Finds what a graph file cannot represent before anything is written. A graph that passes is read
/// back unchanged: durations to the nanosecond, lists without repetitions, JSON without white
/// space.
struct WritingCheck {
    private let limits: Limits

    init(_ limits: Limits) { self.limits = limits }

    /// - Throws: the first problem, worded for a caller that submits the graph without a file.
    func check(_ graph: GraphDescription) throws(Refusal) {
        try graph.check(limits)
        var names = SeenKeys<Void>()
        for operation in graph.operations {
            guard names.insert(operation.name, ()) == nil else {
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
        var conditions = SeenKeys<DependencyCondition>()
        for dependency in operation.dependencies {
            let earlier = conditions.insert(dependency.name, dependency.condition)
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

    /// Whether the input is JSON that is read back as the same value within its operation.
    private func isJSON(_ input: Payload) -> Bool {
        guard input.contentType == Payload.json, input.bytes.first != 0xEF else { return false }
        var bounds = TreeBounds(limits)
        bounds.depth -= 1
        var parser = JSONParser(input.bytes, bounds: bounds)
        do {
            _ = try parser.value()
            return parser.isAtEnd() && parser.takeFindings().isEmpty
        } catch {
            return false
        }
    }
}
