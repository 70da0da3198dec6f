package import OperonModel
import Synchronization

/// Which events a reader wants.
package struct EventQuery: Hashable, Sendable {
    /// The number of the event before the first one; `nil`: the latest event.
    package var after: UInt64?
    /// Only events of this graph.
    package var graph: String?
    /// Only events of these kinds; empty: of every kind.
    package var kinds: Set<ClusterEvent.Kind> = []
    /// Of the events that tell an outcome, only those with one of these; empty: with any.
    package var outcomes: Set<OutcomeKind> = []
    /// Whether nobody is told of cuts of the stream, because another stream of the reader tells it.
    package var isSilent = false

    package init(
        after: UInt64? = nil,
        graph: String? = nil,
        kinds: Set<ClusterEvent.Kind> = [],
        outcomes: Set<OutcomeKind> = []
    ) {
        self.after = after
        self.graph = graph
        self.kinds = kinds
        self.outcomes = outcomes
    }
}

/// What a stream of events brings.
package enum EventItem: Sendable {
    case event(SharedEvent)
    /// As in `ClientEvent`.
    case gap(UInt64, UInt64)
    /// Up to this number there was nothing more that the reader wants. A stream that continues
    /// after it misses nothing.
    case position(UInt64)

    /// `nil`: nothing has happened that the reader wants.
    package var event: ClientEvent? {
        switch self {
        case .event(let shared): .event(shared.view)
        case .gap(let first, let last): .gap(first, last)
        case .position: nil
        }
    }
}

/// An event that several readers have in common. It is encoded at most once.
package final class SharedEvent: Sendable {
    package let view: EventView
    private let encoded = Mutex<[UInt8]?>(nil)

    package init(_ view: EventView) { self.view = view }

    /// Its encoded form. The first call decides it, so all readers have to pass the same function.
    package func encoded(by encode: (EventView) -> [UInt8]) -> [UInt8] {
        encoded.withLock { encoded in
            if let encoded { return encoded }
            let bytes = encode(view)
            encoded = bytes
            return bytes
        }
    }
}

/// Events in the order of their numbers, in batches of those that are there at the same time.
package typealias EventBatches = AsyncThrowingStream<[EventItem], any Error>

extension CoordinatorClient {
    /// The same events one by one.
    package func events(
        after sequence: UInt64?,
        graph: String?,
        kinds: Set<ClusterEvent.Kind> = []
    ) async throws(ClientError) -> AsyncThrowingStream<ClientEvent, any Error> {
        let batches = try await events(EventQuery(after: sequence, graph: graph, kinds: kinds))
        let reader = SingleEvents(batches)
        return AsyncThrowingStream { try await reader.next() }
    }
}

private actor SingleEvents {
    private var batches: EventBatches.AsyncIterator
    private var batch: ArraySlice<EventItem> = []

    init(_ batches: EventBatches) { self.batches = batches.makeAsyncIterator() }

    func next() async throws -> ClientEvent? {
        while true {
            while let item = batch.popFirst() {
                if let event = item.event { return event }
            }
            // Taken out for the call, because the call suspends.
            var batches = batches
            guard let next = try await batches.next(isolation: self) else { return nil }
            self.batches = batches
            batch = next[...]
        }
    }
}
