/// A cluster event, as the store keeps it and clients receive it: an `EventView` without names.
package struct ClusterEvent: Hashable, Sendable {
    package enum Kind: UInt8, Hashable, Sendable, CaseIterable {
        case graphSubmitted = 1
        case graphAdded = 2
        case graphClosed = 3
        case graphFinished = 4
        case graphCancelled = 5
        case suspended = 6
        case resumed = 7
        case queueSet = 8
        case queueCancelled = 9
        case priority = 10
        case cancelRequested = 11
        case granted = 12
        case started = 13
        case attemptEnded = 14
        case retry = 15
        case finished = 16
        case reopened = 17
        case dependencyAdded = 18
        case dependencyRemoved = 19
        case workerJoined = 20
        case workerLost = 21
        case workerDraining = 22
        case keySet = 23
        case rangeFinished = 24
        case triggerAdded = 25
        case triggerReplaced = 26
        case triggerRemoved = 27
        case triggerSuspended = 28
        case triggerResumed = 29
        /// A client or a webhook fired it. Other firings have no event.
        case triggerFired = 30

        /// The name of the kind in an `EventView`.
        package var name: String { Self.names[Int(rawValue) - 1] }

        /// In the order of the raw values, which have no gaps. A table, because the name is needed
        /// for every event that a client receives.
        private static let names = allCases.map { "\($0)" }

        /// After such an event a graph may have finished.
        package var mayEndGraph: Bool {
            self == .graphFinished || self == .graphClosed || self == .graphCancelled
        }
    }

    package var at: WallTime
    package var kind: Kind
    package var graph: GraphID?
    /// Of several operations, the first.
    package var operation: OperationID?
    /// The number of operations that `rangeFinished` is about; `nil`: the event is of another kind.
    package var count: UInt32?
    package var outcome: OutcomeKind?
    /// Whether the operation succeeded without a process, because its files were up to date.
    package var isUpToDate = false
    package var attempt: AttemptID?
    package var ending: Ending?
    package var error: OperationError?
    package var worker: Incarnation?
    package var workerName = ""
    package var queue = ""
    /// The name of the client that asked for it; empty: nobody did, or the client has none.
    package var by = ""
    package var reason = ""
    package var key = ""
    package var trigger = ""
    /// The number of the firing of that trigger that the event is about; `nil`: it is about none.
    package var firing: UInt64?

    /// An `AttemptEnding` without its associated values.
    package enum Ending: UInt8, Hashable, Sendable, CaseIterable {
        case succeeded = 1
        case failed = 2
        case cancelled = 3
        case returned = 4
        case lost = 5
        case crashed = 6

        package var name: String { Self.names[Int(rawValue) - 1] }

        private static let names = allCases.map { "\($0)" }
    }

    package init(_ kind: Kind, at: WallTime) {
        self.kind = kind
        self.at = at
    }
}

extension AttemptEnding {
    package var kind: ClusterEvent.Ending {
        switch self {
        case .succeeded: .succeeded
        case .failed: .failed
        case .cancelled: .cancelled
        case .returned: .returned
        case .lost: .lost
        case .crashed: .crashed
        }
    }

    package var error: OperationError? {
        guard case .failed(let error) = self else { return nil }
        return error
    }
}

extension ClusterEvent {
    /// The event that clients receive for a record; `nil`: they receive none.
    ///
    /// - Parameter client: The name of the client that asked for it; empty: nobody did, the client
    ///   has none, or the record has it.
    package init?(_ record: StoreRecord, by client: String = "", at: WallTime) {
        switch record {
        case .graphAdded(let id): self.init(.graphSubmitted, at: at, graph: id)
        case .operationsAdded(let id, _, let held):
            self.init(.graphAdded, at: at, graph: id)
            operation = held?.operation
            attempt = held?.attempt
        case .graphClosed(let id): self.init(.graphClosed, at: at, graph: id)
        case .granted(let attempt, let id, _, let worker):
            self.init(.granted, at: at, id, attempt)
            self.worker = worker == .nobody ? nil : worker
        case .started(let attempt, let id), .resumed(let attempt, let id):
            self.init(.started, at: at, id, attempt)
        case .attemptEnded(let attempt, let id, let ending):
            self.init(.attemptEnded, at: at, id, attempt)
            self.ending = ending.kind
            error = ending.error
        case .finished(let id, let outcome):
            self.init(.finished, at: at, id)
            self.outcome = outcome.kind
            if case .failed(let error) = outcome { self.error = error }
            if case .cancelled(let reason) = outcome { self.reason = reason }
        case .rangeFinished(let range, let outcome):
            self.init(.rangeFinished, at: at, range[range.startIndex])
            count = UInt32(range.count)
            self.outcome = outcome.kind
            if case .failed(let error) = outcome { self.error = error }
            if case .cancelled(let reason) = outcome { self.reason = reason }
        case .retryScheduled(let id, _): self.init(.retry, at: at, id)
        case .cancelled(let target, let reason, _, let client):
            switch target {
            case .operation(let id): self.init(.cancelRequested, at: at, id)
            case .graph(let id): self.init(.graphCancelled, at: at, graph: id)
            case .queue(let name): self.init(.queueCancelled, at: at, queue: name)
            }
            self.reason = reason
            by = client
        case .suspended(let target, let suspension):
            let kind = suspension == nil ? Kind.resumed : .suspended
            switch target {
            case .operation(let id): self.init(kind, at: at, id)
            case .graph(let id): self.init(kind, at: at, graph: id)
            case .queue(let name): self.init(kind, at: at, queue: name)
            }
            by = suspension?.by ?? ""
            reason = suspension?.reason ?? ""
        case .queueLimit(let name, _), .queuePriority(let name, _), .queueReset(let name):
            self.init(.queueSet, at: at, queue: name)
        case .priority(let id, _): self.init(.priority, at: at, id)
        case .reopened(let id): self.init(.reopened, at: at, id)
        case .dependencyAdded(let id, _, _): self.init(.dependencyAdded, at: at, id)
        case .dependencyRemoved(let id, _): self.init(.dependencyRemoved, at: at, id)
        case .keyLimit(let settings, byCommand: true):
            self.init(.keySet, at: at)
            key = settings.name
        case .keyReset(let name):
            self.init(.keySet, at: at)
            key = name
        case .rateSet(.queue(let name), _, byCommand: true):
            self.init(.queueSet, at: at, queue: name)
        // Of what is recorded of a trigger, `TriggerTable` says what was a change.
        case .queueDefined, .keyLimit, .rateSet, .rateUsed, .delayed, .deadlinePassed,
            .trigger:
            return nil
        }
        if !client.isEmpty { by = client }
    }

    private init(
        _ kind: Kind,
        at: WallTime,
        graph: GraphID? = nil,
        queue: String = ""
    ) {
        self.init(kind, at: at)
        self.graph = graph
        self.queue = queue
    }

    private init(_ kind: Kind, at: WallTime, _ id: OperationID, _ attempt: AttemptID? = nil) {
        self.init(kind, at: at)
        graph = id.graph
        operation = id
        self.attempt = attempt
    }
}
