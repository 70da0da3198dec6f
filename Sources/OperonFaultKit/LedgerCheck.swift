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
        /// It was submitted, and the report does not tell it.
        case missing(String)
        /// An attempt that had begun was given up, and no fault had hit its worker.
        case givenUp(String, attempt: Int, ended: String)
        /// An attempt failed that nothing made fail.
        case failed(String, attempt: Int)

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
            case .missing(let name): "\(name) was submitted, and the report does not tell it"
            case .givenUp(let name, let attempt, let ended):
                "attempt \(attempt) of \(name) \(ended), and no fault had hit its worker"
            case .failed(let name, let attempt):
                "attempt \(attempt) of \(name) failed, and nothing made it fail"
            }
        }
    }

    package private(set) var violations: [Violation] = []
    /// How often an operation ran beyond once; only those that did.
    package private(set) var duplicates: [String: Int] = [:]
    /// The most that ran at once, of those that came to their end.
    package private(set) var atOnceMax = 0

    private typealias Run = Ledger.Run

    private let ledger: Ledger
    private let operations: [Report.Operation]

    /// `dependencies`: the direct ones of each operation, every one of which must have ended.
    /// `limit`: how many may run at once.
    package init(
        _ ledger: Ledger,
        against report: Report,
        dependencies: [String: [String]] = [:],
        limit: Int? = nil
    ) {
        self.init(ledger, against: report.operations, dependencies: dependencies, limit: limit)
    }

    /// `faults`: the only reasons to give up an attempt. `failing`: the only operations of which an
    /// attempt may fail. Without them there may be any reason.
    package init(
        _ ledger: Ledger,
        against operations: [Report.Operation],
        dependencies: [String: [String]] = [:],
        limit: Int? = nil,
        faults: FaultLog? = nil,
        failing: Set<String>? = nil
    ) {
        self.ledger = ledger
        self.operations = operations
        violations = ledger.unreadable.map { .unreadable($0) }
        checkOutcomes()
        checkStarts()
        checkOrder(dependencies)
        checkRepetitions()
        checkOverlap(limit: limit)
        if let faults { checkReasons(faults) }
        if let failing { checkFailures(failing) }
        let told = Set(operations.map(\.name))
        violations += dependencies.keys.filter { !told.contains($0) }.sorted().map { .missing($0) }
    }

    /// Where in the ledger something stands first.
    private func places(of kind: Ledger.Kind) -> [Run: Int] {
        var places: [Run: Int] = [:]
        for (place, entry) in ledger.entries.enumerated() where entry.kind == kind {
            if places[entry.run] == nil { places[entry.run] = place }
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
        for operation in operations {
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
            operations.flatMap { operation in
                operation.attempts.map { Run(operation.name, $0.number) }
            }
        )
        var started: Set<Run> = []
        var counts: [String: Int] = [:]
        for entry in ledger.entries where entry.kind == .start {
            counts[entry.operation, default: 0] += 1
            if !told.contains(entry.run) {
                violations.append(.unknownAttempt(entry.operation, attempt: entry.attempt))
            }
            if !started.insert(entry.run).inserted {
                violations.append(.startedTwice(entry.operation, attempt: entry.attempt))
            }
        }
        duplicates = counts.filter { $0.value > 1 }.mapValues { $0 - 1 }
    }

    private mutating func checkOrder(_ dependencies: [String: [String]]) {
        let ends = places(of: .end)
        var committedEnds: [String: Int] = [:]
        for operation in operations {
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
        for operation in operations {
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

    /// An attempt that had begun is given up only if a fault hit its worker before the next one
    /// began.
    private mutating func checkReasons(_ faults: FaultLog) {
        let starts = places(of: .start)
        for operation in operations {
            for (index, attempt) in operation.attempts.enumerated()
            where ["lost", "returned", "crashed"].contains(attempt.ended) {
                guard let start = starts[Run(operation.name, attempt.number)] else { continue }
                let next = operation.attempts.dropFirst(index + 1).lazy
                    .compactMap { starts[Run(operation.name, $0.number)] }.first
                let began = ledger.entries[start].time
                let end = next.map { ledger.entries[$0].time } ?? .seconds(Int32.max)
                if faults.explainsEnd(of: attempt.worker, from: began, to: end) { continue }
                violations.append(
                    .givenUp(operation.name, attempt: attempt.number, ended: attempt.ended)
                )
            }
        }
    }

    private mutating func checkFailures(_ failing: Set<String>) {
        for operation in operations where !failing.contains(operation.name) {
            for attempt in operation.attempts where attempt.ended == "failed" {
                violations.append(.failed(operation.name, attempt: attempt.number))
            }
        }
    }

    /// What was killed wrote no end, and nobody can say when it stopped: it is left out.
    private mutating func checkOverlap(limit: Int?) {
        let ends = places(of: .end)
        var running: Set<Run> = []
        for (place, entry) in ledger.entries.enumerated() {
            switch entry.kind {
            case .start: if let end = ends[entry.run], end > place { running.insert(entry.run) }
            case .end: running.remove(entry.run)
            }
            atOnceMax = max(atOnceMax, running.count)
        }
        if let limit, atOnceMax > limit {
            violations.append(.tooManyAtOnce(atOnceMax, limit: limit))
        }
    }
}
