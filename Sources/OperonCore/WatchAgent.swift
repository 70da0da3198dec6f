package import OperonModel

/// Decides what a worker does with the watches that its coordinator orders, and what it reports of
/// them. The worker's shell runs the sources.
///
/// A watch goes on while the coordinator is away, and under the next one of the same reign: what
/// its source has not reported stays with the source.
package struct WatchAgent: Sendable {
    /// One run of a source. A later one for the same trigger has another number.
    package struct RunID: Hashable, Sendable {
        package let trigger: TriggerID
        package let number: UInt64
    }

    package enum Event: Sendable {
        case ordered(WatchOrder, by: Reign)
        case status(RunID, TriggerSourceStatus)
        /// The run waits until this is released.
        case occurred(RunID, Occurrence)
        /// - Parameter problem: Why the source can never be observed; `nil`: nothing more occurs.
        case ended(RunID, TriggerSourceError?)
        /// It is time to state all that is held: a coordinator has welcomed the worker, or some
        /// time has passed.
        case statementDue
    }

    package struct Effects: Sendable {
        package var begins: [(run: RunID, source: WatchedSource)] = []
        package var ends: [RunID] = []
        /// Their occurrences are taken.
        package var releases: [RunID] = []
        package var questions: [(number: UInt64, process: Int32)] = []
        package var reports: [WatchReport] = []

        package init() {}
    }

    private struct Watch: Sendable {
        var id: WatchID
        let run: RunID
        let source: WatchedSource
        var state = WatchState.starting
        var problem: TriggerSourceError?
        /// Reported, and not taken.
        var occurrence: Occurrence?
        /// Occurrences that cannot be reported, and were not counted in a report yet.
        var refusals: UInt32 = 0
        var lastRefusal: TriggerSourceError?
        /// Whether some were reported since the last statement: a report for each of them could be
        /// as many as there are lines.
        var hasReportedRefusals = false
    }

    /// Sorted where the order matters.
    private var watches: [TriggerID: Watch] = [:]
    /// The triggers of all watches.
    private var triggers: [WatchID: TriggerID] = [:]
    /// That of the last order.
    private var reign: Reign?
    private var lastRun: UInt64 = 0
    private let most: Int

    package init(most: Int = Limits.watchesPerWorker) { self.most = most }

    package mutating func handle(_ event: Event, into effects: inout Effects) {
        switch event {
        case .ordered(let order, let reign):
            // Another reign has other triggers, whatever their numbers.
            if reign != self.reign { endAll(into: &effects) }
            self.reign = reign
            obey(order, into: &effects)
        case .status(let run, let status):
            guard isCurrent(run) else { return }
            switch status {
            case .observing: note(.observing, nil, of: run, into: &effects)
            case .waiting(let problem): note(.waiting, problem, of: run, into: &effects)
            case .refused(let problem): refuse(problem, of: run, into: &effects)
            }
        case .occurred(let run, let occurrence):
            guard isCurrent(run), let watch = watches[run.trigger] else { return }
            watches[run.trigger]?.occurrence = occurrence
            effects.reports.append(.occurred(watch.id, occurrence))
        case .ended(let run, let problem):
            guard isCurrent(run) else { return }
            note(.ended, problem, of: run, into: &effects)
        case .statementDue: state(into: &effects)
        }
    }

    private func isCurrent(_ run: RunID) -> Bool { watches[run.trigger]?.run == run }

    private mutating func note(
        _ state: WatchState,
        _ problem: TriggerSourceError?,
        of run: RunID,
        into effects: inout Effects
    ) {
        guard var watch = watches[run.trigger] else { return }
        watch.state = state
        watch.problem = problem
        watches[run.trigger] = watch
        effects.reports.append(.state(watch.id, state, problem: problem))
    }

    private mutating func refuse(
        _ problem: TriggerSourceError,
        of run: RunID,
        into effects: inout Effects
    ) {
        guard var watch = watches[run.trigger] else { return }
        if watch.hasReportedRefusals {
            if watch.refusals < .max { watch.refusals += 1 }
            watch.lastRefusal = problem
        } else {
            watch.hasReportedRefusals = true
            effects.reports.append(.refused(watch.id, count: 1, problem))
        }
        watches[run.trigger] = watch
    }

    private mutating func state(into effects: inout Effects) {
        var held: [HeldWatch] = []
        for trigger in watches.keys.sorted() {
            guard var watch = watches[trigger] else { continue }
            held.append(
                HeldWatch(
                    watch: watch.id,
                    trigger: trigger,
                    state: watch.state,
                    occurrence: watch.occurrence?.identity
                )
            )
            watch.hasReportedRefusals = watch.refusals > 0
            if let last = watch.lastRefusal {
                effects.reports.append(.refused(watch.id, count: watch.refusals, last))
            }
            watch.refusals = 0
            watch.lastRefusal = nil
            watches[trigger] = watch
        }
        effects.reports.append(.holds(held))
    }

    // MARK: - Orders

    private mutating func obey(_ order: WatchOrder, into effects: inout Effects) {
        switch order {
        case .begin(let id, let trigger, let source):
            begin(id, trigger, source, into: &effects)
        case .end(let id):
            guard let trigger = triggers[id] else { return }
            end(trigger, into: &effects)
        case .taken(let id, let identity):
            guard let trigger = triggers[id], let watch = watches[trigger] else { return }
            // The coordinator had another one, and could not keep this.
            guard watch.occurrence?.identity == identity else {
                return report(watch, into: &effects)
            }
            watches[trigger]?.occurrence = nil
            effects.releases.append(watch.run)
        case .again(let id):
            guard let trigger = triggers[id], let watch = watches[trigger] else { return }
            report(watch, into: &effects)
        case .identify(let number, let process): effects.questions.append((number, process))
        }
    }

    private mutating func begin(
        _ id: WatchID,
        _ trigger: TriggerID,
        _ source: WatchedSource?,
        into effects: inout Effects
    ) {
        if var watch = watches[trigger], watch.source == source, watch.state != .ended {
            triggers[watch.id] = nil
            triggers[id] = trigger
            watch.id = id
            watches[trigger] = watch
            return report(watch, into: &effects)
        }
        end(trigger, into: &effects)
        guard let source else {
            let problem = TriggerSourceError(
                .limitExceeded,
                "its worker does not know such sources"
            )
            effects.reports.append(.state(id, .waiting, problem: problem))
            return
        }
        guard watches.count < most else {
            let problem = TriggerSourceError(
                .limitExceeded,
                "its worker watches \(most) sources, and cannot watch more"
            )
            effects.reports.append(.state(id, .waiting, problem: problem))
            return
        }
        lastRun += 1
        let run = RunID(trigger: trigger, number: lastRun)
        watches[trigger] = Watch(id: id, run: run, source: source)
        triggers[id] = trigger
        effects.begins.append((run, source))
    }

    private mutating func end(_ trigger: TriggerID, into effects: inout Effects) {
        guard let watch = watches.removeValue(forKey: trigger) else { return }
        triggers[watch.id] = nil
        effects.ends.append(watch.run)
    }

    private mutating func endAll(into effects: inout Effects) {
        for trigger in watches.keys.sorted() { end(trigger, into: &effects) }
    }

    private func report(_ watch: Watch, into effects: inout Effects) {
        effects.reports.append(.state(watch.id, watch.state, problem: watch.problem))
        if let occurrence = watch.occurrence {
            effects.reports.append(.occurred(watch.id, occurrence))
        }
    }
}
