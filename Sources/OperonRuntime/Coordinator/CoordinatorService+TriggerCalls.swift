import OperonCore
import OperonModel
import OperonPorts

// What clients ask of triggers.
extension CoordinatorService {
    func triggerSupport() throws(ClientError) -> TriggerSupport {
        guard let support = triggering.support else {
            throw ClientError(.unavailable, "This coordinator has no triggers.")
        }
        return support
    }

    private func find(trigger name: String) throws(ClientError) -> TriggerID {
        guard let id = triggering.table.id(of: name) else {
            throw ClientError(.notFound, "There is no trigger “\(name)”.")
        }
        return id
    }

    // MARK: - Changes

    /// Adds a trigger whose description was checked. The same trigger again has no effect.
    func add(
        _ description: TriggerDescription,
        body: [UInt8],
        zone: TimeZoneRules,
        replace: Bool,
        _ caller: String
    ) throws(ClientError) -> TriggerView {
        try mayChange()
        var stored = StoredTrigger(
            id: TriggerID(rawValue: 0),
            name: description.name,
            addedAt: time.wall(),
            addedBy: caller,
            body: body
        )
        if let id = triggering.table.id(of: description.name),
            let known = triggering.table.summary(of: id, at: time.wall())
        {
            if known.stored.body == body { return try view(ofTrigger: description.name) }
            guard replace else {
                throw ClientError(
                    .conflict,
                    "There is another trigger “\(description.name)”. Remove it, or replace it."
                )
            }
            stored.id = id
            define(description, stored, in: zone) { .replaced($0, stored) }
            return try view(ofTrigger: description.name)
        }
        guard triggering.table.count < Limits.triggersMax, triggering.lastNumber < .max else {
            throw ClientError(
                .tooLarge,
                "This coordinator has \(Limits.triggersMax) triggers, and no more may be added."
            )
        }
        triggering.lastNumber += 1
        stored.id = TriggerID(epoch: scheduler.epoch, number: triggering.lastNumber)
        define(description, stored, in: zone) { .added($0, stored) }
        return try view(ofTrigger: description.name)
    }

    private func define(
        _ description: TriggerDescription,
        _ stored: StoredTrigger,
        in zone: TimeZoneRules,
        _ event: (TriggerTable.Definition) -> TriggerTable.Event
    ) {
        triggering.descriptions[stored.id] = description
        triggering.buckets[stored.id] = nil
        let definition = TriggerTable.Definition(
            stored.id,
            description,
            zone: zone,
            addedAt: stored.addedAt
        )
        handle(trigger: event(definition), by: stored.addedBy)
    }

    func remove(trigger name: String, by caller: String) throws(ClientError) -> TriggerView {
        try mayChange()
        let view = try view(ofTrigger: name)
        let id = try find(trigger: name)
        handle(trigger: .removed(id), by: caller)
        return view
    }

    func suspend(
        trigger name: String,
        _ suspension: Suspension?,
        by caller: String
    ) throws(ClientError) -> TriggerView {
        try mayChange()
        handle(trigger: .suspensionRequested(try find(trigger: name), suspension), by: caller)
        return try view(ofTrigger: name)
    }

    func fire(
        trigger name: String,
        _ occurrence: TriggerTable.Occurrence,
        by caller: String
    ) throws(ClientError) -> FiringView {
        try mayChange()
        let id = try find(trigger: name)
        switch handle(trigger: .occurred(id, occurrence), by: caller) {
        case .accepted(let firing): return try view(of: firing)
        case .again(let firing):
            var view = try view(of: firing)
            view.isRepeated = true
            return view
        case .refused(.unknown), nil:
            throw ClientError(.notFound, "There is no trigger “\(name)”.")
        case .refused(.ended):
            throw ClientError(
                .conflict,
                "Trigger “\(name)” does not fire any more: its time or its number of firings is "
                    + "over."
            )
        case .refused(.data(let why)):
            throw ClientError(.invalid, "The data do not fit trigger “\(name)”: \(why).")
        case .refused(.tooMany), .refused(.busy):
            throw ClientError(
                .tooLarge,
                "Trigger “\(name)” has \(Limits.triggerOpenMax) firings that have not ended. To "
                    + "see why: operon explain trigger/\(name)"
            )
        }
    }

