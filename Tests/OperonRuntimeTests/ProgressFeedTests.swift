import ClusterKit
import OperonCore
import OperonModel
import OperonPorts
import OperonTestKit
import Testing

@testable import OperonRuntime

/// What those who watch a graph are sent of it.
@Suite(.timeLimit(.minutes(5))) struct ProgressFeedTests {
    private static func graph(_ operations: [(String, Work)]) -> GraphDescription {
        GraphDescription(
            name: "g",
            operations: operations.map { OperationDescription(name: $0.0, work: $0.1) }
        )
    }

    /// Two repeated operations with `size` elements each, whose group follows them.
    private static func repeated(_ size: Int) -> GraphDescription {
        let names = ["r", "s"].flatMap { name in
            (0..<size).map { "\(name)[\($0)]" } + [name]
        }
        return graph(names.map { ($0, .nothing) })
    }

    /// Runs with a coordinator that counts as seldom as can be, so that only an end is sent.
    private static func run(
        pace: Duration = .seconds(100_000),
        _ body: (ManualCluster) async throws -> Void
    ) async throws {
        try await ManualCluster.run(InMemoryStore(reign: Reign(rawValue: 5))) { cluster in
            await cluster.service.setProgressPace(pace)
            try await body(cluster)
        }
    }

    private static func cancel(_ operation: String, _ cluster: ManualCluster) async throws {
        let operation = OperationSelector(graph: "g", operation: operation)
        _ = try await cluster.client.cancel(.operation(operation), CancelRequest())
    }

    @Test func `the end of a graph is sent at once, and nothing within the pause before it`()
        async throws
    {
        try await Self.run { cluster in
            _ = try await cluster.client.submit(
                Submission(graph: Self.graph([("a", .nothing), ("b", .nothing), ("c", .nothing)]))
            )
            var updates = try await cluster.client.progress(of: "g").makeAsyncIterator()
            #expect(try await updates.next()?.view.graph.counts.cancelled == 0)
            for name in ["a", "b", "c"] { try await Self.cancel(name, cluster) }
            let ended = try await updates.next()?.view.graph
            #expect(ended?.counts.cancelled == 3)
            #expect(ended?.status == .cancelled)
            #expect(ended?.exitCode == 3)
        }
    }

    @Test func `changes are sent after the pause, and what is no change is not`() async throws {
        try await Self.run(pace: .milliseconds(1)) { cluster in
            _ = try await cluster.client.submit(
                Submission(graph: Self.graph([("a", .nothing), ("b", .nothing)]))
            )
            var updates = try await cluster.client.progress(of: "g").makeAsyncIterator()
            #expect(try await updates.next()?.view.graph.counts.cancelled == 0)
            for index in 0..<20 {
                _ = try await cluster.client.setQueue("other-\(index)", QueueChange())
            }
            try await Self.cancel("a", cluster)
            #expect(try await updates.next()?.view.graph.counts.cancelled == 1)
            _ = try await cluster.client.suspend(.graph("g"), SuspendRequest())
            #expect(try await updates.next()?.view.graph.status == .suspended)
        }
    }

    @Test func `all who watch a graph get the same counts, and a slow reader only the latest`()
        async throws
    {
        try await Self.run(pace: .milliseconds(1)) { cluster in
            let names = (0..<30).map { "o\($0)" }
            _ = try await cluster.client.submit(
                Submission(graph: Self.graph(names.map { ($0, .nothing) }))
            )
            var fast = try await cluster.client.progress(of: "g").makeAsyncIterator()
            var slow = try await cluster.client.progress(of: "g").makeAsyncIterator()
            var last = try await fast.next()
            for (index, name) in names.enumerated() {
                try await Self.cancel(name, cluster)
                while (last?.view.graph.counts.cancelled ?? 0) <= index {
                    last = try await fast.next()
                }
            }
            #expect(try await slow.next() === last)
            #expect(last?.view.graph.counts.cancelled == 30)
            #expect(await cluster.service.watchedGraphCount == 1)
        }
    }

    @Test func `what somebody completes is named among what runs`() async throws {
        try await Self.run(pace: .milliseconds(1)) { cluster in
            let graph = Self.graph([
                ("a", .external(input: .empty)), ("b", .nothing), ("c", .external(input: .empty)),
            ])
            _ = try await cluster.client.submit(Submission(graph: graph))
            var updates = try await cluster.client.progress(of: "g").makeAsyncIterator()
            let running = try await updates.next()?.view.running
            #expect(running?.map(\.title) == ["a (external)", "c (external)"])
        }
    }

    @Test func `nobody counts when nobody watches any more`() async throws {
        try await Self.run { cluster in
            _ = try await cluster.client.submit(Submission(graph: Self.graph([("a", .nothing)])))
            for _ in 0..<3 {
                do {
                    let first = try await cluster.client.progress(of: "g")
                    var second = try await cluster.client.progress(of: "0").makeAsyncIterator()
                    #expect(try await second.next() != nil)
                    #expect(await cluster.service.watchedGraphCount == 1)
                    withExtendedLifetime(first) {}
                }
                // The pause of the feed ends with its last reader.
                while await cluster.service.watchedGraphCount > 0 { await Task.yield() }
                #expect(await cluster.service.waiterCount == 0)
            }
        }
    }

    @Test func `repeated operations are counted while they run, in slices`() async throws {
        let size = ProgressFeed.sliceOperations / 2 + 100
        try await Self.run(pace: .milliseconds(1)) { cluster in
            _ = try await cluster.client.submit(Submission(graph: Self.repeated(size)))
            var updates = try await cluster.client.progress(of: "g").makeAsyncIterator()
            // Everything is ready.
            let first = try await updates.next()?.view.repeated
            #expect(first?.map(\.name) == ["r[*]", "s[*]"])
            #expect(first?.map(\.counts.ready) == [size, size])
            for name in ["s[1]", "s[\(size - 1)]"] { try await Self.cancel(name, cluster) }
            var counts: StateCounts?
            while counts?.cancelled != 2, let update = try await updates.next() {
                counts = update.view.repeated.last?.counts
            }
            #expect(counts?.ready == size - 2)
            _ = try await cluster.client.cancel(.graph("g"), CancelRequest())
            var last: GraphProgressView?
            while last?.graph.status.isFinished != true, let update = try await updates.next() {
                last = update.view
            }
            #expect(last?.graph.status == .cancelled)
            #expect(last?.repeated == [])
        }
    }

    @Test func `operations that are added are counted, and belong to their repeated operation`()
        async throws
    {
        try await Self.run(pace: .milliseconds(1)) { cluster in
            var submission = Submission(graph: Self.graph([("a", .nothing)]))
            submission.isOpen = true
            _ = try await cluster.client.submit(submission)
            var updates = try await cluster.client.progress(of: "g").makeAsyncIterator()
            #expect(try await updates.next()?.view.repeated == [])
            _ = try await cluster.client.add(Submission(graph: Self.repeated(3)), to: "g")
            let view = try await updates.next()?.view
            #expect(view?.graph.counts.total == 9)
            #expect(view?.repeated.map(\.counts.total) == [3, 3])
        }
    }

    @Test func `only as many repeated operations are sent as are shown`() async throws {
        let shown = GraphProgressView.repeatedMax
        let names = (0..<shown + 2).flatMap { ["r\($0)[1]", "r\($0)"] }
        try await Self.run { cluster in
            _ = try await cluster.client.submit(
                Submission(graph: Self.graph(names.map { ($0, .nothing) }))
            )
            var updates = try await cluster.client.progress(of: "g").makeAsyncIterator()
            let repeated = try await updates.next()?.view.repeated
            #expect(repeated?.map(\.name) == (0..<shown).map { "r\($0)[*]" })
        }
    }

    @Test func `only what is there is watched, and no longer than the coordinator runs`()
        async throws
    {
        try await Self.run { cluster in
            await #expect(throws: ClientError.noGraph("g")) {
                _ = try await cluster.client.progress(of: "g")
            }
            _ = try await cluster.client.submit(Submission(graph: Self.graph([("a", .nothing)])))
            var updates = try await cluster.client.progress(of: "g").makeAsyncIterator()
            #expect(try await updates.next() != nil)
            await cluster.host.stop(.forGood(kill: true))
            #expect(try await updates.next() == nil)
        }
    }
}
