internal import OperonModel
internal import OperonPorts

/// An event that concerns an operation or its queue; among all events of a cluster, also one of
/// something else, such as a worker or a trigger.
public struct OperationEvent: Hashable, Sendable {
    /// The kind of an event. Later versions may add kinds.
    @nonexhaustive
    public enum Kind: Hashable, Sendable {
        /// The state at the beginning of the stream. The events after it happened later, or are
        /// already reflected in it.
        case state(OperationState)
        /// A worker was given an attempt.
        case dispatched
        /// An attempt started to run.
        case started
        /// An attempt ended, with or without a failure of its own.
        case attemptEnded
        /// Another attempt will follow after a pause.
        case retry
        /// The operation was asked to stop, or not to start.
        case cancelRequested
        /// The operation has finished.
        case finished(OutcomeKind)
        /// The operation and those after it in its graph, `count` in all, have finished together:
        /// at least 64 were cancelled at once. The events of one operation say `finished` instead.
        case rangeFinished(OutcomeKind, count: Int)
        /// The finished operation was reopened for a retry.
        case reopened
        /// The priority of the operation changed.
        case priorityChanged
        /// A dependency was added to the operation.
        case dependencyAdded
        /// A dependency was removed from the operation.
        case dependencyRemoved
        /// The operation, its graph or its queue was suspended: it starts nothing more.
        case suspended
        /// The operation, its graph or its queue was resumed.
        case resumed
        /// The limit or the priority of the queue changed.
        case queueChanged
        /// Everything in the queue was cancelled.
        case queueCancelled
        /// Operations were added. If the event names an operation, that running operation added
        /// them.
        case added
        /// The events with these numbers are lost. The gap starts at the first event of all if the
        /// events seen so far do not belong to what the coordinator has now, for example after its
        /// database was replaced by an older copy. In that case all events seen so far are void.
        case gap(first: UInt64, last: UInt64)
        /// An event of something else, or one that this version does not know, with the name that
        /// the coordinator gave it.
        case other(String)
    }

    /// The kind of the event.
    public let kind: Kind
    /// The number of the event in its cluster, from 1. Pass it to continue after an interruption.
    public let sequence: UInt64
    /// The time of the event; `nil` for a gap, and for the state at the beginning.
    public let date: WallTime?
    /// The operation that the event concerns, if any.
    public let operation: OperationID?
    /// The name of that operation, as shown to people.
    public let operationName: String?
    /// The queue that the event concerns.
    public let queueName: String?
    /// The attempt that the event concerns, such as `1.17`.
    public let attempt: String?
    /// The worker that has, or had, the attempt.
    public let worker: String?
    /// The trigger that the event concerns, such as one that was fired.
    public let triggerName: String?
    /// The number of that trigger's firing, from 1; `nil`: the event is about none.
    public let firing: Int?

    init(_ kind: Kind, sequence: UInt64, operation: OperationID? = nil, name: String? = nil) {
        self.kind = kind
        self.sequence = sequence
        date = nil
        self.operation = operation
        operationName = name
        queueName = nil
        attempt = nil
        worker = nil
        triggerName = nil
        firing = nil
    }

    /// - Parameter reader: The only operation that the reader asks about, with its name.
    init(_ view: EventView, for reader: (id: OperationID, name: String)?) {
        let first = view.operation.map {
            OperationID(graph: GraphID(rawValue: $0.graph), index: $0.index)
        }
        if let reader, let first, let outcome = view.outcome,
            view.kind.known == .rangeFinished, reader.id.graph == first.graph,
            reader.id.index >= first.index, reader.id.index - first.index < view.count ?? 1
        {
            (kind, operation, operationName) = (.finished(outcome), reader.id, reader.name)
        } else {
            (kind, operation, operationName) = (Kind(view), first, view.operation?.name)
        }
        sequence = view.sequence
        date = view.at.time
        queueName = view.queue
        attempt = view.attempt
        worker = view.worker
        triggerName = view.trigger
        firing = view.firing.map { Int(clamping: $0) }
    }
}

