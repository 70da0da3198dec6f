import OperonModel
import OperonPorts

/// Reads what a coordinator pushes for as long as somebody wants it, over its restarts: the client
/// opens what was cut again, behind the last event that it saw.
struct Following: Sendable {
    private let session: ClientSession

    init(_ session: ClientSession) { self.session = session }

    /// Returns when `body`, or `subscribed`, returns true.
    ///
    /// - Parameter first: the number of the event before the first; `nil`: the last until now.
    /// - Parameter subscribed: called when events come, before the first of them.
    /// - Throws: what they throw, and why the coordinator cannot be asked.
    func run(
        after first: UInt64? = nil,
        graph: String?,
        subscribed: @Sendable () async throws -> Bool = { false },
        _ body: @Sendable (ClientEvent) async throws -> Bool
    ) async throws {
        // With a number from the beginning, a cut before the first event hides none.
        var after = first
        if after == nil { after = try await session.client.status().lastEvent }
        let events = try await session.client.events(after: after, graph: graph)
        if try await subscribed() { return }
        for try await item in events {
            if try await body(item) { return }
        }
        try Task.checkCancellation()
        throw ClientError(.unreachable, "The coordinator ended the stream of events.")
    }
}
