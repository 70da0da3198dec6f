internal import OperonModel
internal import OperonPorts

/// Something that happened to an operation or its queue.
public struct OperationEvent: Hashable, Sendable {
    /// What happened. Further kinds may come.
    public enum Kind: Hashable, Sendable {
        /// How it is at the beginning of the stream: what follows happened later, or is told by
        /// this already.
        case state(OperationState)
        /// A worker was given an attempt.
        case dispatched
        /// An attempt runs.
        case started
        /// An attempt is over, by its own failure or not.
        case attemptEnded
        /// There will be another attempt, after a pause.
        case retry
        /// It was asked to stop, or never to start.
        case cancelRequested
        /// It has its outcome.
        case finished(OutcomeKind)
        /// It has another round before it.
        case reopened
        /// Another priority.
        case priorityChanged
        /// It waits for another one as well.
        case dependencyAdded
        /// It waits for another one no more.
        case dependencyRemoved
        /// The operation, its graph or its queue starts nothing more.
        case suspended
        /// The operation, its graph or its queue goes on.
        case resumed
        /// The queue has another limit or priority.
        case queueChanged
        /// Everything in the queue was cancelled.
        case queueCancelled
        /// Operations were added; by a running one, if there is an operation.
        case added
        /// What happened with these numbers is not known any more. From the first of all, if what
        /// was seen is not what the coordinator has, as after its database was replaced by an older
        /// copy: then nothing that was seen counts.
        case gap(first: UInt64, last: UInt64)
        /// Something of which this version has no name, but the coordinator's.
        case other(String)
    }

    /// What happened.
    public let kind: Kind
    /// Counts what happens in a cluster, from 1: where to go on after an interruption.
    public let sequence: UInt64
    /// When; `nil` for a gap, and for the state at the beginning.
    public let date: WallTime?
    /// The operation it happened to, if it is about one.
    public let operation: OperationID?
    /// What people call the operation.
    public let operationName: String?
    /// The queue it is about.
    public let queueName: String?
    /// The attempt it is about, as in `1.17`.
    public let attempt: String?
    /// The worker that has, or had, the attempt.
    public let worker: String?

    init(_ kind: Kind, sequence: UInt64, operation: OperationID? = nil, name: String? = nil) {
        self.kind = kind
        self.sequence = sequence
        date = nil
        self.operation = operation
        operationName = name
        queueName = nil
        attempt = nil
        worker = nil
    }

    init(_ view: EventView) {
        kind = Kind(view)
        sequence = view.sequence
        date = view.at.time
        operation = view.operation.map {
            OperationID(graph: GraphID(rawValue: $0.graph), index: $0.index)
        }
        operationName = view.operation?.name
        queueName = view.queue
        attempt = view.attempt
        worker = view.worker
    }
}

extension OperationEvent.Kind {
    fileprivate init(_ view: EventView) {
        switch view.kind {
        case "granted": self = .dispatched
        case "started": self = .started
        case "attemptEnded": self = .attemptEnded
        case "retry": self = .retry
        case "cancelRequested": self = .cancelRequested
        case "finished": self = view.outcome.map { .finished($0) } ?? .other(view.kind)
        case "reopened": self = .reopened
        case "priority": self = .priorityChanged
        case "dependencyAdded": self = .dependencyAdded
        case "dependencyRemoved": self = .dependencyRemoved
        case "suspended": self = .suspended
        case "resumed": self = .resumed
        case "queueSet": self = .queueChanged
        case "queueCancelled", "graphCancelled": self = .queueCancelled
        case "graphSubmitted", "graphAdded": self = .added
        default: self = .other(view.kind)
        }
    }
}

/// What happens, as it happens. It goes on by itself when the way to the coordinator was cut, for
/// however long; what could not be caught up with is a gap. It ends with what it is about, and when
/// its cluster is closed. It throws ``OperonError`` if nobody answers at its beginning, and if the
/// coordinator refuses.
public struct OperationEvents: AsyncSequence, Sendable {
    /// One thing that happened.
    public typealias Element = OperationEvent

    /// What a stream is made of, once it is open.
    struct Source: Sendable {
        /// Told before everything else.
        var first: [OperationEvent] = []
        /// `nil`: nothing else will happen.
        var events: AsyncThrowingStream<ClientEvent, any Error>?
        var judge: @Sendable (OperationEvent) -> Judgement = { _ in .tell }
    }

    enum Judgement {
        case tell
        case skip
        case tellAndEnd
        case end
    }

    private let open: @Sendable () async throws -> Source

    init(_ open: @escaping @Sendable () async throws -> Source) { self.open = open }

    /// Begins to listen when the first event is asked for.
    public func makeAsyncIterator() -> Iterator { Iterator(open: open) }

    /// Reads one event after the other.
    public struct Iterator: AsyncIteratorProtocol {
        private let open: @Sendable () async throws -> Source
        private var first: [OperationEvent] = []
        private var events: AsyncThrowingStream<ClientEvent, any Error>.Iterator?
        private var judge: @Sendable (OperationEvent) -> Judgement = { _ in .tell }
        private var isOpen = false

        fileprivate init(open: @escaping @Sendable () async throws -> Source) {
            self.open = open
        }

        /// Waits for the next event; `nil`: there will be none.
        public mutating func next() async throws -> OperationEvent? {
            if !isOpen {
                let source = try await open()
                first = source.first.reversed()
                events = source.events?.makeAsyncIterator()
                judge = source.judge
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
                case .event(let view): return OperationEvent(view)
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
    /// Everything that happens in the cluster, from now on, or from after an event that was seen.
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
    /// What happens to the operation: first how it is, then every change, up to its end.
    ///
    /// - Parameter sequence: Goes on behind an event that was seen, and does not begin with the
    ///   state; `nil`: from now on.
    public func events(after sequence: UInt64? = nil) -> OperationEvents {
        OperationEvents { [self] in
            try await untilAdded()
            guard let id, let queue else {
                throw OperonError(.invalid, "“\(name)” was not added to a queue.")
            }
            if let sequence { return try await source(id, queue.cluster, after: sequence) }
            // The place first: what happens between the two is told twice rather than never.
            let last = try await queue.cluster.ask { try await $0.status().lastEvent ?? 0 }
            let kind = try await currentState()
            let first = OperationEvent(kind, sequence: last, operation: id, name: name)
            if case .finished = kind { return OperationEvents.Source(first: [first]) }
            var source = try await source(id, queue.cluster, after: last)
            source.first = [first]
            return source
        }
    }

    /// Of one that is not kept any more what is known here counts.
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

    /// It has ended, behind this event or before it. Nothing may ever happen in its graph any more,
    /// so everything is read, up to what had happened by now.
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

    /// ``events(after:)``, from now on.
    public var events: OperationEvents { events(after: nil) }
}

extension OperationQueue {
    /// What happens to the queue and its operations, whoever added them: from now on, or from after
    /// an event that was seen.
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

    /// ``events(after:)``, from now on.
    public var events: OperationEvents { events(after: nil) }
}