    /// Takes a place in the rate of a webhook.
    func admit(webhook name: String, perMinute: Int) throws(ClientError) {
        let id = try find(trigger: name)
        var bucket = triggering.buckets[id] ?? RequestBucket(perMinute: perMinute)
        let isAdmitted = bucket.take(at: time.now())
        triggering.buckets[id] = bucket
        guard isAdmitted else {
            throw ClientError(
                .unavailable,
                "Webhook “\(name)” takes \(perMinute) requests in a minute: try again later."
            )
        }
    }

    /// The description of a trigger; `nil`: there is none.
    func description(ofTrigger name: String) -> TriggerDescription? {
        triggering.table.id(of: name).flatMap { triggering.descriptions[$0] }
    }

    // MARK: - Views

    func triggerViews() -> [TriggerView] {
        triggering.table.allIDs.compactMap { id in
            triggering.table.summary(of: id, at: time.wall()).map { summary in
                view(summary, triggering.watches[id]?.report)
            }
        }
    }

    func view(ofTrigger name: String) throws(ClientError) -> TriggerView {
        let id = try find(trigger: name)
        return try view(of: id, named: name, triggering.watches[id]?.report)
    }

    private func view(
        of id: TriggerID,
        named name: String,
        _ watch: TriggerWatch.Report?
    ) throws(ClientError) -> TriggerView {
        guard let summary = triggering.table.summary(of: id, at: time.wall()) else {
            throw ClientError(.notFound, "There is no trigger “\(name)”.")
        }
        return view(summary, watch)
    }

    private func view(
        _ summary: TriggerTable.Summary,
        _ watch: TriggerWatch.Report?
    ) -> TriggerView {
        let definition = summary.definition
        let policy = definition.policy
        var view = TriggerView(
            name: definition.name,
            source: definition.source.kind,
            on: definition.source.words
                + (triggering.descriptions[summary.id]?.watcher.words ?? ""),
            graph: triggering.descriptions[summary.id]?.graph.file ?? "",
            status: summary.status.rawValue,
            overlap: policy.overlap.rawValue,
            addedAt: TimeText(summary.stored.addedAt)
        )
        view.suspension = summary.suspension.map { SuspensionView($0) }
        view.nextAt = summary.nextTick.map { TimeText($0) }
        view.firings = summary.accepted
        view.open = summary.openCount
        view.last = summary.last.map { self.view($0, of: definition.name) }
        view.watch = watch?.state.rawValue
        view.watchedBy = triggering.workers.table.watcher(of: summary.id)
        let problems = [definition.problem, watch?.problem ?? "", summary.reason]
        view.problem = problems.first { !$0.isEmpty }
        view.missed = definition.source.isTimer ? policy.missed.rawValue : nil
        view.merge = definition.source.isTimer ? nil : definition.merge?.rawValue
        view.coalesce = policy.coalesce?.seconds
        view.until = policy.until.map { TimeText($0) }
        view.limit = policy.limit
        view.addedBy = summary.stored.addedBy.isEmpty ? nil : summary.stored.addedBy
        return view
    }

    private func view(of firing: FiringID) throws(ClientError) -> FiringView {
        guard let row = triggering.table.firing(firing),
            let summary = triggering.table.summary(of: firing.trigger, at: time.wall())
        else { throw ClientError(.internal, "A firing that was accepted is not there.") }
        return view(row, of: summary.definition.name)
    }

    private func view(_ row: StoredFiring, of name: String) -> FiringView {
        var view = FiringView(
            trigger: name,
            number: row.id.number,
            identity: row.identity,
            status: row.status.name,
            occurredAt: TimeText(row.occurredAt)
        )
        view.plannedAt = row.plannedAt.map { TimeText($0) }
        view.count = row.count
        view.graph = row.status.graph?.rawValue
        view.reason = row.reason.isEmpty ? nil : row.reason
        if case .ended(_, let outcome) = row.status { view.outcome = outcome }
        if case .merged(let number) = row.status { view.mergedInto = number }
        return view
    }

