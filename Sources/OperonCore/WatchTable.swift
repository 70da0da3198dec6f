package import OperonModel

/// Decides which worker watches the source of which trigger, and what is ordered.
///
/// The coordinator's shell drives it: it reports what it wants watched, which workers there are and
/// what they report, and sends the orders. An order or a report may be lost, come twice or come
/// late. From time to time, and after each welcome, a worker states all that it holds: the table
/// ends what it does not want, begins what is missing, and asks again for what it does not know.
///
/// At most one occurrence of a watch is on its way. Two workers may watch the same source for a
/// moment, when one of them was believed dead.
package struct WatchTable: Sendable {
    /// A worker that may watch.
    package struct Worker: Hashable, Sendable {
        package let incarnation: Incarnation
        package let name: String
        package let labels: [WorkerLabel]

        package init(incarnation: Incarnation, name: String, labels: [WorkerLabel]) {
            self.incarnation = incarnation
            self.name = name
            self.labels = labels
        }
    }

    package enum Event: Sendable {
        /// A worker whose labels meet the requirements is to watch the source for the trigger,
        /// instead of what was wanted before.
        ///
        /// - Parameter isKept: Whether the trigger is that of an earlier coordinator. A worker that
        ///   watched for it goes on, so until `settled` no other one begins.
        case wanted(TriggerID, WatchedSource, [WorkerRequirement], isKept: Bool)
        case unwanted(TriggerID)
        /// All workers that may watch now. A new one begins with its first statement.
        case workersChanged([Worker])
        case reported(Incarnation, WatchReport)
        /// An occurrence that `news` gave out is stored, or can never fire the trigger.
        case taken(TriggerID, identity: String)
        /// Every worker of an earlier coordinator has been heard, or will not be.
        case settled
    }

    /// What there is to know of a watch.
    package enum News: Hashable, Sendable {
        case observing
        /// It cannot be observed at present.
        case waiting(TriggerSourceError)
        /// So many occurrences cannot be reported; the last one for this reason.
        case refused(count: UInt32, TriggerSourceError)
        case occurred(Occurrence)
        /// Nothing more can occur.
        case ended
    }

    package struct Effects: Sendable {
        package var orders: [(worker: Incarnation, order: WatchOrder)] = []
        /// Those for which `news` has something.
        package var news: [TriggerID] = []

        package init() {}
    }

    private struct Watch: Sendable {
        let source: WatchedSource
        let requirements: [WorkerRequirement]
        let isKept: Bool
        /// Who watches, and under which number; `nil`: nobody.
        var place: (worker: Incarnation, id: WatchID)?
        var state = WatchState.starting
        /// Given out or to be given out, and not taken.
        var occurrence: Occurrence?
        /// Whose bytes they count as; `nil`: nobody's.
        var holder: Incarnation?
        /// Whether an occurrence was taken.
        var hasFired = false
        /// Workers that had no room for it, or do not know such sources.
        var refusedBy: Set<Incarnation> = []
        /// In order. A later one takes the place of an earlier one of its kind that nobody has
        /// asked for.
        var news: [News] = []
    }

    private struct Known: Sendable {
        let worker: Worker
        /// Whether it has stated what it holds.
        var isReady = false
        /// Those that it is to watch.
        var triggers: Set<TriggerID> = []
        /// Bytes of its occurrences that were not taken.
        var heldBytes = 0
    }

    /// Sorted where the order matters.
    private var watches: [TriggerID: Watch] = [:]
    private var workers: [Incarnation: Known] = [:]
    /// The triggers of all watches that have a place.
    private var triggers: [WatchID: TriggerID] = [:]
    private var hasSettled = false
    /// Who has stated that it watches for a trigger that nobody has wanted yet; until `settled`.
    private var claims: [TriggerID: Incarnation] = [:]
    private var heldBytes = 0
    private var nextID: UInt64
    private let perWorker: Int
    private let heldBytesMax: Int
    /// Of one worker, so that none takes all.
    private var heldBytesOfWorkerMax: Int { heldBytesMax / 8 }

    /// - Parameter firstID: The number of the first watch. Drawn, so that no two coordinators give
    ///   the same numbers.
    package init(
        firstID: WatchID,
        perWorker: Int = Limits.watchesPerWorker,
        heldBytesMax: Int = Limits.watchedBytes
    ) {
        nextID = firstID.rawValue
        self.perWorker = perWorker
        self.heldBytesMax = heldBytesMax
    }

    /// The name of the worker that watches for a trigger; `nil`: none does.
    package func watcher(of trigger: TriggerID) -> String? {
        watches[trigger]?.place.flatMap { workers[$0.worker]?.worker.name }
    }

    /// A worker that meets the requirements and has room, the one with the fewest watches.
    package func worker(
        meeting requirements: [WorkerRequirement],
        except others: Set<Incarnation> = []
    ) -> Worker? {
        workers.values
            .filter { known in
                known.isReady && canTake(known, requirements)
                    && !others.contains(known.worker.incarnation)
            }
            .min { left, right in
                let (less, more) = (left.triggers.count, right.triggers.count)
                if less != more { return less < more }
                let (first, second) = (left.worker, right.worker)
                return (first.name, first.incarnation.rawValue)
                    < (second.name, second.incarnation.rawValue)
            }?.worker
    }

    private func canTake(_ known: Known, _ requirements: [WorkerRequirement]) -> Bool {
        known.triggers.count < perWorker
            && requirements.allSatisfy { $0.isMet(by: known.worker.labels) }
    }

    /// Gives out what is new of a watch.
    package mutating func news(of trigger: TriggerID) -> [News] {
        let news = watches[trigger]?.news ?? []
        watches[trigger]?.news = []
        return news
    }

    // MARK: - Events

    package mutating func handle(_ event: Event, into effects: inout Effects) {
        switch event {
        case .wanted(let trigger, let source, let requirements, let isKept):
            drop(trigger, into: &effects)
            watches[trigger] = Watch(source: source, requirements: requirements, isKept: isKept)
            if isKept, let claimer = claims[trigger].flatMap({ workers[$0] }),
                canTake(claimer, requirements)
            {
                place(trigger, at: claimer.worker.incarnation, into: &effects)
            } else {
                assign(trigger, into: &effects)
            }
        case .unwanted(let trigger): drop(trigger, into: &effects)
        case .workersChanged(let now): workersChanged(now, into: &effects)
        case .reported(let worker, let report): take(report, from: worker, into: &effects)
        case .taken(let trigger, let identity): taken(trigger, identity, into: &effects)
        case .settled:
            hasSettled = true
            claims = [:]
            for trigger in free { assign(trigger, into: &effects) }
        }
    }

    private mutating func drop(_ trigger: TriggerID, into effects: inout Effects) {
        forgetOccurrence(of: trigger)
        release(trigger, into: &effects)
        watches[trigger] = nil
    }

    private mutating func forgetOccurrence(of trigger: TriggerID) {
        guard let watch = watches[trigger], let occurrence = watch.occurrence else { return }
        heldBytes -= occurrence.event.count
        if let holder = watch.holder { workers[holder]?.heldBytes -= occurrence.event.count }
        watches[trigger]?.occurrence = nil
        watches[trigger]?.holder = nil
    }

    /// Takes a watch from its worker, which may be gone.
    private mutating func release(_ trigger: TriggerID, into effects: inout Effects) {
        guard let watch = watches[trigger], let place = watch.place else { return }
        // What was given out is on its way to the store.
        if let waiting = watch.news.firstIndex(where: { $0.isOccurrence }) {
            watches[trigger]?.news.remove(at: waiting)
            forgetOccurrence(of: trigger)
        } else if let holder = watch.holder {
            workers[holder]?.heldBytes -= watch.occurrence?.event.count ?? 0
            watches[trigger]?.holder = nil
        }
        watches[trigger]?.place = nil
        watches[trigger]?.state = .starting
        triggers[place.id] = nil
        workers[place.worker]?.triggers.remove(trigger)
        effects.orders.append((place.worker, .end(place.id)))
    }

    /// Those that nobody watches, in order.
    private var free: [TriggerID] {
        watches.filter { $0.value.place == nil }.map(\.key).sorted()
    }

    private mutating func assign(_ trigger: TriggerID, into effects: inout Effects) {
        guard let watch = watches[trigger], hasSettled || !watch.isKept else { return }
        let found =
            worker(meeting: watch.requirements, except: watch.refusedBy)
            ?? worker(meeting: watch.requirements)
        guard let found else {
            tell(trigger, .waiting(Self.absence(watch.requirements)), into: &effects)
            return
        }
        place(trigger, at: found.incarnation, into: &effects)
    }

    private mutating func place(
        _ trigger: TriggerID,
        at worker: Incarnation,
        into effects: inout Effects
    ) {
        guard let source = watches[trigger]?.source else { return }
        let id = WatchID(rawValue: nextID)
        nextID &+= 1
        watches[trigger]?.place = (worker, id)
        triggers[id] = trigger
        workers[worker]?.triggers.insert(trigger)
        effects.orders.append((worker, .begin(id, trigger, source)))
    }

    private static func absence(_ requirements: [WorkerRequirement]) -> TriggerSourceError {
        let selector = requirements.map(\.selector).joined(separator: ", ")
        let wanted = selector.isEmpty ? "" : " with \(selector)"
        return TriggerSourceError(.absent, "there is no worker\(wanted) that watches sources")
    }

    private mutating func workersChanged(_ now: [Worker], into effects: inout Effects) {
        var next: [Incarnation: Known] = [:]
        for worker in now {
            next[worker.incarnation] = Known(worker: worker)
            guard let known = workers[worker.incarnation] else { continue }
            next[worker.incarnation]?.isReady = known.isReady
            next[worker.incarnation]?.triggers = known.triggers
            next[worker.incarnation]?.heldBytes = known.heldBytes
        }
        let lost = workers.filter { next[$0.key] == nil }.flatMap(\.value.triggers).sorted()
        for trigger in lost { release(trigger, into: &effects) }
        workers = next
        for trigger in lost { assign(trigger, into: &effects) }
    }

    // MARK: - Reports

    private mutating func take(
        _ report: WatchReport,
        from worker: Incarnation,
        into effects: inout Effects
    ) {
        switch report {
        case .identified, .unidentified: return
        case .holds(let held): compare(held, of: worker, into: &effects)
        case .state(let id, let state, let problem):
            guard let trigger = trigger(of: id, at: worker) else { return }
            note(state, problem, of: trigger, into: &effects)
        case .refused(let id, let count, let problem):
            guard let trigger = trigger(of: id, at: worker) else { return }
            tell(trigger, .refused(count: count, problem), into: &effects)
        case .occurred(let id, let occurrence):
            guard let trigger = trigger(of: id, at: worker),
                // Another one, or the same, is on its way to the store.
                watches[trigger]?.occurrence == nil,
                // The worker keeps it, and is asked again after a later statement.
                hasRoom(for: occurrence.event.count, of: worker)
            else { return }
            heldBytes += occurrence.event.count
            workers[worker]?.heldBytes += occurrence.event.count
            watches[trigger]?.occurrence = occurrence
            watches[trigger]?.holder = worker
            tell(trigger, .occurred(occurrence), into: &effects)
        }
    }

    private func hasRoom(for bytes: Int, of worker: Incarnation) -> Bool {
        let held = workers[worker]?.heldBytes ?? 0
        return heldBytes + bytes <= heldBytesMax && held + bytes <= heldBytesOfWorkerMax
    }

    /// `nil`: this worker has no such watch, or has it no more.
    private func trigger(of id: WatchID, at worker: Incarnation) -> TriggerID? {
        guard let trigger = triggers[id], watches[trigger]?.place?.worker == worker
        else { return nil }
        return trigger
    }

    /// Compares what a worker holds with what it is to hold.
    private mutating func compare(
        _ held: [HeldWatch],
        of worker: Incarnation,
        into effects: inout Effects
    ) {
        guard let known = workers[worker] else {
            for one in held { effects.orders.append((worker, .end(one.watch))) }
            return
        }
        workers[worker]?.isReady = true
        var missing = known.triggers
        // What it is asked to report again may have so many bytes.
        var asked = 0
        for one in held {
            if let trigger = trigger(of: one.watch, at: worker), trigger == one.trigger {
                missing.remove(trigger)
                compare(one, of: worker, asked: &asked, into: &effects)
            } else if let watch = watches[one.trigger], watch.place == nil,
                canTake(workers[worker] ?? known, watch.requirements)
            {
                // It watched for an earlier coordinator, and goes on if the source is the same.
                place(one.trigger, at: worker, into: &effects)
            } else if !hasSettled, watches[one.trigger] == nil {
                if claims.count < Limits.triggersMax { claims[one.trigger] = worker }
            } else if !missing.contains(one.trigger) {
                effects.orders.append((worker, .end(one.watch)))
            }
        }
        for trigger in missing.sorted() {
            guard let watch = watches[trigger], let place = watch.place else { continue }
            watches[trigger]?.state = .starting
            effects.orders.append((worker, .begin(place.id, trigger, watch.source)))
        }
        for trigger in free {
            guard let watch = watches[trigger], hasSettled || !watch.isKept,
                let known = workers[worker], canTake(known, watch.requirements)
            else { continue }
            place(trigger, at: worker, into: &effects)
        }
    }

    /// Compares one watch with what is known of it.
    private mutating func compare(
        _ one: HeldWatch,
        of worker: Incarnation,
        asked: inout Int,
        into effects: inout Effects
    ) {
        guard let watch = watches[one.trigger] else { return }
        if watch.state == one.state, !watch.refusedBy.isEmpty {
            // Some time has passed, so another worker may have room now.
            watches[one.trigger]?.refusedBy = [worker]
            move(one.trigger, into: &effects)
            if watches[one.trigger]?.place?.worker != worker { return }
            if one.state == .ended { renew(one.trigger, into: &effects) }
            return
        }
        var isKnown = watch.state == one.state
        if one.occurrence != nil, watch.occurrence == nil,
            hasRoom(for: asked + Occurrence.eventBytesMax, of: worker)
        {
            asked += Occurrence.eventBytesMax
            isKnown = false
        }
        if !isKnown { effects.orders.append((worker, .again(one.watch))) }
    }

    /// Has the same worker begin again.
    private mutating func renew(_ trigger: TriggerID, into effects: inout Effects) {
        guard let worker = watches[trigger]?.place?.worker else { return }
        release(trigger, into: &effects)
        place(trigger, at: worker, into: &effects)
    }

    private mutating func note(
        _ state: WatchState,
        _ problem: TriggerSourceError?,
        of trigger: TriggerID,
        into effects: inout Effects
    ) {
        guard let watch = watches[trigger] else { return }
        watches[trigger]?.state = state
        switch state {
        case .starting: return
        case .observing:
            watches[trigger]?.refusedBy = []
            return tell(trigger, .observing, into: &effects)
        case .ended where problem == nil && watch.source.endsByItself && watch.hasFired:
            return tell(trigger, .ended, into: &effects)
        case .waiting, .ended: break
        }
        let problem = problem ?? TriggerSourceError(.system, "its worker gives no reason")
        tell(trigger, .waiting(problem), into: &effects)
        // Another worker may have room, or what this one will never find.
        let isRefused = [.exhausted, .limitExceeded].contains(problem.code)
        if isRefused || state == .ended { move(trigger, into: &effects) }
    }

    /// Gives a watch to another worker, if there is one that has not refused it.
    private mutating func move(_ trigger: TriggerID, into effects: inout Effects) {
        guard let watch = watches[trigger], let place = watch.place else { return }
        watches[trigger]?.refusedBy.insert(place.worker)
        let refusedBy = watch.refusedBy.union([place.worker])
        guard let other = worker(meeting: watch.requirements, except: refusedBy) else { return }
        release(trigger, into: &effects)
        self.place(trigger, at: other.incarnation, into: &effects)
    }

    private mutating func taken(
        _ trigger: TriggerID,
        _ identity: String,
        into effects: inout Effects
    ) {
        guard let watch = watches[trigger], watch.occurrence?.identity == identity
        else { return }
        forgetOccurrence(of: trigger)
        watches[trigger]?.hasFired = true
        guard let place = watch.place else { return }
        effects.orders.append((place.worker, .taken(place.id, identity: identity)))
    }

    /// Keeps news until they are asked for. A worker decides how many there are, so there is one of
    /// each kind at most.
    private mutating func tell(
        _ trigger: TriggerID,
        _ news: News,
        into effects: inout Effects
    ) {
        guard var kept = watches[trigger]?.news else { return }
        var news = news
        if let place = kept.firstIndex(where: { $0.isReplaced(by: news) }) {
            if case .refused(let count, let problem) = news,
                case .refused(let before, _) = kept[place]
            {
                let (sum, isOver) = count.addingReportingOverflow(before)
                news = .refused(count: isOver ? .max : sum, problem)
            }
            kept.remove(at: place)
        }
        kept.append(news)
        watches[trigger]?.news = kept
        effects.news.append(trigger)
    }
}

extension WatchTable.News {
    fileprivate var isOccurrence: Bool { if case .occurred = self { true } else { false } }

    fileprivate func isReplaced(by later: WatchTable.News) -> Bool {
        switch (self, later) {
        case (.observing, .observing), (.observing, .waiting), (.waiting, .observing),
            (.waiting, .waiting), (.refused, .refused), (.occurred, .occurred), (.ended, .ended):
            true
        case (.observing, _), (.waiting, _), (.refused, _), (.occurred, _), (.ended, _): false
        }
    }
}
