/// A state as operations are counted by it: of a finished operation its outcome.
package enum CountedState: String, Hashable, Sendable, Codable, CaseIterable {
    case pending
    case ready
    case dispatched
    case executing
    case succeeded
    case failed
    case cancelled
    case skipped

    package init(_ state: OperationState, _ outcome: OutcomeKind?) {
        self =
            switch (state, outcome) {
            case (_, .succeeded?): .succeeded
            case (_, .failed?): .failed
            case (_, .cancelled?): .cancelled
            case (_, .skipped?): .skipped
            case (.pending, nil), (.finished, nil): .pending
            case (.ready, nil): .ready
            case (.dispatched, nil): .dispatched
            case (.executing, nil): .executing
            }
    }

    package var isFinished: Bool {
        switch self {
        case .pending, .ready, .dispatched, .executing: false
        case .succeeded, .failed, .cancelled, .skipped: true
        }
    }
}

/// What is known of an operation and of all its attempts, in few bytes: for pictures and reports,
/// which show all operations of a graph.
package struct OperationRecord: Hashable, Sendable, Codable {
    package var name: String
    package var state: CountedState
    /// The numbers of the operations of the same graph that it depends on.
    package var dependencies: [UInt32]
    /// Does nothing itself, as the group of repeated operations: `true`.
    package var isNothing: Bool?
    /// `nil`: it has had none.
    package var attempts: [AttemptRecord]?

    package init(
        name: String,
        state: CountedState,
        dependencies: [UInt32],
        isNothing: Bool? = nil,
        attempts: [AttemptRecord]? = nil
    ) {
        self.name = name
        self.state = state
        self.dependencies = dependencies
        self.isNothing = isNothing
        self.attempts = attempts
    }
}

/// An attempt. Times are seconds since the submission of the graph.
package struct AttemptRecord: Hashable, Sendable, Codable {
    package var number: UInt32
    /// Its worker, as an index of the workers of the page. `nil`: an external party completes it.
    package var worker: Int?
    /// `nil`: its worker has not reported the start.
    package var startedAt: Double?
    /// `nil`: it is in flight.
    package var endedAt: Double?
    package var ending: String?

    package init(
        number: UInt32,
        worker: Int?,
        startedAt: Double?,
        endedAt: Double?,
        ending: String?
    ) {
        self.number = number
        self.worker = worker
        self.startedAt = startedAt
        self.endedAt = endedAt
        self.ending = ending
    }
}

/// The records of operations with successive numbers.
package struct RecordPage: Hashable, Sendable, Codable {
    /// The submission, from which times count.
    package var submittedAt: TimeText
    /// The present time, by the clock of the coordinator.
    package var now: TimeText
    /// The number of operations of the graph.
    package var operationCount: Int
    package var workers: [String]
    package var records: [OperationRecord]
    /// The `after` of the next page; `nil`: there is none.
    package var next: UInt32?

    package init(
        submittedAt: TimeText,
        now: TimeText,
        operationCount: Int,
        workers: [String],
        records: [OperationRecord],
        next: UInt32? = nil
    ) {
        self.submittedAt = submittedAt
        self.now = now
        self.operationCount = operationCount
        self.workers = workers
        self.records = records
        self.next = next
    }
}

/// The states of all operations of a graph, in the order of their numbers.
package struct StateRunsView: Hashable, Sendable, Codable {
    /// Operations with successive numbers and the same state.
    package struct Run: Hashable, Sendable, Codable {
        package var state: CountedState
        package var count: Int

        package init(state: CountedState, count: Int) {
            self.state = state
            self.count = count
        }
    }

    package private(set) var runs: [Run] = []

    package init() {}

    package mutating func append(_ state: CountedState) {
        if let last = runs.last, last.state == state {
            runs[runs.count - 1].count += 1
        } else {
            runs.append(Run(state: state, count: 1))
        }
    }
}
