import Foundation
import Operon
import Testing

/// What the rows are run against.
enum BackEnd: String, CaseIterable, CustomTestStringConvertible, Sendable {
    /// Foundation's own OperationQueue: is what the row says true of the original?
    case foundation
    /// A cluster in this process.
    case inProcess
    /// A coordinator and one worker of one slot, with a broker between them.
    case oneWorker
    /// The same with four workers.
    case fourWorkers
    /// The same with four workers, of which one after the other is killed at random and started
    /// again.
    case killedWorkers

    /// For rows that hold of Foundation's queue as well.
    static let all = allCases.filter(isWanted)
    /// For rows that Foundation has no part in.
    static let operon = all.filter { $0 != .foundation }
    /// For rows that need more than one process.
    static let remote = operon.filter { $0 != .inProcess }
    /// For rows that need no cluster at all: everything happens where the test is.
    static let local = [BackEnd.foundation, .inProcess].filter(isWanted)
    /// For rows whose workers come and go by themselves.
    static let growing = [BackEnd.oneWorker, .fourWorkers].filter(isWanted)

    /// All of them, unless somebody soaks a row on one: `OPERON_SOAK_ON`.
    private static func isWanted(_ backEnd: BackEnd) -> Bool {
        let name = ProcessInfo.processInfo.environment["OPERON_SOAK_ON"] ?? ""
        return name.isEmpty || name == backEnd.rawValue
    }

    var testDescription: String { rawValue }

    /// How many operations run at once.
    var slots: Int {
        switch self {
        case .foundation, .inProcess, .fourWorkers, .killedWorkers: 4
        case .oneWorker: 1
        }
    }

    /// Whether an operation may run more than once.
    var isMortal: Bool { self == .killedWorkers }

    /// How long what must happen may take. A worker that was killed is waited for for six seconds,
    /// and whoever runs its operation next may be killed as well.
    var patience: Duration { isMortal ? .seconds(90) : .seconds(10) }

    /// How much a row takes of something: so much, unless somebody who soaks it says it in
    /// `OPERON_SOAK_SIZE`.
    static func size(_ usual: Int) -> Int {
        ProcessInfo.processInfo.environment["OPERON_SOAK_SIZE"].flatMap { Int($0) } ?? usual
    }

    // MARK: - Playing

    /// Runs a row, again and again if `OPERON_SOAK_TIMES` says so.
    ///
    /// - Parameters:
    ///   - row: Its name in the table.
    ///   - slots: How many operations it keeps running at once, at most: rows share the workers of
    ///     a back end. `nil`: all of them, so it has them for itself.
    func run(
        _ row: String,
        slots: Int? = nil,
        _ body: @Sendable (RowTools) async throws -> Void
    ) async throws {
        let times = ProcessInfo.processInfo.environment["OPERON_SOAK_TIMES"].flatMap { Int($0) }
        for _ in 0..<(times ?? 1) { try await runOnce(row, slots ?? self.slots, body) }
    }

    private func runOnce(
        _ row: String,
        _ slots: Int,
        _ body: @Sendable (RowTools) async throws -> Void
    ) async throws {
        switch self {
        case .foundation:
            try await run(RowTools(self, row, nil, nil), body)
        case .inProcess:
            let cluster = Cluster.inProcess(slots: self.slots)
            let result: Result<Void, any Error>
            do {
                result = .success(try await run(RowTools(self, row, cluster, nil), body))
            } catch {
                result = .failure(error)
            }
            await cluster.close(within: .zero)
            try result.get()
        case .oneWorker, .fourWorkers, .killedWorkers:
            let shared = try await SharedCluster.of(self)
            let count = min(slots, self.slots)
            await shared.turnstile.enter(count)
            let result: Result<Void, any Error>
            do {
                await shared.strike()
                result = .success(try await run(RowTools(self, row, shared.cluster, shared), body))
            } catch {
                result = .failure(error)
            }
            await shared.turnstile.leave(count)
            try result.get()
        }
    }

    private func run(
        _ tools: RowTools,
        _ body: @Sendable (RowTools) async throws -> Void
    ) async throws {
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(tools))
        } catch {
            result = .failure(error)
        }
        // What it left must not be in the way of the next.
        try await tools.clear()
        try result.get()
    }
}
