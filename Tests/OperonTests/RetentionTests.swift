import ClusterKit
import Foundation
import Logging
import Operon
import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTesting
import Testing

/// Returns so many bytes.
private struct Filler: Operon.Operation {
    var count: Int

    func main(_ context: OperationContext) async throws -> String {
        String(repeating: "x", count: count)
    }
}

/// A program that runs for long holds what it needs, and not what it has ever run.
@Suite(.timeLimit(.minutes(10))) struct RetentionTests {
    /// Operations that the coordinator has rows for, and those of its store.
    private static func rows(of cluster: Operon.Cluster) async throws -> (Int, stored: Int) {
        let embedded = try #require(await cluster.embedded)
        let count = await embedded.service.query { scheduler in
            (0..<scheduler.graphCount).reduce(0) {
                $0 + scheduler.operationCount(of: GraphID(rawValue: UInt32($1)))
            }
        }
        let stored = await (embedded.host.store as? MemoryStore)?.rowCount ?? 0
        return (count, stored)
    }

    /// Returns when this holds: nobody says when a look at what is old is over.
    private static func wait(
        isolation: isolated (any Actor)? = #isolation,
        until isDone: () async throws -> Bool
    ) async throws {
        while try await !isDone() { try await Task.sleep(for: .milliseconds(5)) }
    }

    private static func run(_ count: Int, in queue: Operon.OperationQueue) async throws {
        let handles = (0..<count).map { _ in OperationHandle(Nothing()) }
        try await queue.addOperations(handles, waitUntilFinished: true)
    }

    @Test func whatEndedLongAgoIsDroppedInProcess() async throws {
        let clock = ManualClock()
        let cluster = Cluster.testing(clock: clock, keep: Retention(time: .seconds(3_600)))
        let queue = Operon.OperationQueue(cluster: cluster)
        var rows: [Int] = []
        var stored: [Int] = []
        for round in 0..<12 {
            let handles = (0..<200).map { OperationHandle(Doubled(number: $0)) }
            try await queue.addOperations(handles, waitUntilFinished: true)
            #expect(try await handles[round].value == 2 * round)
            let now = try await Self.rows(of: cluster)
            rows.append(now.0)
            stored.append(now.stored)
            // It goes on in the next graph then.
            clock.advance(by: .seconds(86_401))
        }
        // The last graph is open until something is added. Looks at what is old take place when the
        // clock moves, beside what is added: at most two rounds are late.
        #expect(rows.max() ?? 0 <= 800)
        #expect(stored.max() ?? 0 <= 3_200)
        try await queue.addOperation(Nothing())
        clock.advance(by: .seconds(7_200))
        try await Self.wait {
            let rows = try await Self.rows(of: cluster)
            return rows.0 <= 1 && rows.stored <= 4
        }
        await cluster.close()
    }

    @Test func whatEndsIsDroppedByItsNumberInProcess() async throws {
        let cluster = Cluster.inProcess(slots: 2, keep: Retention(operations: 1_000))
        let queue = Operon.OperationQueue(cluster: cluster)
        let long = try ExternalOperationHandle(Int.self)
        try await queue.addOperation(long)
        // No time passes to speak of: that so many have ended is enough.
        for _ in 0..<4 { try await Self.run(5_000, in: queue) }
        try await queue.addOperation(Nothing())
        // The first graph has an operation that goes on, the second one has ended.
        #expect(try await Self.rows(of: cluster).0 == 20_002)
        // Then the first one is the last that has.
        try await long.complete(1)
        try await Self.wait {
            let rows = try await Self.rows(of: cluster)
            return rows.0 <= 10_002 && rows.stored <= 3 * 10_002
        }
        await cluster.close()
    }

    @Test func manyGraphsAreDroppedBeforeItIsTime() async throws {
        let cluster = Cluster.inProcess(slots: 2, keep: Retention(graphs: 10))
        let graph = try GraphDescription(text: "{\"operations\": {\"a\": {\"wait\": \"0s\"}}}")
        for _ in 0..<100 { try await cluster.submit(graph).waitUntilFinished() }
        try await Self.wait { try await Self.rows(of: cluster).0 <= 11 }
        await cluster.close()
    }

    @Test func outputsInMemoryAreBoundedByTheirBytes() async throws {
        let clock = ManualClock()
        var retention = Retention()
        retention.bytes = 1_000_000
        let cluster = Cluster.testing(clock: clock, keep: retention)
        let queue = Operon.OperationQueue(cluster: cluster)
        var first: OperationHandle<Filler>?
        for _ in 0..<10 {
            let handles = (0..<8).map { _ in OperationHandle(Filler(count: 50_000)) }
            try await queue.addOperations(handles, waitUntilFinished: true)
            first = first ?? handles.first
            clock.advance(by: .seconds(86_401))
        }
        // Three graphs that have ended have more than a megabyte, and there is the open one.
        try await Self.wait { try await Self.rows(of: cluster).0 <= 4 * 8 }
        // Its handle has what it returned.
        #expect(try await first?.value.count == 50_000)
        #expect(try await queue.addOperation(Nothing(), after: [try #require(first)]).value == ())
        await cluster.close()
    }

    /// Takes much, and leaves nothing.
    private struct Swallow: Operon.Operation {
        var text: String

        func main(_ context: OperationContext) async throws {}
    }

    @Test(arguments: [true, false])
    func manyBytesAreDroppedBeforeItIsTime(ofInputs: Bool) async throws {
        var retention = Retention()
        retention.bytes = 1_000_000
        let cluster = Cluster.inProcess(slots: 2, keep: retention)
        let queue = Operon.OperationQueue(cluster: cluster)
        let client = try #require(await cluster.embedded).client
        let text = String(repeating: "a", count: 50_000)
        for _ in 0..<10 {
            let handles: [AnyOperationHandle] = (0..<8).map { _ in
                ofInputs
                    ? OperationHandle(Swallow(text: text))
                    : OperationHandle(Filler(count: text.count))
            }
            try await queue.addOperations(handles, waitUntilFinished: true)
            let graph = try #require(handles[0].id?.graph)
            _ = try await client.close(graph: "\(graph)")
        }
        try await Self.wait { try await Self.rows(of: cluster).0 <= 3 * 8 }
        await cluster.close()
    }

    @Test func noGraphStaysOpenForEver() {
        let now = Timestamp(nanoseconds: 1_000_000_000)
        let day = Duration.seconds(86_400)
        let small = GraphRollover(operationCount: 10, bytes: 1_000, openedAt: now)
        #expect(!small.isFull(for: 99_990, waiting: 0, at: now + day - .nanoseconds(1)))
        #expect(small.isFull(for: 99_991, waiting: 0, at: now))
        #expect(small.isFull(for: 1, waiting: 10, at: now + day))
        let long = GraphRollover(operationCount: 10_000, bytes: 0, openedAt: now)
        #expect(!long.isFull(for: 1, waiting: 1_000, at: now))
        #expect(long.isFull(for: 1, waiting: 999, at: now))
        let large = GraphRollover(operationCount: 16, bytes: 16 << 20, openedAt: now)
        #expect(large.isFull(for: 1, waiting: 16, at: now))
    }

    @Test func theFileOfAnEmbeddedClusterIsUsedAgain() async throws {
        try await Self.withFolder { folder in
            let store = folder + "/jobs.db"
            let clock = ManualClock()
            var sizes: [Int] = []
            for _ in 0..<4 {
                let cluster = Cluster.local(
                    store: store,
                    slots: 2,
                    keep: Retention(time: .seconds(3_600)),
                    time: clock.source,
                    logger: TestCluster.logger
                )
                let queue = Operon.OperationQueue(cluster: cluster)
                for _ in 0..<4 {
                    let handles = (0..<20).map { _ in OperationHandle(Filler(count: 50_000)) }
                    try await queue.addOperations(handles, waitUntilFinished: true)
                    clock.advance(by: .seconds(86_401))
                    // All but the last graph, which is open.
                    try await Self.wait { try await Self.rows(of: cluster).0 <= 20 }
                }
                await cluster.close()
                sizes.append(try Self.size(of: folder))
            }
            // Each life writes four megabytes.
            #expect(sizes[3] < sizes[0] + 3_000_000)
        }
    }

    @Test func whatAFormerLifeLeftIsDropped() async throws {
        try await Self.withFolder { folder in
            let clock = ManualClock()
            let first = Self.embedded(folder, clock)
            let queue = Operon.OperationQueue(cluster: first)
            let handle = try await queue.addOperation(Doubled(number: 4))
            #expect(try await handle.value == 8)
            let id = try #require(handle.id)
            await first.close()
            // Closed with its cluster: nothing will be added to it.
            clock.advance(by: .seconds(1_800))
            let second = Self.embedded(folder, clock)
            #expect(try await second.handle(id, of: Doubled.self).value == 8)
            await second.close()

            clock.advance(by: .seconds(3_600))
            let third = Self.embedded(folder, clock)
            let embedded = try #require(await third.embedded)
            try await Self.wait { await embedded.service.query { $0.isGone(id.graph) } }
            let error = await #expect(throws: OperonError.self) {
                try await third.handle(id, of: Doubled.self)
            }
            #expect(error?.code == .notFound)
            await third.close()
        }
    }

    private static func embedded(_ folder: String, _ clock: ManualClock) -> Operon.Cluster {
        Cluster.local(
            store: folder + "/jobs.db",
            slots: 2,
            keep: Retention(time: .seconds(3_600)),
            time: clock.source,
            logger: TestCluster.logger
        )
    }

    static func withFolder(
        isolation: isolated (any Actor)? = #isolation,
        _ body: (String) async throws -> Void
    ) async throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("operon-retention-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await body(folder.path)
    }

    /// Of the database and its log.
    private static func size(of folder: String) throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: folder)
            .filter { $0.hasPrefix("jobs.db") && !$0.hasSuffix(".worker") }
            .reduce(0) { sum, file in
                let facts = try FileManager.default.attributesOfItem(atPath: folder + "/" + file)
                return sum + (facts[.size] as? Int ?? 0)
            }
    }
}
