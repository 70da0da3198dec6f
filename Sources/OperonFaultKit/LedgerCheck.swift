/// Compares what operations wrote in a ledger with what the run reported, after the run.
///
/// It knows neither the scheduler nor the clock: everything follows from the order of the lines.
package struct LedgerCheck: Sendable {
    /// Something that must not happen, whatever fails.
    package enum Violation: Hashable, Sendable, CustomStringConvertible {
        case unreadable(String)
        case notSucceeded(String, outcome: String)
        /// It succeeded, and its last attempt never came to its end.
        case noEnd(String, attempt: Int)
        case startedTwice(String, attempt: Int)
        case unknownAttempt(String, attempt: Int)
        /// Before the last attempt of a dependency had ended.
        case startedEarly(String, attempt: Int, dependency: String)
        /// Beside an attempt of the same operation that the run had not given up.
        case ranBeside(String, attempt: Int, earlier: Int)
        /// A further attempt behind one that the run had not given up.
        case repeated(String, attempt: Int, after: String)
        case tooManyAtOnce(Int, limit: Int)

        package var description: String {
            switch self {
            case .unreadable(let line): "“\(line)” is no entry"
            case .notSucceeded(let name, let outcome): "\(name) ended \(outcome)"
            case .noEnd(let name, let attempt):
                "\(name) succeeded, but its attempt \(attempt) did not end"
            case .startedTwice(let name, let attempt):
                "attempt \(attempt) of \(name) started twice"
            case .unknownAttempt(let name, let attempt):
                "attempt \(attempt) of \(name) ran, and the report does not tell it"
            case .startedEarly(let name, let attempt, let dependency):
                "attempt \(attempt) of \(name) started before \(dependency) had ended"
            case .ranBeside(let name, let attempt, let earlier):
                "attempt \(attempt) of \(name) ran beside its attempt \(earlier)"
            case .repeated(let name, let attempt, let ended):
                "attempt \(attempt) of \(name) started although the one before \(ended)"
            case .tooManyAtOnce(let count, let limit): "\(count) ran at once, at most \(limit) may"
            }
        }
    }

    package private(set) var violations: [Violation] = []
    /// How often an operation ran beyond once; only those that did.
    package private(set) var duplicates: [String: Int] = [:]
    /// The most that ran at once, of those that came to their end.
    package private(set) var atOnceMax = 0

    private let ledger: Ledger
    private let report: Report

    /// `dependencies`: the direct ones of each operation, every one of which must have ended.
    /// `limit`: how many may run at once.
    package init(
        _ ledger: Ledger,
        against report: Report,
        dependencies: [String: [String]] = [:],
        limit: Int? = nil
    ) {
        self.ledger = ledger
        self.report = report
        violations = ledger.unreadable.map { .unreadable($0) }
        checkOutcomes()
        checkStarts()
        checkOrder(dependencies)
        checkRepetitions()
        checkOverlap(limit: limit)
    }

    private struct Run: Hashable {
        let operation: String
        let attempt: Int

        init(_ entry: Ledger.Entry) {
            operation = entry.operation
            attempt = entry.attempt
        }

        init(_ operation: String, _ attempt: Int) {
            self.operation = operation
            self.attempt = attempt
        }
    }

    /// Where in the ledger something stands first.
    private func places(of kind: Ledger.Kind) -> [Run: Int] {
        var places: [Run: Int] = [:]
        for (place, entry) in ledger.entries.enumerated() where entry.kind == kind {
            if places[Run(entry)] == nil { places[Run(entry)] = place }
        }
        return places
    }

    /// The attempt whose outcome is the operation's: not always the last, since an owner that was
    /// given up may come back before the next attempt has started, and goes on.
    private func committed(_ operation: Report.Operation) -> Run {
        let attempt =
            operation.attempts.last { $0.ended == operation.outcome } ?? operation.attempts.last
        return Run(operation.name, attempt?.number ?? 0)
    }

    private mutating func checkOutcomes() {
        let ends = places(of: .end)
        for operation in report.operations {
            guard operation.outcome == "succeeded" else {
                let outcome = operation.outcome ?? "without an outcome"
                violations.append(.notSucceeded(operation.name, outcome: outcome))
                continue
            }
            let last = committed(operation)
            if ends[last] == nil {
                violations.append(.noEnd(operation.name, attempt: last.attempt))
            }
        }
    }

    private mutating func checkStarts() {
        let told = Set(
            report.operations.flatMap { operation in
                operation.attempts.map { Run(operation.name, $0.number) }
            }
        )
        var started: Set<Run> = []
        var counts: [String: Int] = [:]
        for entry in ledger.entries where entry.kind == .start {
            counts[entry.operation, default: 0] += 1
            if !told.contains(Run(entry)) {
                violations.append(.unknownAttempt(entry.operation, attempt: entry.attempt))
            }
            if !started.insert(Run(entry)).inserted {
                violations.append(.startedTwice(entry.operation, attempt: entry.attempt))
            }
        }
        duplicates = counts.filter { $0.value > 1 }.mapValues { $0 - 1 }
    }

    private mutating func checkOrder(_ dependencies: [String: [String]]) {
        let ends = places(of: .end)
        var committedEnds: [String: Int] = [:]
        for operation in report.operations {
            committedEnds[operation.name] = ends[committed(operation)]
        }
        for (place, entry) in ledger.entries.enumerated() where entry.kind == .start {
            for dependency in dependencies[entry.operation] ?? [] {
                if let end = committedEnds[dependency], end < place { continue }
                violations.append(
                    .startedEarly(
                        entry.operation,
                        attempt: entry.attempt,
                        dependency: dependency
                    )
                )
            }
        }
    }

    /// A further attempt needs a reason in the report: the one before was lost, given back, or
    /// ended without success. Only one that was lost may still be running.
    private mutating func checkRepetitions() {
        let starts = places(of: .start)
        let ends = places(of: .end)
        for operation in report.operations {
            for (earlier, later) in zip(operation.attempts, operation.attempts.dropFirst()) {
                guard let start = starts[Run(operation.name, later.number)] else { continue }
                if !["lost", "returned", "failed", "crashed"].contains(earlier.ended) {
                    violations.append(
                        .repeated(operation.name, attempt: later.number, after: earlier.ended)
                    )
                }
                guard earlier.ended != "lost",
                    let began = starts[Run(operation.name, earlier.number)], began < start,
                    let end = ends[Run(operation.name, earlier.number)], end > start
                else { continue }
                violations.append(
                    .ranBeside(operation.name, attempt: later.number, earlier: earlier.number)
                )
            }
        }
    }

    /// What was killed wrote no end, and nobody can say when it stopped: it is left out.
    private mutating func checkOverlap(limit: Int?) {
        let ends = places(of: .end)
        var running: Set<Run> = []
        for (place, entry) in ledger.entries.enumerated() {
            switch entry.kind {
            case .start: if let end = ends[Run(entry)], end > place { running.insert(Run(entry)) }
            case .end: running.remove(Run(entry))
            }
            atOnceMax = max(atOnceMax, running.count)
        }
        if let limit, atOnceMax > limit {
            violations.append(.tooManyAtOnce(atOnceMax, limit: limit))
        }
    }
}
