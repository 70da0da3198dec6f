import OperonFaultKit
import Testing

extension Place: CustomTestStringConvertible {
    public var testDescription: String { self == .inProcess ? "in process" : "over a broker" }
}

extension Report {
    /// Everything succeeded, and each attempt but the last was lost or given back.
    func expectSuccess(
        attempts: Int? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let bad = operations.filter { operation in
            let before = operation.attempts.dropLast().map(\.ended)
            return operation.outcome != "succeeded" || operation.attempts.last?.ended != "succeeded"
                || before.contains { $0 != "lost" && $0 != "returned" }
                || operation.attempts.map(\.number) != Array(1...max(1, operation.attempts.count))
        }
        #expect(bad.isEmpty, "\(bad.prefix(3))", sourceLocation: sourceLocation)
        #expect(
            counts == Counts(succeeded: operations.count, total: operations.count),
            sourceLocation: sourceLocation
        )
        guard let attempts else { return }
        let others = operations.filter { $0.attempts.count != attempts }
        #expect(others.isEmpty, "\(others.prefix(3))", sourceLocation: sourceLocation)
    }

    /// No attempt started before the successful ends of all dependencies.
    func expectOrder(
        _ dependencies: [String: [String]],
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        var ends: [String: Double] = [:]
        for operation in operations { ends[operation.name] = operation.end }
        var violations: [String] = []
        for operation in operations {
            for attempt in operation.attempts {
                guard let start = attempt.start else { continue }
                for dependency in dependencies[operation.name] ?? [] {
                    let end = ends[dependency] ?? .infinity
                    if start < end {
                        violations.append(
                            "\(operation.name) started at \(start), \(dependency) ended at \(end)"
                        )
                    }
                }
            }
        }
        #expect(violations.isEmpty, "\(violations.prefix(5))", sourceLocation: sourceLocation)
    }
}
