package import CoreMetrics
import OperonCore
import OperonModel

/// What a coordinator counts and measures, through swift-metrics.
package struct CoordinatorMeters: Sendable {
    private let factory: any MetricsFactory
    private let outcomes: [Counter]
    private let attempts: [Counter]
    private let workersLost: Counter
    private let undecodable: Counter
    private let dispatchTime: CoreMetrics.Timer
    private let runTime: CoreMetrics.Timer
    let commitTime: CoreMetrics.Timer
    let syncTime: CoreMetrics.Timer

    package init(factory: any MetricsFactory) {
        self.factory = factory
        outcomes = OutcomeKind.allCases.map { kind in
            Counter(
                label: Label.outcomes,
                dimensions: [("outcome", "\(kind)")],
                factory: factory
            )
        }
        attempts = AttemptOutcome.allCases.map { end in
            Counter(label: Label.attempts, dimensions: [("end", end.rawValue)], factory: factory)
        }
        workersLost = Counter(label: Label.workersLost, factory: factory)
        undecodable = Counter(label: Label.undecodable, factory: factory)
        dispatchTime = CoreMetrics.Timer(label: Label.dispatch, factory: factory)
        runTime = CoreMetrics.Timer(label: Label.run, factory: factory)
        commitTime = CoreMetrics.Timer(label: Label.commit, factory: factory)
        syncTime = CoreMetrics.Timer(label: Label.sync, factory: factory)
    }

    /// How an attempt ended, as a dimension.
    private enum AttemptOutcome: String, CaseIterable {
        case succeeded, failed, cancelled, returned, lost, crashed

        init(_ ending: Scheduler.AttemptEnding) {
            switch ending {
            case .succeeded: self = .succeeded
            case .failed: self = .failed
            case .cancelled: self = .cancelled
            case .returned: self = .returned
            case .lost: self = .lost
            case .crashed: self = .crashed
            }
        }
    }

    fileprivate enum Label {
        static let outcomes = "operon_outcomes_total"
        static let attempts = "operon_attempts_total"
        static let workersLost = "operon_workers_lost_total"
        static let undecodable = "operon_undecodable_messages_total"
        static let dispatch = "operon_dispatch_seconds"
        static let run = "operon_run_seconds"
        static let commit = "operon_store_commit_seconds"
        static let sync = "operon_store_sync_seconds"
        static let operations = "operon_operations"
        static let slots = "operon_slots"
        static let workers = "operon_workers"
        static let brokerUp = "operon_broker_up"
        static let storeUp = "operon_store_up"
        static let queueReady = "operon_queue_ready"
        static let queueInFlight = "operon_queue_in_flight"
        static let otherReady = "operon_other_queues_ready"
        static let otherInFlight = "operon_other_queues_in_flight"
    }

    /// The description of each metric, for backends that can show descriptions.
    package static let help: [String: String] = [
        Label.outcomes: "Operations that got their outcome.",
        Label.attempts: "Attempts that ended, by how.",
        Label.workersLost: "Workers that were given up.",
        Label.undecodable: "Messages of workers that could not be read.",
        Label.dispatch: "From the grant of an attempt to its start.",
        Label.run: "From the start of an attempt to its end.",
        Label.commit: "Transactions of the store, however many events are in them.",
        Label.sync: "Syncs of the store to its disk.",
        Label.operations: "Operations by state.",
        Label.slots: "Slots of live workers.",
        Label.workers: "Live workers.",
        Label.brokerUp: "1: connected.",
        Label.storeUp: "1: keeps records.",
        Label.queueReady: "Operations that could run: what an autoscaler looks at.",
        Label.queueInFlight: "Operations dispatched or executing.",
        Label.otherReady: "Operations that could run, of queues that are not listed.",
        Label.otherInFlight: "Operations dispatched or executing, of queues that are not listed.",
    ]

    // MARK: - Counting

    func countUndecodable() { undecodable.increment() }

    /// - Parameter grantedAt: grant times of the attempts in flight; the caller keeps them between
    ///   calls.
    func note(
        _ notice: Scheduler.Notice,
        at now: Timestamp,
        grantedAt: inout [AttemptID: Timestamp]
    ) {
        switch notice {
        case .granted(_, let attempt, _): grantedAt[attempt] = now
        case .started(_, let attempt, let start): started(attempt, at: start, &grantedAt)
        case .attemptEnded(_, let attempt, let ending, let start, let end):
            if let start {
                started(attempt, at: start, &grantedAt)
                runTime.recordNanoseconds(max(0, (end - start).nanoseconds))
            }
            grantedAt[attempt] = nil
            let kind = AttemptOutcome(ending)
            guard let place = AttemptOutcome.allCases.firstIndex(of: kind) else { return }
            attempts[place].increment()
        case .finished(_, let outcome): outcomes[Int(outcome.kind.rawValue)].increment()
        case .workerLost: workersLost.increment()
        case .operationsAdded, .ready, .resumed, .yielded, .waitEnded, .retry, .result,
            .graphFinished, .workerJoined, .workerDraining, .workerBusy, .graphClosedIdle,
            .superseded, .eventRefused, .log, .progress:
            return
        }
    }

    /// Records the dispatch time of an attempt once, whichever notice reports its start first.
    private func started(
        _ attempt: AttemptID,
        at start: Timestamp,
        _ grantedAt: inout [AttemptID: Timestamp]
    ) {
        guard let granted = grantedAt.removeValue(forKey: attempt) else { return }
        dispatchTime.recordNanoseconds(max(0, (start - granted).nanoseconds))
    }

    // MARK: - How it is now

    func set(_ view: ClusterView, isUp: Bool, isKept: Bool) {
        set(Label.operations, ["state": "pending"], view.counts.pending)
        set(Label.operations, ["state": "ready"], view.counts.ready)
        set(Label.operations, ["state": "dispatched"], view.counts.dispatched)
        set(Label.operations, ["state": "executing"], view.counts.executing)
        set(Label.slots, [:], view.slots)
        set(Label.workers, [:], view.workers)
        set(Label.brokerUp, [:], isUp ? 1 : 0)
        set(Label.storeUp, [:], isKept ? 1 : 0)
    }

    private func set(
        _ label: String,
        _ dimensions: KeyValuePairs<String, String>,
        _ value: Int
    ) {
        let dimensions = dimensions.map { ($0.key, $0.value) }
        Meter(label: label, dimensions: dimensions, factory: factory).set(value)
    }
}

