import Foundation
import Testing

/// What `operon run --output json` prints, as a reader of it would declare it.
struct Report: Decodable {
    struct Counts: Decodable, Equatable {
        var succeeded = 0
        var failed = 0
        var cancelled = 0
        var skipped = 0
        var unfinished = 0
        var total = 0
    }

    struct Problem: Decodable {
        let code: String
        let message: String
        let exitCode: Int?
        let signal: String?
    }

    struct Attempt: Decodable {
        let number: Int
        let worker: String
        let start: Double?
        let end: Double?
        let ended: String
        let error: Problem?
    }

    struct Cause: Decodable {
        let dependency: String
        let root: String
        let rootOutcome: String
    }

    struct Operation: Decodable {
        let name: String
        let outcome: String?
        let error: Problem?
        let reason: String?
        let start: Double?
        let end: Double?
        let worker: String?
        let attempts: [Attempt]
        let cause: Cause?
        let log: String?
    }

    let version: Int
    let graph: String
    let startedAt: String
    let counts: Counts
    let makespan: Double
    let lowerBound: Double
    let criticalPath: Double
    let work: Double
    let slots: Int
    let operations: [Operation]

    subscript(name: String) -> Operation? { operations.first { $0.name == name } }

    /// The outcomes by name.
    var outcomes: [String: String] {
        Dictionary(uniqueKeysWithValues: operations.map { ($0.name, $0.outcome ?? "none") })
    }
}

extension Ended {
    /// Standard output as a report.
    func report() throws -> Report {
        do {
            return try JSONDecoder().decode(Report.self, from: Data(output.utf8))
        } catch {
            throw CommandFailure(
                "no report (\(end)): \(error)\n\(output.prefix(2_000))\n\(errors.suffix(4_000))"
            )
        }
    }
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
