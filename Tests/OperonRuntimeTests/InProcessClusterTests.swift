import Foundation
import Logging
import NIOConcurrencyHelpers
import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTestKit
import Testing

/// Kinds that are made known while the worker runs.
private final class KindTable: Sendable {
    private let known = NIOLockedValueBox<[String: RegisteredKind]>([:])

    func add(_ name: String, _ run: @escaping @Sendable (Invocation) async -> InvocationEnd) {
        known.withLockedValue { $0[name] = RegisteredKind(name: name, run: run) }
    }

    var kinds: RegisteredKinds {
        RegisteredKinds(threads: nil) { name in self.known.withLockedValue { $0[name] } }
    }
}

@Suite(.timeLimit(.minutes(5))) struct InProcessClusterTests {
    private let table = KindTable()
    private static let reign = Reign(rawValue: 0xA11)

    private func open(_ store: any OperationStore) async throws -> InProcessCluster {
        var configuration = InProcessCluster.Configuration(
            slots: 2,
            environment: [:],
            version: "test"
        )
        configuration.kinds = table.kinds
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        return try await InProcessCluster.open(store, configuration, logger: logger)
    }

    private func registered(
        _ name: String,
        kind: String,
        input: String = "",
        after dependencies: [String] = []
    ) -> OperationDescription {
        var operation = OperationDescription(
            name: name,
            work: .registered(kind: kind, input: Payload(bytes: Array(input.utf8)))
        )
        operation.dependencies = dependencies.map { DependencyDescription($0) }
        return operation
    }

    private func submission(_ operations: OperationDescription..., open: Bool = false)
        -> Submission
    {
        var submission = Submission(
            graph: GraphDescription(name: "program", operations: operations)
        )
        submission.isOpen = open
        return submission
    }

    /// Runs `body` while the cluster serves; then ends it.
    private func serve(
        _ cluster: InProcessCluster,
        _ body: (LocalCoordinator) async throws -> Void
    ) async throws {
        let running = Task { try await cluster.run() }
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(cluster.client))
        } catch {
            result = .failure(error)
        }
        await cluster.stop(drain: .seconds(30))
        try await running.value
        try result.get()
    }

    /// The events of a graph from the first to the one of this kind.
    private func events(
        of graph: UInt32,
        through kind: String,
        _ client: LocalCoordinator
    ) async throws -> [EventView] {
        var events: [EventView] = []
        for try await event in try await client.events(after: 0, graph: "\(graph)") {
            guard case .event(let view) = event else { continue }
            events.append(view)
            if view.kind == kind { break }
        }
        return events
    }

    @Test func `everything a client asks is answered without a disk`() async throws {
        table.add("Shout") { invocation in
            invocation.log("shouting")
            let text = String(decoding: invocation.input.bytes, as: UTF8.self)
            return .returned(Payload(bytes: Array(text.uppercased().utf8)))
        }
        try await serve(open(MemoryStore(reign: Self.reign))) { client in
            let graph = try await client.submit(
                submission(
                    registered("one", kind: "Shout", input: "hey"),
                    registered("two", kind: "Later", after: ["one"]),
                    open: true
                )
            )
            // Its kind was not heard of before, and is nobody's yet.
            let events = try await events(of: graph.id, through: "finished", client)
            #expect(events.map(\.kind).filter { $0 == "finished" }.count == 1)
            #expect(events.last?.outcome == .succeeded)
            let one = OperationSelector(graph: "\(graph.id)", operation: "one")
            #expect(try await client.output(of: one)?.bytes == Array("HEY".utf8))
            #expect(try await client.log(of: one).map(\.text) == ["shouting\n"])
            #expect(try await client.operation(one).attempts.map(\.ending) == ["succeeded"])
            let workers = try await client.workers()
            #expect(workers.map(\.runsAnyKind) == [true])
            #expect(workers.map(\.name) == ["local"])
        }
    }

    @Test func `a kind is known from the moment it is made known`() async throws {
        try await serve(open(MemoryStore(reign: Self.reign))) { client in
            let unknown = try await client.submit(submission(registered("a", kind: "Late")))
            let failed = try await events(of: unknown.id, through: "graphFinished", client)
            #expect(failed.compactMap(\.error?.code) == ["kindUnknown"])

            table.add("Late") { _ in .returned(.empty) }
            let known = try await client.submit(submission(registered("a", kind: "Late")))
            let done = try await events(of: known.id, through: "graphFinished", client)
            #expect(done.compactMap(\.outcome) == [.succeeded])
        }
    }

    @Test func `the next life on the same store goes on with what was not done`() async throws {
        let store = MemoryStore(reign: Self.reign)
        let started = Latch()
        table.add("Long") { invocation in
            started.open()
            while !invocation.isCancelled() {
                do { try await Task.sleep(for: .milliseconds(5)) } catch {}
            }
            return .stopped
        }
        let first = try await open(store)
        let running = Task { try await first.run() }
        let graph = try await first.client.submit(submission(registered("a", kind: "Long")))
        await started.wait()
        await first.stopNow()
        try await running.value

        table.add("Long") { _ in .returned(Payload(bytes: Array("1".utf8))) }
        try await serve(open(store)) { client in
            let events = try await events(of: graph.id, through: "graphFinished", client)
            #expect(events.last?.kind == "graphFinished")
            let view = try await client.graph("\(graph.id)")
            #expect(view.counts.succeeded == 1)
            let status = try await client.status()
            #expect(status.epoch == 2)
        }
    }

    @Test func `what cannot be opened leaves the store to others`() async throws {
        let store = MemoryStore(reign: Self.reign)
        let cluster = try await open(store)
        await #expect(throws: StoreError.self) { try await open(store) }
        await cluster.abandon()

        let again = try await open(store)
        await again.abandon()
    }

    @Test func `of events the last ones are kept`() async throws {
        var limits = Limits()
        limits.storedEvents = 100
        let store = MemoryStore(reign: Self.reign, limits: limits)
        _ = try await store.open()
        for number in 1...1_000 as ClosedRange<UInt64> {
            var batch = StoreBatch(wall: WallTime(nanosecondsSince1970: 1))
            batch.events = [StoredEvent(sequence: number, body: [1])]
            try await store.commit(batch)
        }
        let kept = try await store.events(after: 0, limit: .max)
        #expect(kept.last?.sequence == 1_000)
        #expect((100...111).contains(kept.count))
        let page = try await store.events(after: 995, limit: 3)
        #expect(page.map(\.sequence) == [996, 997, 998])
        #expect(try await store.events(after: 1_000, limit: 3).isEmpty)
    }
}
