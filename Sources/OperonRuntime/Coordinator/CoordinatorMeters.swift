import OperonCore
import OperonModel
import OperonTrust

#if Cluster
package import CoreMetrics

/// What a coordinator counts and measures, through swift-metrics.
package struct CoordinatorMeters: Sendable {
    private let factory: any MetricsFactory
    private let outcomes: [Counter]
    private let attempts: [Counter]
    private let workersLost: Counter
    private let undecodable: Counter
    private let refused: [SealFault: Counter]
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
        refused = Dictionary(
            uniqueKeysWithValues: SealFault.allCases.map { fault in
                let reason = [("reason", fault.rawValue)]
                let label = Label.refused
                return (fault, Counter(label: label, dimensions: reason, factory: factory))
            }
        )
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

    // MARK: - Counting

    func countUndecodable() { undecodable.increment() }

    /// A message that was not sealed as it must be, or came at the wrong time.
    func countRefused(_ fault: SealFault) { refused[fault]?.increment() }

    /// - Parameter latency: The caller keeps it between calls.
    func note(
        _ notice: Scheduler.Notice,
        at now: Timestamp,
        _ latency: inout CoordinatorLatency
    ) {
        switch notice {
        case .granted(_, let attempt, _): latency.granted(attempt, at: now)
        case .started(_, let attempt, let start):
            noteDispatch(latency.started(attempt, at: start, toldAt: now))
        case .attemptEnded(_, let attempt, let ending, let start, let end):
            if let start {
                noteDispatch(latency.started(attempt, at: start, toldAt: now))
                runTime.recordNanoseconds(max(0, (end - start).nanoseconds))
            }
            latency.ended(attempt)
            let kind = AttemptOutcome(ending)
            guard let place = AttemptOutcome.allCases.firstIndex(of: kind) else { return }
            attempts[place].increment()
        case .finished(_, let outcome): outcomes[Int(outcome.kind.rawValue)].increment()
        case .rangeFinished(let operations, let outcome):
            outcomes[Int(outcome.kind.rawValue)].increment(by: Int64(operations.count))
        case .workerLost: workersLost.increment()
        case .operationsAdded, .ready, .resumed, .yielded, .waitEnded, .retry, .result,
            .graphFinished, .workerJoined, .workerDraining, .workerBusy, .graphClosedIdle,
            .superseded, .eventRefused, .log, .progress, .watched:
            return
        }
    }

    private func noteDispatch(_ time: Duration?) {
        if let time { dispatchTime.recordNanoseconds(time.nanoseconds) }
    }

    // MARK: - How it is now

    func set(_ view: ClusterView, isUp: Bool, isKept: Bool) {
        set(Label.operations, ["state": "pending"], view.counts.pending)
        set(Label.operations, ["state": "ready"], view.counts.ready)
        set(Label.operations, ["state": "dispatched"], view.counts.dispatched)
        set(Label.operations, ["state": "executing"], view.counts.executing)
        set(Label.slots, [:], view.slots)
        set(Label.freeSlots, [:], max(0, view.slots - view.busySlots))
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
#else
/// No metrics are linked, so nothing is measured.
package struct CoordinatorMeters: Sendable {
    struct Timer {
        func record(since start: Timestamp) {}
    }

    var commitTime: Timer { Timer() }
    var syncTime: Timer { Timer() }

    func countUndecodable() {}

    func countRefused(_ fault: SealFault) {}

    func note(
        _ notice: Scheduler.Notice,
        at now: Timestamp,
        _ latency: inout CoordinatorLatency
    ) {}

    func set(_ view: ClusterView, isUp: Bool, isKept: Bool) {}
}
#endif

extension CoordinatorMeters {
    enum Label {
        static let outcomes = "operon_outcomes_total"
        static let attempts = "operon_attempts_total"
        static let workersLost = "operon_workers_lost_total"
        static let undecodable = "operon_undecodable_messages_total"
        static let refused = "operon_refused_messages_total"
        static let dispatch = "operon_dispatch_seconds"
        static let run = "operon_run_seconds"
        static let commit = "operon_store_commit_seconds"
        static let sync = "operon_store_sync_seconds"
        static let operations = "operon_operations"
        static let slots = "operon_slots"
        static let freeSlots = "operon_free_slots"
        static let workers = "operon_workers"
        static let brokerUp = "operon_broker_up"
        static let storeUp = "operon_store_up"
        static let queueReady = "operon_queue_ready"
        static let queueInFlight = "operon_queue_in_flight"
        static let otherReady = "operon_other_queues_ready"
        static let otherInFlight = "operon_other_queues_in_flight"
        static let demandReady = "operon_demand_ready"
        static let demandInFlight = "operon_demand_in_flight"
        static let otherDemandsReady = "operon_other_demands_ready"
        static let otherDemandsInFlight = "operon_other_demands_in_flight"
        static let resourceOffered = "operon_resource_offered"
        static let resourceFree = "operon_resource_free"
        static let otherResources = "operon_other_resources"
    }

    /// The description of each metric, for backends that can show descriptions.
    package static let help: [String: String] = [
        Label.outcomes: "Operations that got their outcome.",
        Label.attempts: "Attempts that ended, by how.",
        Label.workersLost: "Workers that were given up.",
        Label.undecodable: "Messages of workers that could not be read.",
        Label.refused: "Messages that were not sealed as they must be, by why.",
        Label.dispatch: "From the grant of an attempt to its start.",
        Label.run: "From the start of an attempt to its end.",
        Label.commit: "Transactions of the store, however many events are in them.",
        Label.sync: "Syncs of the store to its disk.",
        Label.operations: "Operations by state.",
        Label.slots: "Slots of live workers.",
        Label.freeSlots: "Slots of live workers that run nothing.",
        Label.workers: "Live workers.",
        Label.brokerUp: "1: connected.",
        Label.storeUp: "1: keeps records.",
        Label.queueReady: "Operations that could run: what an autoscaler looks at.",
        Label.queueInFlight: "Operations dispatched or executing.",
        Label.otherReady: "Operations that could run, of queues that are not listed.",
        Label.otherInFlight: "Operations dispatched or executing, of queues that are not listed.",
        Label.demandReady: "Operations that could run, by what they ask of a worker.",
        Label.demandInFlight: "Operations dispatched or executing, by what they ask of a worker.",
        Label.otherDemandsReady: "Operations that could run, of demands that are not listed.",
        Label.otherDemandsInFlight:
            "Operations dispatched or executing, of demands that are not listed.",
        Label.resourceOffered: "What live workers offer that do not drain.",
        Label.resourceFree: "What these workers have left.",
        Label.otherResources: "Resources that are not listed.",
    ]
}

extension CoordinatorService {
    /// Why the coordinator cannot serve at present; `nil`: it accepts commands and its workers can
    /// be reached.
    package var unreadiness: String? {
        trouble ?? (scheduler.isUp ? nil : "There is no connection to the broker.")
    }
}
