import OperonModel
import OperonPorts

/// Reads the events that a coordinator pushes, across restarts of the coordinator: the client
/// reopens a stream that was cut, after the last event that it received.
struct Following: Sendable {
    private let session: ClientSession

    init(_ session: ClientSession) { self.session = session }

    /// Returns when `body` or `subscribed` returns true. The coordinator has answered before.
    ///
    /// - Parameter first: the number of the event before the first one to read; `nil`: the latest
    ///   event.
    /// - Parameter kinds: only events of these kinds; empty: of every kind.
    /// - Parameter subscribed: called when the stream is open, before the first event.
    /// - Throws: the errors of both closures, and why the coordinator cannot be reached.
    func run(
        after first: UInt64? = nil,
        graph: String?,
        kinds: Set<ClusterEvent.Kind> = [],
        subscribed: @Sendable () async throws -> Bool = { false },
        _ body: @Sendable (ClientEvent) async throws -> Bool
    ) async throws {
        let each: @Sendable ([ClientEvent]) async throws -> Bool = { batch in
            for event in batch where try await body(event) { return true }
            return false
        }
        try await run(
            after: first,
            graph: graph,
            kinds: kinds,
            subscribed: subscribed,
            batches: each
        )
    }

    /// The same with all events at once that have come by now.
    ///
    /// - Parameters:
    ///   - outcomes: see `EventQuery`.
    ///   - isSilent: the same.
    func run(
        after first: UInt64? = nil,
        graph: String?,
        kinds: Set<ClusterEvent.Kind> = [],
        outcomes: Set<OutcomeKind> = [],
        isSilent: Bool = false,
        subscribed: @Sendable () async throws -> Bool = { false },
        batches body: @Sendable ([ClientEvent]) async throws -> Bool
    ) async throws {
        // With a number from the start, a cut before the first event loses no events.
        var after = first
        if after == nil {
            after = try await session.patiently { try await session.client.status() }.lastEvent
        }
        var query = EventQuery(after: after, graph: graph, kinds: kinds, outcomes: outcomes)
        query.isSilent = isSilent
        let asked = query
        let batches = try await session.patiently { try await session.client.events(asked) }
        if try await subscribed() { return }
        for try await batch in batches where try await body(batch.compactMap(\.event)) { return }
        try Task.checkCancellation()
        throw ClientError(.unreachable, "The coordinator ended the stream of events.")
    }
}