extension CoreMetrics.Timer {
    func record(since start: Timestamp) {
        recordNanoseconds((SystemClock.now() - start).nanoseconds)
    }
}

/// The number of operations of each queue at the time of a scrape: no series outlives its queue.
package struct QueueMeters: Sendable {
    package struct Family: Sendable {
        package let label: String
        /// A `nil` queue: the value belongs to no single queue.
        package let values: [(queue: String?, value: Int)]
    }

    struct Queue: Sendable {
        var name: String
        var ready: Int
        var inFlight: Int
    }

    /// The most queues that are listed individually. Each costs the monitoring system two series
    /// for as long as it remembers them, and clients choose the names of queues.
    package static let listedMax = 1_000

    let queues: [Queue]

    /// Lists the queues with the most operations individually, and the sum of all others.
    package var families: [Family] {
        let ordered = queues.sorted { left, right in
            let counts = (left.ready + left.inFlight, right.ready + right.inFlight)
            return counts.0 == counts.1 ? left.name < right.name : counts.0 > counts.1
        }
        let listed = ordered.prefix(Self.listedMax)
        let others = ordered.dropFirst(Self.listedMax)
        func family(_ label: String, _ value: (Queue) -> Int) -> Family {
            Family(label: label, values: listed.map { ($0.name, value($0)) })
        }
        func sum(_ label: String, _ value: (Queue) -> Int) -> Family {
            Family(label: label, values: [(nil, others.reduce(0) { $0 + value($1) })])
        }
        return [
            family(CoordinatorMeters.Label.queueReady) { $0.ready },
            family(CoordinatorMeters.Label.queueInFlight) { $0.inFlight },
            sum(CoordinatorMeters.Label.otherReady) { $0.ready },
            sum(CoordinatorMeters.Label.otherInFlight) { $0.inFlight },
        ]
    }
}

extension CoordinatorService {
    /// Sets the values that are read on request; all other values are counted as they happen.
    ///
    /// - Returns: The queues. The caller sorts and writes them, because there may be many and the
    ///   coordinator can do nothing else meanwhile.
    package func refreshMeters() -> QueueMeters {
        meters?.set(
            clusterView(version: ""),
            isUp: scheduler.isUp,
            isKept: keeping?.trouble == nil
        )
        return QueueMeters(
            queues: scheduler.queueStatus.map { queue in
                QueueMeters.Queue(
                    name: queue.name,
                    ready: queue.ready,
                    inFlight: queue.inFlight
                )
            }
        )
    }

    /// Why the coordinator cannot serve at present; `nil`: it accepts commands and its workers can
    /// be reached.
    package var unreadiness: String? {
        trouble ?? (scheduler.isUp ? nil : "There is no connection to the broker.")
    }
}
