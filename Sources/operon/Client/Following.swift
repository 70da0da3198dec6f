import OperonModel
import OperonPorts
import OperonTerminal

/// Reads what a coordinator pushes for as long as somebody wants it, over its restarts: what
/// happened meanwhile is told when it is back.
struct Following: Sendable {
    private let session: ClientSession
    private let say: @Sendable (String) async -> Void

    /// From one try to the next while nobody answers; twice as long each time, up to the last.
    private static let pauses: [Duration] = [
        .milliseconds(250), .milliseconds(500), .seconds(1), .seconds(2), .seconds(4),
    ]

    /// `say` is told that the coordinator is away, and that it is back.
    init(_ session: ClientSession, say: (@Sendable (String) async -> Void)? = nil) {
        self.session = session
        self.say = say ?? { session.console.say([$0]) }
    }

    /// Returns when `body`, or `subscribed`, returns true.
    ///
    /// - Parameter subscribed: called when events come, before the first of them; `isBlind`:
    ///   something may have happened that no event will tell.
    /// - Throws: what they throw, and why the first connection failed.
    func run(
        after first: UInt64? = nil,
        graph: String?,
        subscribed: @Sendable (_ isBlind: Bool) async throws -> Bool = { _ in false },
        _ body: @Sendable (ClientEvent) async throws -> Bool
    ) async throws {
        var last = first
        var isBlind = true
        var tries = 0
        var hasBegun = false
        while true {
            do {
                let events = try await session.client.events(after: last, graph: graph)
                if tries > 0 { await say("The coordinator is back.") }
                hasBegun = true
                tries = 0
                if try await subscribed(isBlind) { return }
                for try await item in events {
                    switch item {
                    case .event(let event): last = event.sequence
                    case .gap(_, let end): last = end
                    }
                    if try await body(item) { return }
                }
                try Task.checkCancellation()
            } catch let error where hasBegun && Self.mayPass(error) {
                try Task.checkCancellation()
            }
            // Without a number to go on from, what happens until then is not told.
            isBlind = last == nil
            if tries == 0 { await say("The coordinator does not answer; trying again.") }
            try await Task.sleep(for: Self.pauses[min(tries, Self.pauses.count - 1)])
            tries += 1
        }
    }

    /// Whether the coordinator may only be away for a while.
    private static func mayPass(_ error: any Error) -> Bool {
        switch (error as? ClientError)?.code {
        case .unreachable, .unavailable, .timedOut: true
        case .invalid, .notFound, .conflict, .tooLarge, .unauthorized, .forbidden, .internal: false
        // A stream that broke; a call that was cancelled is found out by whoever catches this.
        case nil: true
        }
    }
}
