import Foundation
package import OperonModel

/// What `operon run --output json` prints, as a reader of it would declare it.
package struct Report: Decodable {
    package struct Counts: Decodable, Equatable {
        package var succeeded = 0
        package var failed = 0
        package var cancelled = 0
        package var skipped = 0
        package var unfinished = 0
        package var total = 0

        package init(
            succeeded: Int = 0,
            failed: Int = 0,
            cancelled: Int = 0,
            skipped: Int = 0,
            unfinished: Int = 0,
            total: Int = 0
        ) {
            self.succeeded = succeeded
            self.failed = failed
            self.cancelled = cancelled
            self.skipped = skipped
            self.unfinished = unfinished
            self.total = total
        }
    }

    package struct Problem: Decodable {
        package let code: String
        package let message: String
        package let exitCode: Int?
        package let signal: String?
    }

    package struct Attempt: Decodable {
        package let number: Int
        package let worker: String
        package let start: Double?
        package let end: Double?
        package let ended: String
        package let error: Problem?

        init(_ record: AttemptRecord, workers: [String]) {
            number = Int(record.number)
            worker = record.worker.map { workers[$0] } ?? ""
            start = record.startedAt
            end = record.endedAt
            ended = record.ending ?? "unfinished"
            error = nil
        }
    }

    package struct Cause: Decodable {
        package let dependency: String
        package let root: String
        package let rootOutcome: String
    }

    package struct Operation: Decodable {
        package let name: String
        package let outcome: String?
        /// `nil`: it ran.
        package let isUpToDate: Bool?
        package let error: Problem?
        package let reason: String?
        package let start: Double?
        package let end: Double?
        package let worker: String?
        package let attempts: [Attempt]
        package let cause: Cause?
        package let log: String?

        /// What the API tells of an operation.
        package init(_ record: OperationRecord, workers: [String]) {
            name = record.name
            let outcomes: [CountedState] = [.succeeded, .failed, .cancelled, .skipped]
            outcome = outcomes.contains(record.state) ? record.state.rawValue : nil
            attempts = (record.attempts ?? []).map { Attempt($0, workers: workers) }
            isUpToDate = nil
            error = nil
            reason = nil
            start = nil
            end = nil
            worker = attempts.last?.worker
            cause = nil
            log = nil
        }
    }

    package let version: Int
    package let graph: String
    package let startedAt: String
    package let counts: Counts
    package let makespan: Double
    package let lowerBound: Double
    package let criticalPath: Double
    package let work: Double
    package let slots: Int
    package let operations: [Operation]

    package subscript(name: String) -> Operation? { operations.first { $0.name == name } }

    /// The outcomes by name.
    package var outcomes: [String: String] {
        Dictionary(uniqueKeysWithValues: operations.map { ($0.name, $0.outcome ?? "none") })
    }
}

extension Ended {
    /// Standard output as a report.
    package func report() throws -> Report {
        do {
            return try JSONDecoder().decode(Report.self, from: Data(output.utf8))
        } catch {
            throw CommandFailure(
                "no report (\(end)): \(error)\n\(output.prefix(2_000))\n\(errors.suffix(4_000))"
            )
        }
    }
}