extension OperationEvent.Kind {
    fileprivate init(_ view: EventView) {
        let other = Self.other(view.kind.rawValue)
        switch view.kind.known {
        case .granted: self = .dispatched
        case .started: self = .started
        case .attemptEnded: self = .attemptEnded
        case .retry: self = .retry
        case .cancelRequested: self = .cancelRequested
        case .finished: self = view.outcome.map { .finished($0) } ?? other
        case .rangeFinished:
            self = view.outcome.map { .rangeFinished($0, count: Int(view.count ?? 1)) } ?? other
        case .reopened: self = .reopened
        case .priority: self = .priorityChanged
        case .dependencyAdded: self = .dependencyAdded
        case .dependencyRemoved: self = .dependencyRemoved
        case .suspended: self = .suspended
        case .resumed: self = .resumed
        case .queueSet: self = .queueChanged
        case .queueCancelled, .graphCancelled: self = .queueCancelled
        case .graphSubmitted, .graphAdded: self = .added
        case .graphClosed, .graphFinished, .keySet, .workerJoined, .workerLost, .workerDraining,
            .triggerAdded, .triggerReplaced, .triggerRemoved, .triggerSuspended, .triggerResumed,
            .triggerFired, nil:
            self = other
        }
    }
}

/// A live stream of events. After a lost connection, however long, it resumes by itself; events
/// that cannot be recovered appear as a gap. It ends after the last event of its operation, and
/// when its cluster is closed. It throws ``OperonError`` if the coordinator does not answer at the
/// beginning of the stream, or refuses the stream.
public struct OperationEvents: AsyncSequence, Sendable {
    /// One event.
    public typealias Element = OperationEvent

    /// The parts of an open stream.
    struct Source: Sendable {
        /// Delivered before all other events.
        var first: [OperationEvent] = []
        /// `nil`: no further events.
        var events: AsyncThrowingStream<ClientEvent, any Error>?
        var judge: @Sendable (OperationEvent) -> Judgement = { _ in .tell }
        /// The only operation that the reader asks about, with its name.
        var operation: (id: OperationID, name: String)?
    }

    enum Judgement {
        case tell
        case skip
        case tellAndEnd
        case end
    }

    private let open: @Sendable () async throws -> Source

    init(_ open: @escaping @Sendable () async throws -> Source) { self.open = open }

    /// Starts to listen when the first event is requested.
    public func makeAsyncIterator() -> Iterator { Iterator(open: open) }

    /// Returns one event after the other.
    public struct Iterator: AsyncIteratorProtocol {
        private let open: @Sendable () async throws -> Source
        private var first: [OperationEvent] = []
        private var events: AsyncThrowingStream<ClientEvent, any Error>.Iterator?
        private var judge: @Sendable (OperationEvent) -> Judgement = { _ in .tell }
        private var operation: (id: OperationID, name: String)?
        private var isOpen = false

        fileprivate init(open: @escaping @Sendable () async throws -> Source) {
            self.open = open
        }

        /// Waits for the next event; `nil`: the stream has ended.
        public mutating func next() async throws -> OperationEvent? {
            if !isOpen {
                let source = try await open()
                first = source.first.reversed()
                events = source.events?.makeAsyncIterator()
                judge = source.judge
                operation = source.operation
                isOpen = true
            }
            if let event = first.popLast() { return event }
            while let event = try await nextOfAll() {
                switch judge(event) {
                case .tell: return event
                case .skip: continue
                case .tellAndEnd:
                    events = nil
                    return event
                case .end:
                    events = nil
                    return nil
                }
            }
            return nil
        }

        private mutating func nextOfAll() async throws -> OperationEvent? {
            do {
                switch try await events?.next(isolation: #isolation) {
                case .event(let view): return OperationEvent(view, for: operation)
                case .gap(let first, let last):
                    return OperationEvent(.gap(first: first, last: last), sequence: last)
                case nil: return nil
                }
            } catch let error as ClientError where error.isClosed {
                events = nil
                return nil
            } catch let error as ClientError {
                throw OperonError.from(error)
            }
        }
    }
}

