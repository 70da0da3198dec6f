import OperonCore
import OperonModel
import OperonPorts

// Drives the `WatchTable`: has workers watch sources of triggers, and hears what they say of them.
extension CoordinatorService {
    // MARK: - Workers

    /// Workers have come or gone, or take nothing new.
    func noteWatchers() {
        let watchers = scheduler.watchers
        guard triggering.workers.watchers != watchers else { return }
        triggering.workers.watchers = watchers
        handle(watches: [.workersChanged(watchers)])
    }

    /// Returns when workers of an earlier coordinator have had time to state what they watch.
    nonisolated func settleWatches() async {
        await connected.wait()
        let lease = await scheduler.configuration.lease
        do { try await time.sleep(time.now() + lease) } catch { return }
        await handle(watches: [.settled])
    }

    func note(_ reports: [WatchReport], of worker: Incarnation) {
        // The table must know the worker whose statement it gets.
        noteWatchers()
        var events: [WatchTable.Event] = []
        for report in reports {
            switch report {
            case .identified(let number, let identity):
                answer(number, by: worker, .success(identity))
            case .unidentified(let number, let problem):
                answer(number, by: worker, .failure(problem))
            case .holds, .state, .refused, .occurred: events.append(.reported(worker, report))
            }
        }
        handle(watches: events)
    }

    private func handle(watches events: [WatchTable.Event]) {
        var effects = WatchTable.Effects()
        for event in events { triggering.workers.table.handle(event, into: &effects) }
        for trigger in effects.news { triggering.workers.feeds[trigger]?.signal.raise() }
        var orders: [Incarnation: [WatchOrder]] = [:]
        var receivers: [Incarnation] = []
        for (worker, order) in effects.orders {
            if orders[worker] == nil { receivers.append(worker) }
            orders[worker, default: []].append(order)
        }
        for worker in receivers { send(orders[worker] ?? [], to: worker) }
    }

    private func send(_ orders: [WatchOrder], to worker: Incarnation) {
        guard let address = scheduler.address(of: worker) else { return }
        for piece in orders.pieces(ofBytes: Limits.watchMessageBytes, \.approximateBytes) {
            post(.watch(Array(piece)), to: address)
        }
    }

    // MARK: - Watches

    /// - Returns: `nil`: the trigger has another watch by now, or none.
    func begin(
        _ watch: TriggerWatch,
        of trigger: TriggerID,
        _ requirements: [WorkerRequirement]
    ) -> WorkerWatches.Feed? {
        guard triggering.watches[trigger]?.end === watch.end else { return nil }
        let feed = WorkerWatches.Feed()
        triggering.workers.feeds[trigger] = feed
        let isKept = trigger.epoch < scheduler.epoch
        handle(watches: [.wanted(trigger, watch.source, requirements, isKept: isKept)])
        return feed
    }

    /// Ends a watch, unless another one for the trigger has begun.
    func endWatch(of trigger: TriggerID, _ feed: WorkerWatches.Feed) {
        guard triggering.workers.feeds[trigger] === feed else { return }
        triggering.workers.feeds[trigger] = nil
        handle(watches: [.unwanted(trigger)])
    }

    func watchNews(of trigger: TriggerID, _ feed: WorkerWatches.Feed) -> [WatchTable.News] {
        guard triggering.workers.feeds[trigger] === feed else { return [] }
        return triggering.workers.table.news(of: trigger)
    }

    func take(_ occurrence: Occurrence, of trigger: TriggerID, _ feed: WorkerWatches.Feed) {
        guard triggering.workers.feeds[trigger] === feed else { return }
        handle(watches: [.taken(trigger, identity: occurrence.identity)])
    }

    // MARK: - Processes

    /// The trigger with the process of its number, as the worker's machine has it now, and that
    /// machine alone; other triggers as they are.
    func identified(
        _ description: TriggerDescription
    ) async throws(ClientError) -> TriggerDescription {
        guard case .workers(let requirements) = description.watcher,
            case .watched(.process(.number(let process))) = description.source
        else { return description }
        guard let worker = whoKnows(description.name, requirements) else {
            throw ClientError(
                .unavailable,
                "There is no worker with these labels that watches sources and could tell which "
                    + "process has the number \(process)."
            )
        }
        guard let host = worker.labels.first(where: { $0.name == Machine.hostLabel }) else {
            throw ClientError(
                .invalid,
                "Worker “\(worker.name)” has no label “\(Machine.hostLabel)”, so the process "
                    + "\(process) of its machine cannot be watched."
            )
        }
        let identity = try await identity(of: process, at: worker)
        var description = description
        description.source = .watched(.process(.identity(identity)))
        let others = requirements.filter { $0.label != host.name }
        description.watcher = .workers([.equals(host.name, host.value)] + others)
        return description
    }

    /// The worker that is to tell which process has a number: if the trigger is there already, one
    /// of the same machine, so that the same trigger is the same again.
    private func whoKnows(
        _ name: String,
        _ requirements: [WorkerRequirement]
    ) -> WatchTable.Worker? {
        if case .workers(let known) = description(ofTrigger: name)?.watcher,
            let worker = triggering.workers.table.worker(meeting: known + requirements)
        {
            return worker
        }
        return triggering.workers.table.worker(meeting: requirements)
    }

    private func identity(
        of process: Int32,
        at worker: WatchTable.Worker
    ) async throws(ClientError) -> String {
        triggering.workers.lastQuestion += 1
        let number = triggering.workers.lastQuestion
        let question = WorkerWatches.Question(worker: worker)
        triggering.workers.questions[number] = question
        send([.identify(number, process: process)], to: worker.incarnation)
        await question.answered.wait(
            until: time.now() + WorkerWatches.answerPatience,
            by: time
        )
        switch triggering.workers.questions.removeValue(forKey: number)?.answer {
        case .success(let identity):
            guard ProcessIdentity(identity)?.process == process else {
                throw ClientError(
                    .unavailable,
                    "Worker “\(worker.name)” has named another process than \(process)."
                )
            }
            return identity
        case .failure(let problem):
            throw ClientError(
                .invalid,
                "The trigger cannot be added: at worker “\(worker.name)”, \(problem.message)."
            )
        case nil:
            throw ClientError(
                .unavailable,
                "Worker “\(worker.name)” has not answered which process has the number \(process)."
            )
        }
    }

    private func answer(
        _ number: UInt64,
        by worker: Incarnation,
        _ answer: Result<String, TriggerSourceError>
    ) {
        guard let question = triggering.workers.questions[number],
            question.worker.incarnation == worker
        else { return }
        triggering.workers.questions[number]?.answer = answer
        question.answered.open()
    }
}
