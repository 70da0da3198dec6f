import ClusterKit
import OperonCore
import OperonFaultKit
import OperonModel
import OperonRuntime
import Testing

/// Rules that hold across all workers of a cluster, over a real broker.
@Suite(.serialized, .timeLimit(.minutes(5))) struct ClusterTests {
    private static let queue = QueueSettings.defaultName

    /// Workers of one slot each, over a real broker.
    private static func withWorkers(
        _ count: Int,
        isolation: isolated (any Actor)? = #isolation,
        _ body: (TestCluster) async throws -> Void
    ) async throws {
        try await TestCluster.run(.real(.broker)) { cluster in
            for number in 0..<count { try await cluster.join("w\(number)", slots: 1) }
            try await body(cluster)
        }
    }

    private static func graph(
        _ operations: [OperationDescription],
        _ settings: QueueSettings
    ) -> GraphDescription {
        var graph = GraphDescription(name: "cluster", operations: operations)
        graph.queues = [settings]
        return graph
    }

    @Test func `what was added while a queue was suspended runs by priority when it goes on`()
        async throws
    {
        try await Self.withWorkers(4) { cluster in
            var settings = QueueSettings(name: Self.queue, maxConcurrentOperationCount: 1)
            settings.isSuspended = true
            let priorities: [QueuePriority] = [.veryLow, .low, .normal, .high, .veryHigh]
            let operations = priorities.map { priority in
                var operation = OperationDescription(
                    name: "\(priority)",
                    work: .wait(.milliseconds(20))
                )
                operation.priority = priority
                return operation
            }
            let id = try await cluster.submit(Self.graph(operations, settings))
            #expect(cluster.history.current.attempts.isEmpty)
            try await cluster.service.command(.suspensionRequested(.queue(Self.queue), nil))
            await cluster.service.waitUntilFinished(id)

            let attempts = cluster.history.current.attempts
            let byStart = attempts.sorted { ($0.start ?? .zero) < ($1.start ?? .zero) }
            #expect(byStart.map { Int($0.operation.index) } == [4, 3, 2, 1, 0])
            #expect(attempts.allSatisfy { $0.ending == .succeeded })
            // One at a time: each started after the one before had ended.
            for (before, after) in zip(byStart, byStart.dropFirst()) {
                #expect(try #require(before.end) <= #require(after.start))
            }
        }
    }

    @Test func `never more run than the limit in force, while it changes`() async throws {
        try await Self.withWorkers(8) { cluster in
            let settings = QueueSettings(name: Self.queue, maxConcurrentOperationCount: 3)
            // Most are short. Of every fifty, ten last so long that as many run at once as may,
            // however slowly messages come and go.
            let operations = (0..<500).map { number in
                OperationDescription(
                    name: "o\(number)",
                    work: .wait(.milliseconds(number % 50 < 10 ? 200 : 1 + number * 7 % 10))
                )
            }
            cluster.history.change { $0.limit = 3 }
            let id = try await cluster.submit(Self.graph(operations, settings))
            try await cluster.history.wait { $0.finished.count >= 150 }
            // A grant of the moment between the note and the command is judged too mildly, never
            // too severely; the same below, the other way round.
            cluster.history.change { $0.limit = 5 }
            let raisedAt = SystemClock.now()
            try await cluster.service.command(.queueLimitSet(queue: Self.queue, maximum: 5))
            try await cluster.history.wait { $0.finished.count >= 300 }
            try await cluster.service.command(.queueLimitSet(queue: Self.queue, maximum: 2))
            cluster.history.change { $0.limit = 2 }
            await cluster.service.waitUntilFinished(id)

            let attempts = cluster.history.current.attempts.filter { $0.start != nil }
            #expect(attempts.count { $0.ending == .succeeded } == 500)
            #expect(Set(attempts.map(\.worker)).count >= 5, "of one slot each")
            var peaks: [Int: Int] = [:]
            var violations: [String] = []
            for attempt in attempts {
                let start = try #require(attempt.start)
                let running = attempts.count { other in
                    guard let from = other.start, let to = other.end else { return false }
                    return from <= start && start < to
                }
                let limit = attempt.limit == 3 && start >= raisedAt ? 5 : attempt.limit
                peaks[limit] = max(peaks[limit] ?? 0, running)
                if running > limit { violations.append("\(running) with a limit of \(limit)") }
            }
            #expect(violations.isEmpty, "\(violations)")
            #expect(peaks == [2: 2, 3: 3, 5: 5], "each limit is used up")
        }
    }
}
