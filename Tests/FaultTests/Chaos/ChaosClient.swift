import Foundation
import OperonCore
import OperonFaultKit
import OperonGraphFile
import OperonHTTP
import OperonModel
import OperonPorts

/// Keeps submitting graphs to a coordinator that comes and goes, and reads outcomes again and
/// again.
actor ChaosClient {
    private struct Submitted {
        let id: String
        let graph: LayeredGraph
        var operations: [Report.Operation] = []

        var hasEnded: Bool {
            operations.count == graph.dependencies.count
                && operations.allSatisfy { $0.outcome != nil }
        }
    }

    /// Graphs that are not finished, at most: more operations are ready than there are slots.
    private static let openMax = 5
    /// What ends after the last submission ends within this time, or never.
    private static let drainMax = Duration.seconds(180)
    private static let pause = Duration.milliseconds(200)

    private let http: HTTPCoordinatorClient
    private let ledger: String
    private var generator: SeededGenerator
    private var submitted: [Submitted] = []
    private(set) var history = OutcomeHistory()
    /// The direct dependencies of every operation.
    private(set) var dependencies: [String: [String]] = [:]
    private var isStopping = false
    private var failure: (any Error)?

    /// Runs `body` beside a client, which is stopped afterwards: everything that it submitted has
    /// ended then.
    static func withClient(
        of address: String,
        ledger: String,
        seed: UInt64,
        _ body: (ChaosClient) async throws -> Void
    ) async throws {
        let http = try HTTPCoordinatorClient(.init(url: address), codec: GraphFileCodec())
        let client = ChaosClient(http, ledger: ledger, seed: seed)
        let submitting = Task { await client.submitAll() }
        let reading = Task { await client.readAll() }
        let result: Result<Void, any Error>
        do {
            try await body(client)
            result = .success(())
        } catch {
            result = .failure(error)
            submitting.cancel()
            reading.cancel()
        }
        await client.stop()
        await submitting.value
        await reading.value
        await http.shutDown()
        try result.get()
    }

    private init(_ http: HTTPCoordinatorClient, ledger: String, seed: UInt64) {
        self.http = http
        self.ledger = ledger
        generator = SeededGenerator(seed: seed)
    }

    private func stop() { isStopping = true }

    /// - Throws: what ended this client early.
    func check() throws { if let failure { throw failure } }

    func hasOutcome(_ operation: String) -> Bool { history[operation] != nil }

    var operationCount: Int { dependencies.count }
    var graphCount: Int { submitted.count }

    // MARK: - Submissions

    private func submitAll() async {
        do {
            while !isStopping {
                if submitted.count(where: { !$0.hasEnded }) < Self.openMax { try await submit() }
                // The end of a graph is read by the other task.
                try await Task.sleep(for: Self.pause)
            }
        } catch is CancellationError {
        } catch {
            failure = failure ?? error
        }
    }

    /// Returns when the coordinator has acknowledged the next graph.
    private func submit() async throws {
        let number = submitted.count + 1
        let width = 3 + Int(generator.next() % 4)
        let graph = LayeredGraph(
            layers: 3 + Int(generator.next() % 4),
            width: width,
            milliseconds: 100...500,
            ledger: ledger,
            isBraided: generator.next() % 2 == 0,
            prefix: "g\(number).",
            failingColumn: number % 3 == 0 ? Int(generator.next() % UInt64(width)) : nil
        )
        let file = try GraphFile.read(bytes: Array(graph.text.utf8), file: "g\(number).yaml")
        var submission = Submission(graph: file.graph)
        // A repeated submission whose answer was lost is not a second graph.
        submission.idempotencyKey = "g\(number)"
        let view = try await answer { [submission] in try await self.http.submit(submission) }
        submitted.append(Submitted(id: String(view.id), graph: graph))
        dependencies.merge(graph.dependencies) { _, new in new }
    }

    // MARK: - Outcomes

    private func readAll() async {
        do {
            var deadline: ContinuousClock.Instant?
            while true {
                let open = submitted.indices.filter { !submitted[$0].hasEnded }
                if isStopping {
                    if open.isEmpty { break }
                    let end = deadline ?? ContinuousClock.now + Self.drainMax
                    deadline = end
                    guard ContinuousClock.now < end else { break }
                }
                for index in open { try await read(index) }
                // What has ended must stay as it is.
                if !submitted.isEmpty {
                    try await read(Int(generator.next() % UInt64(submitted.count)))
                }
                // Nobody tells when an operation ends, so this polls.
                try await Task.sleep(for: Self.pause)
            }
            for index in submitted.indices { try await read(index) }
        } catch is CancellationError {
        } catch {
            failure = failure ?? error
        }
    }

    private func read(_ index: Int) async throws {
        let id = submitted[index].id
        let page = try await answer {
            try await self.http.records(of: id, after: nil, limit: 10_000)
        }
        let operations = page.records.map { Report.Operation($0, workers: page.workers) }
        for operation in operations { history.read(operation.name, operation.outcome) }
        submitted[index].operations = operations
    }

    /// How far the coordinator's wall clock is from this machine's.
    func clockOffset() async throws -> Duration {
        guard let id = submitted.first?.id else { throw CommandFailure("no graph to ask about") }
        let page = try await answer {
            try await self.http.records(of: id, after: nil, limit: 1)
        }
        let there = page.now.time.nanosecondsSince1970
        return .nanoseconds(there) - .seconds(Date().timeIntervalSince1970)
    }

    /// Asks until there is an answer: the coordinator may be away, or its disk full.
    private func answer<Value: Sendable>(
        _ ask: @Sendable () async throws -> Value
    ) async throws -> Value {
        while true {
            do {
                return try await ask()
            } catch let error as ClientError
                where [.unreachable, .unavailable, .timedOut].contains(error.code)
            {
                // Nobody tells when it is back, so this polls.
                try await Task.sleep(for: Self.pause)
            }
        }
    }

    // MARK: - The check

    /// Everything that must not have happened.
    func violations(_ ledger: Ledger, _ faults: FaultLog) -> [String] {
        var violations = ledger.unreadable.map { "“\($0)” is no entry" }
        violations += history.changes.map(\.description)
        let entries = Dictionary(grouping: ledger.entries) { entry in
            String(entry.operation.prefix { $0 != "." })
        }
        for (index, submitted) in submitted.enumerated() {
            if !submitted.hasEnded { violations.append("graph \(submitted.id) has not ended") }
            let check = LedgerCheck(
                Ledger(entries["g\(index + 1)"] ?? []),
                against: submitted.operations,
                dependencies: submitted.graph.dependencies,
                faults: faults,
                failing: submitted.graph.failing
            )
            violations += check.violations.map(\.description)
        }
        return violations
    }

    /// How the attempts ended, and how many each way.
    var endings: String {
        let all = submitted.flatMap { $0.operations.flatMap { $0.attempts.map(\.ended) } }
        return Dictionary(grouping: all) { $0 }.sorted { $0.key < $1.key }
            .map { "\($0.value.count) attempts \($0.key)" }.joined(separator: ", ")
    }
}
