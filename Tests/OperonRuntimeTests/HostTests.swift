import Logging
import NIOConcurrencyHelpers
import OperonModel
import OperonPorts
import OperonRuntime
import Testing

/// A leadership that notes what happens, and whether the store is open then.
private final class NotedLeadership: Leadership {
    let store = MemoryStore(reign: Reign(rawValue: 1))
    private let refuses: Bool
    private let noted = NIOLockedValueBox<[String]>([])

    init(refuses: Bool = false) { self.refuses = refuses }

    var notes: [String] { noted.withLockedValue { $0 } }

    func note(_ what: String) async {
        let isOpen = (try? await store.sync()) != nil
        noted.withLockedValue { $0.append(isOpen ? "\(what), store open" : what) }
    }

    func acquire() async throws {
        await note("acquire")
        if refuses { throw StoreError(.held, "another coordinator leads") }
    }

    func release() async { await note("release") }
}

@Suite(.timeLimit(.minutes(5))) struct HostTests {
    private static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    private static func open(
        _ leadership: NotedLeadership,
        failing: Bool = false
    ) async throws -> CoordinatorHost {
        try await CoordinatorHost.open(
            leadership.store,
            leadership: leadership,
            CoordinatorHost.Configuration(),
            logger: logger
        ) { _, _ in
            await leadership.note("link")
            if failing { throw PortError(.unreachable, "no broker") }
            return CoordinatorHost.Link(InProcessHub().makeCoordinator())
        }
    }

    @Test func `a coordinator leads before it opens its store, and until the store is closed`()
        async throws
    {
        let leadership = NotedLeadership()
        let host = try await Self.open(leadership)
        let running = Task { try await host.runAndClose() }
        await host.stop(.drain(within: .zero))
        try await running.value
        #expect(leadership.notes == ["acquire", "link, store open", "release"])
    }

    @Test func `who does not lead opens nothing`() async throws {
        let leadership = NotedLeadership(refuses: true)
        await #expect(throws: StoreError.self) { try await Self.open(leadership) }
        #expect(leadership.notes == ["acquire"])
    }

    @Test func `a link that cannot be made leaves nothing open`() async throws {
        let leadership = NotedLeadership()
        await #expect(throws: PortError.self) { try await Self.open(leadership, failing: true) }
        #expect(leadership.notes == ["acquire", "link, store open", "release"])
    }

    @Test func `an activity that fails ends the coordinator`() async throws {
        let leadership = NotedLeadership()
        let host = try await Self.open(leadership)
        let activity = CoordinatorHost.Activity { _ in throw PortError(.unreachable, "gone") }
        await #expect(throws: PortError.self) { try await host.runAndClose(beside: [activity]) }
        #expect(leadership.notes.last == "release")
    }

    @Test func `the second signal ends a worker that drains, and a second drain does not`()
        async throws
    {
        let hub = InProcessHub()
        let host = try await CoordinatorHost.open(
            MemoryStore(reign: Reign(rawValue: 1)),
            CoordinatorHost.Configuration(),
            logger: Self.logger
        ) { _, _ in CoordinatorHost.Link(hub.makeCoordinator()) }
        let running = Task { try await host.runAndClose() }
        let (started, draining) = (Latch(), Latch())
        var configuration = WorkerHost.Configuration(slots: 1, environment: [:]) { _ in }
        let kind = RegisteredKind(name: "Block") { _ in
            started.open()
            // Until it is cancelled.
            await Latch().wait()
            return .stopped
        }
        configuration.kinds = RegisteredKinds([kind], threads: nil, program: nil)
        let worker = try WorkerHost(configuration, logger: Self.logger) { incarnation in
            hub.makeWorker(incarnation: incarnation)
        }
        let (requests, request) = AsyncStream<WorkerHost.EndRequest>.makeStream()
        let serving = Task { try await worker.serve(until: requests) { draining.open() } }
        let client = LocalCoordinator(service: host.service, caller: "", version: "test")
        let operation = OperationDescription(
            name: "a",
            work: .registered(kind: "Block", input: .empty)
        )
        _ = try await client.submit(
            Submission(graph: GraphDescription(name: "g", operations: [operation]))
        )
        await started.wait()
        request.yield(.signal(15))
        await draining.wait()
        request.yield(.drain)
        request.yield(.signal(2))
        #expect(try await serving.value == 2)
        await host.stop(.now)
        try await running.value
    }
}