extension Cluster {
    /// All events of the cluster, from now on or after an event that was already seen.
    public func events(after sequence: UInt64? = nil) -> OperationEvents {
        OperationEvents { [self] in try await source(after: sequence) }
    }

    fileprivate func source(
        after sequence: UInt64?,
        graph: GraphID? = nil,
        judge: @escaping @Sendable (OperationEvent) -> OperationEvents.Judgement = { _ in .tell }
    ) async throws -> OperationEvents.Source {
        let events = try await ask { client in
            try await client.events(after: sequence, graph: graph.map { "\($0)" })
        }
        return OperationEvents.Source(events: events, judge: judge)
    }
}

extension AnyOperationHandle {
    /// The events of the operation: first its state, then every change, until it has finished.
    ///
    /// - Parameter sequence: The number of the last event that was seen. The stream continues after
    ///   it and does not begin with the state; `nil`: from now on.
    public func events(after sequence: UInt64? = nil) -> OperationEvents {
        OperationEvents { [self] in
            try await untilAdded()
            guard let id, let queue else {
                throw OperonError(.invalid, "“\(name)” was not added to a queue.")
            }
            if let sequence {
                var source = try await source(id, queue.cluster, after: sequence)
                source.operation = (id, name)
                return source
            }
            // The position first: events between the two calls are then delivered twice instead of
            // never.
            let last = try await queue.cluster.ask { try await $0.status().lastEvent ?? 0 }
            let kind = try await currentState()
            let first = OperationEvent(kind, sequence: last, operation: id, name: name)
            if case .finished = kind { return OperationEvents.Source(first: [first]) }
            var source = try await source(id, queue.cluster, after: last)
            source.first = [first]
            source.operation = (id, name)
            return source
        }
    }

    /// The state of the operation. If the operation was dropped, the outcome that this program
    /// knows.
    private func currentState() async throws -> OperationEvent.Kind {
        do {
            let view = try await detail().operation
            return view.outcome.map { .finished($0) } ?? .state(view.state)
        } catch let error as OperonError where error.code == .notFound {
            guard let outcome = outcomeIfKnown else { throw error }
            return .finished(outcome.kind)
        }
    }

    private func source(
        _ id: OperationID,
        _ cluster: Cluster,
        after sequence: UInt64
    ) async throws -> OperationEvents.Source {
        if case .finished = try await currentState() {
            return try await rest(of: id, cluster, after: sequence)
        }
        return try await cluster.source(after: sequence, graph: id.graph) { event in
            if case .gap = event.kind { return .tell }
            guard event.operation == id else { return .skip }
            if case .finished = event.kind { return .tellAndEnd }
            return .tell
        }
    }

    /// The remaining events of a finished operation. Its graph may have no further event to end the
    /// stream, so this reads everything up to the last event that has happened by now.
    private func rest(
        of id: OperationID,
        _ cluster: Cluster,
        after sequence: UInt64
    ) async throws -> OperationEvents.Source {
        let last = try await cluster.ask { try await $0.status().lastEvent ?? 0 }
        guard sequence < last else { return OperationEvents.Source() }
        return try await cluster.source(after: sequence) { event in
            let isLast = event.sequence >= last
            if case .gap = event.kind { return isLast ? .tellAndEnd : .tell }
            guard event.operation == id else { return isLast ? .end : .skip }
            if case .finished = event.kind { return .tellAndEnd }
            return isLast ? .tellAndEnd : .tell
        }
    }

    /// The same as ``events(after:)`` from now on.
    public var events: OperationEvents { events(after: nil) }
}

extension OperationQueue {
    /// The events of the queue and its operations, including those that other programs added, from
    /// now on or after an event that was already seen.
    public func events(after sequence: UInt64? = nil) -> OperationEvents {
        let name = name
        return OperationEvents { [self] in
            try await prepare()
            return try await cluster.source(after: sequence) { event in
                if case .gap = event.kind { return .tell }
                return event.queueName == name ? .tell : .skip
            }
        }
    }

    /// The same as ``events(after:)`` from now on.
    public var events: OperationEvents { events(after: nil) }
}
