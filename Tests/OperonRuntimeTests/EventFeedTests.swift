import ClusterKit
import OperonCore
import OperonModel
import OperonPorts
import OperonTestKit
import Testing

@testable import OperonRuntime

/// What readers of events have in common, and what each of them gets.
@Suite(.timeLimit(.minutes(5))) struct EventFeedTests {
    private static func items(_ batches: EventBatches, _ count: Int) async throws -> [EventItem] {
        var found: [EventItem] = []
        for try await batch in batches {
            found += batch
            if found.count >= count { break }
        }
        return found
    }

    private static func shared(_ items: [EventItem]) -> [SharedEvent] {
        items.compactMap { item in
            guard case .event(let event) = item else { return nil }
            return event
        }
    }

    /// Sets queues, with one event each.
    private static func act(_ cluster: ManualCluster, _ names: Range<Int>) async throws {
        for name in names { _ = try await cluster.client.setQueue("q\(name)", QueueChange()) }
    }

    private static let pair = GraphDescription(
        name: "pair",
        operations: ["a", "b"].map { OperationDescription(name: $0, work: .nothing) }
    )

    private static func numbers(_ items: [EventItem]) -> [UInt64] {
        shared(items).map(\.view.sequence)
    }

    @Test func `all readers get the same events, and each is made once`() async throws {
        try await ManualCluster.run(InMemoryStore(reign: Reign(rawValue: 5))) { cluster in
            let first = try await cluster.client.events(EventQuery())
            let second = try await cluster.client.events(EventQuery())
            async let one = Self.items(first, 20)
            async let other = Self.items(second, 20)
            try await Self.act(cluster, 0..<20)
            let (ones, others) = (Self.shared(try await one), Self.shared(try await other))
            #expect(ones.map(\.view.queue) == (0..<20).map { "q\($0)" })
            #expect(ones.count == others.count)
            #expect(zip(ones, others).allSatisfy { $0 === $1 })
        }
    }

    @Test func `a reader who comes later reads what is only in the store, and goes on`()
        async throws
    {
        try await ManualCluster.run(InMemoryStore(reign: Reign(rawValue: 5))) { cluster in
            try await Self.act(cluster, 0..<300)
            let late = try await cluster.client.events(EventQuery(after: 0))
            async let found = Self.items(late, 600)
            try await Self.act(cluster, 300..<600)
            #expect(Self.numbers(try await found) == Array(1...600))
        }
    }

    @Test func `events that came while nobody read are not skipped afterwards`() async throws {
        try await ManualCluster.run(InMemoryStore(reign: Reign(rawValue: 5))) { cluster in
            for round in 0..<3 {
                let start = 20 * round
                do {
                    let batches = try await cluster.client.events(EventQuery(after: 0))
                    async let found = Self.items(batches, start + 10)
                    try await Self.act(cluster, start..<start + 10)
                    #expect(Self.numbers(try await found) == Array(1...UInt64(start + 10)))
                }
                try await Self.act(cluster, start + 10..<start + 20)
            }
        }
    }

    @Test func `a reader gets only the kinds and the graph that it asks for`() async throws {
        try await ManualCluster.run(InMemoryStore(reign: Reign(rawValue: 5))) { cluster in
            let graph = try await cluster.client.submit(Submission(graph: Self.pair))
            let other = try await cluster.client.submit(Submission(graph: Self.pair))
            let all = EventQuery(after: 0, graph: "\(graph.id)")
            let ends = EventQuery(after: 0, graph: "\(graph.id)", kinds: [.graphFinished])
            let batches = try await cluster.client.events(all)
            let ending = try await cluster.client.events(ends)
            async let end = Self.items(ending, 1)
            for id in [other.id, graph.id] {
                _ = try await cluster.client.cancel(.graph("\(id)"), CancelRequest())
            }
            let finished = Self.shared(try await end)
            #expect(finished.map(\.view.kind.known) == [.graphFinished])
            #expect(finished.map(\.view.graph) == [graph.id])
            let seen = Self.shared(try await Self.items(batches, 5))
            #expect(seen.allSatisfy { $0.view.graph == graph.id })
            #expect(seen.contains { $0.view.kind.known == .graphCancelled })
        }
    }

    @Test func `a reader of outcomes gets these, and what tells none`() async throws {
        try await ManualCluster.run(InMemoryStore(reign: Reign(rawValue: 5))) { cluster in
            var graph = Self.pair
            graph.operations[0].work = .external(input: .empty)
            graph.operations[1].work = .external(input: .empty)
            graph.operations[1].dependencies = []
            let names = graph.operations.map(\.name)
            let id = try await cluster.client.submit(Submission(graph: graph)).id
            let query = EventQuery(
                after: 0,
                graph: "\(id)",
                kinds: [.finished, .graphFinished],
                outcomes: [.failed, .skipped]
            )
            let batches = try await cluster.client.events(query)
            for (name, end) in zip(
                names,
                [Completion.succeeded(.empty), .failed(.exit(code: 3))]
            ) {
                _ = try await cluster.client.complete(
                    OperationSelector(graph: "\(id)", operation: name),
                    attempt: nil,
                    with: end
                )
            }
            let seen = Self.shared(try await Self.items(batches, 2))
            #expect(seen.map(\.view.kind.known) == [.finished, .graphFinished])
            #expect(seen.map(\.view.operation?.name) == [names[1], nil])
        }
    }

    @Test func `a step with more events than memory may hold is read from the store`() async throws
    {
        var configuration = Scheduler.Configuration()
        // Each has an event of its own.
        configuration.rangeMin = .max
        let store = InMemoryStore(reign: Reign(rawValue: 5))
        try await ManualCluster.run(store, scheduler: configuration) { cluster in
            let count = EventFeed.eventsMax + 1_000
            let names = (0..<count).map { "o\($0)" }
            let graph = GraphDescription(
                name: "wide",
                operations: names.map { OperationDescription(name: $0, work: .nothing) }
            )
            let batches = try await cluster.client.events(EventQuery())
            async let found = Self.items(batches, count + 3)
            _ = try await cluster.client.submit(Submission(graph: graph))
            _ = try await cluster.client.cancel(.graph("wide"), CancelRequest())
            let numbers = Self.numbers(try await found)
            #expect(numbers == Array(1...UInt64(numbers.count)))
            #expect(numbers.count >= count)
        }
    }

    @Test func `what is still stored is read, however much before it is not`() async throws {
        var configuration = Scheduler.Configuration()
        configuration.limits.storedEvents = 300
        let store = InMemoryStore(reign: Reign(rawValue: 5), limits: configuration.limits)
        try await ManualCluster.run(store, scheduler: configuration) { cluster in
            try await Self.act(cluster, 0..<1_000)
            let batches = try await cluster.client.events(EventQuery(after: 2))
            var iterator = batches.makeAsyncIterator()
            guard case .gap(3, let end)? = try await iterator.next()?.first else {
                Issue.record("the events that are gone are no gap")
                return
            }
            #expect(end < 701)
            var numbers: [UInt64] = []
            while numbers.last != 1_000, let batch = try await iterator.next() {
                numbers += Self.numbers(batch)
            }
            #expect(numbers == Array(end + 1...1_000))
        }
    }

    @Test func `events that fill pages by their bytes are all read`() async throws {
        try await ManualCluster.run(InMemoryStore(reign: Reign(rawValue: 5))) { cluster in
            var request = SuspendRequest()
            request.reason = String(repeating: "long ", count: 200)
            let count = 3 * StoredEvent.pageBytes / 2 / request.reason.utf8.count
            try await Self.act(cluster, 0..<1)
            for _ in 1..<count { _ = try await cluster.client.suspend(.queue("q0"), request) }
            let batches = try await cluster.client.events(EventQuery(after: 0))
            let found = try await Self.items(batches, count)
            #expect(Self.numbers(found) == Array(1...UInt64(count)))
        }
    }

    @Test func `a reader who wants nothing of it is told how far the events go`() async throws {
        try await ManualCluster.run(InMemoryStore(reign: Reign(rawValue: 5))) { cluster in
            try await Self.act(cluster, 0..<5_000)
            let query = EventQuery(after: 0, kinds: [.graphFinished])
            var iterator = try await cluster.client.events(query).makeAsyncIterator()
            guard case .position(let number)? = try await iterator.next()?.first else {
                Issue.record("no position")
                return
            }
            #expect((4_096...5_000).contains(number))
        }
    }

    @Test func `nothing stays in memory when the last reader has gone`() async throws {
        try await ManualCluster.run(InMemoryStore(reign: Reign(rawValue: 5))) { cluster in
            let service = cluster.service
            do {
                let batches = try await cluster.client.events(EventQuery())
                async let found = Self.items(batches, 5)
                try await Self.act(cluster, 0..<5)
                _ = try await found
                #expect(service.feed.recent(with: 5) != nil)
                #expect(await service.eventReaderCount == 1)
            }
            // The reader tells the service in a task of its own.
            while await service.eventReaderCount > 0 { await Task.yield() }
            #expect(service.feed.recent(with: 5) == nil)
        }
    }
}