    func firings(ofTrigger name: String, limit: Int) throws(ClientError) -> [FiringView] {
        let id = try find(trigger: name)
        return triggering.table.firings(of: id, limit: limit).map { view($0, of: name) }
    }

    func nextTicks(ofTrigger name: String, count: Int) throws(ClientError) -> [TickView] {
        let id = try find(trigger: name)
        let now = time.wall()
        return triggering.table.nextTicks(of: id, count: count, after: now).map { tick in
            TickView(at: TimeText(tick), local: triggering.table.localText(of: tick, for: id))
        }
    }

    func explanation(ofTrigger name: String) throws(ClientError) -> TriggerExplanation {
        let id = try find(trigger: name)
        let now = Moment(monotonic: time.now(), wall: time.wall())
        var reasons = triggering.table.reasons(of: id, at: now).map { reason in
            TriggerReasonView(
                code: reason.code,
                text: reason.text,
                until: reason.until.map { TimeText($0) },
                graph: reason.graph?.rawValue
            )
        }
        // Read once: whoever watches may change it between two looks.
        let watch = triggering.watches[id]?.report
        if let watch { reasons = watch.reasons + reasons }
        return TriggerExplanation(trigger: try view(of: id, named: name, watch), reasons: reasons)
    }
}

extension FiringSource {
    /// The source as people read it in a list.
    fileprivate var words: String {
        switch self {
        case .every(let source): "every \(source.interval.seconds.text)s"
        case .cron(let source): "cron \(source.expression.text) (\(source.timezone))"
        case .event: "event"
        case .watched(let source): source.words
        case .webhook(let source): "webhook (\(source.signature.rawValue))"
        case .graph(let source):
            source.outcomes.isEmpty
                ? "graph \(source.name)"
                : "graph \(source.name) (\(source.outcomes.map(\.name).joined(separator: ", ")))"
        }
    }
}

extension TriggerWatcher {
    fileprivate var words: String {
        switch self {
        case .coordinator: ""
        case .workers([]): " at any worker"
        case .workers(let requirements):
            " at a worker with " + requirements.map(\.selector).joined(separator: ", ")
        }
    }
}

extension WatchedSource {
    fileprivate var words: String {
        switch self {
        case .file(let source):
            "file \(source.path)\(source.pattern.map { "/" + $0 } ?? "") "
                + "(\(source.changeNames.joined(separator: ", ")))"
        case .pipe(let path): "pipe \(path)"
        case .program(let arguments): "pipe of \(arguments.joined(separator: " "))"
        case .signal(let name): "signal \(name)"
        case .process(.number(let number)): "process \(number)"
        case .process(.identity(let text)):
            "process \(text.split(separator: ":").dropFirst().first ?? "")"
        case .process(.file(let path)): "process of \(path)"
        case .message(let queue): "message in \(queue)"
        }
    }
}

extension TriggerWatch.Report {
    /// Why nothing that occurs fires the trigger.
    fileprivate var reasons: [TriggerReasonView] {
        var reasons: [TriggerReasonView] = []
        func add(_ code: String, _ text: String) {
            reasons.append(TriggerReasonView(code: code, text: text, until: nil, graph: nil))
        }
        switch state {
        case .observing: break
        case .starting: add("notObserved", "It is about to be observed.")
        case .waiting: add("notObserved", "It cannot be observed at present: \(problem).")
        case .ended where problem.isEmpty: add("sourceEnded", "What it watched has ended.")
        case .ended: add("notObserved", "It cannot be observed: \(problem).")
        }
        if refused > 0 {
            let count = refused == 1 ? "1 occurrence" : "\(refused) occurrences"
            add("occurrenceRefused", "\(count) could not fire it. The last one: \(refusal).")
        }
        return reasons
    }
}

extension Double {
    /// A whole number without its fraction.
    fileprivate var text: String {
        self == rounded() && magnitude < 1e15 ? "\(Int64(self))" : "\(self)"
    }
}
