import DequeModule
import Logging
import OperonCore
import OperonModel
import OperonPorts
import OperonSystem

// Drives the `TriggerTable`: reports what occurs, stores its records, and submits graphs.
extension CoordinatorService {
    // MARK: - Running

    /// Fires ticks and submits the graphs of firings until its task is cancelled.
    package nonisolated func runTriggers() async {
        guard await startTriggers() else { return }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.lookAtClock() }
            group.addTask { await self.submitFirings() }
            group.addTask { await self.watchSources() }
            group.addTask { await self.settleWatches() }
        }
    }

    /// What was accepted before is submitted again, and what has ended meanwhile is noted.
    private func startTriggers() -> Bool {
        guard triggering.support != nil else { return false }
        triggering.hasStarted = true
        for graph in triggering.table.runningGraphs {
            // benign: a graph of which the store has lost the end was dropped.
            if !catalog.contains(graph) || scheduler.isFinished(graph) {
                handle(trigger: endEvent(of: graph))
            }
        }
        handle(trigger: .started)
        handle(trigger: .timeReached)
        for id in triggering.table.allIDs { noteForWatches(id) }
        return true
    }

    /// Notices that the clock was set back: an alarm for a date would ring late.
    private nonisolated func lookAtClock() async {
        while !Task.isCancelled {
            do { try await time.sleep(time.now() + Self.clockInterval) } catch { return }
            await timeCame()
        }
    }

    /// How often the calendar is compared with the ticks that it had.
    private static let clockInterval = Duration.seconds(10)

    private func timeCame() {
        // Ticks would pile up before a store that takes nothing.
        guard keeping?.trouble == nil, !hasEnded, triggering.table.count > 0 else { return }
        handle(trigger: .timeReached)
    }

    private func alarmRang() {
        triggering.alarm.rang()
        timeCame()
    }

    private func dateCame() {
        triggering.dateAlarm.rang()
        timeCame()
    }

    // MARK: - Events and effects

    /// - Parameter caller: The name of the client that asked for it; empty: nobody did, or the
    ///   client has none.
    @discardableResult
    func handle(
        trigger event: TriggerTable.Event,
        by caller: String = ""
    ) -> TriggerTable.Answer? {
        let now = Moment(monotonic: time.now(), wall: time.wall())
        var effects = TriggerTable.Effects()
        triggering.table.handle(event, at: now, into: &effects)
        storeWithNextStep(effects.events, by: caller)
        if keeping != nil, !effects.records.isEmpty {
            var step = Scheduler.Effects()
            step.records = effects.records.map { .trigger($0) }
            _ = keep(step, at: now)
        }
        take(effects)
        performTriggers()
        return effects.answer
    }

    /// Reports an event whose records are stored together with those of the scheduler's next step.
    func attach(trigger event: TriggerTable.Event) {
        let now = Moment(monotonic: time.now(), wall: time.wall())
        var effects = TriggerTable.Effects()
        triggering.table.handle(event, at: now, into: &effects)
        if keeping != nil, violation != .forgetsFirings { triggering.attached += effects.records }
        storeWithNextStep(effects.events)
        take(effects)
    }

    /// - Parameter caller: Who asked for the first of the events. The others follow from it.
    private func storeWithNextStep(_ events: [ClusterEvent], by caller: String = "") {
        guard keeping != nil, var first = events.first else { return }
        if first.by.isEmpty { first.by = caller }
        triggering.events.append(first)
        triggering.events += events.dropFirst()
    }

    private func take(_ effects: TriggerTable.Effects) {
        for record in effects.records {
            if case .removed(let id) = record {
                triggering.descriptions[id] = nil
                triggering.buckets[id] = nil
            }
            note(record)
        }
        triggering.submissions += effects.submissions
        triggering.cancels += effects.cancels
    }

    /// Wakes whoever watches for a trigger.
    private func note(_ record: TriggerRecord) {
        let id = record.trigger
        switch record {
        case .added, .replaced, .removed, .changed: noteForWatches(id)
        case .firing, .firingForgotten: break
        }
        triggering.watches[id]?.noteChange()
    }

    /// Cancels runs that are replaced, wakes the task that submits, and sets the alarms.
    func performTriggers() {
        guard triggering.hasStarted else { return }
        let cancels = triggering.cancels
        triggering.cancels = []
        // The caller still needs the result of the command that led here.
        let before = result
        defer { result = before }
        for graph in cancels where !scheduler.isCancelled(graph) && !scheduler.isFinished(graph) {
            handle(
                [
                    .cancelRequested(
                        .graph(graph),
                        reason: "its trigger has fired again",
                        cascade: false
                    )
                ],
                by: "trigger"
            )
        }
        if !triggering.submissions.isEmpty { triggering.signal.raise() }
        let wake = triggering.table.nextWake()
        let date = triggering.table.nextDate()
        triggering.alarm.set(wake, sleep: time.sleep) { [weak self] in await self?.alarmRang() }
        triggering.dateAlarm.set(date, sleep: time.sleepUntilDate) { [weak self] in
            await self?.dateCame()
        }
    }

    /// Tells the triggers that a graph has ended, in the step that ends it.
    func noteForTriggers(endOf graph: GraphID) {
        guard triggering.support != nil, triggering.table.count > 0, catalog.contains(graph),
            triggering.table.isConcerned(by: graph, named: catalog.name(of: graph))
        else { return }
        attach(trigger: endEvent(of: graph))
    }

    private func endEvent(of graph: GraphID) -> TriggerTable.Event {
        guard catalog.contains(graph) else {
            return .runEnded(graph, name: "", round: 0, .cancelled)
        }
        return .runEnded(
            graph,
            name: catalog.name(of: graph),
            round: scheduler.retries(of: graph),
            outcome(of: graph)
        )
    }

    private func outcome(of graph: GraphID) -> OutcomeKind {
        let counts = scheduler.stateCounts(of: graph)
        if counts.failed > 0 { return .failed }
        if counts.cancelled > 0 { return .cancelled }
        return scheduler.skippedMoreThanHandlers(graph) ? .skipped : .succeeded
    }

    // MARK: - Submitting

    private nonisolated func submitFirings() async {
        for await _ in await triggering.signal.raised {
            while let (submission, trigger, codec) = await nextSubmission() {
                do {
                    let graph = try Self.graph(of: submission, trigger, codec)
                    await submit(graph, for: submission)
                } catch {
                    let refusal: TriggerTable.SubmissionRefusal =
                        error is UnsafeEventError ? .ofEvent : .lasting
                    await refuse(submission, "\(error)", refusal)
                }
            }
        }
    }

    private func nextSubmission() -> (
        TriggerTable.Submission, TriggerDescription, any TriggerCodec
    )? {
        guard !hasEnded, fatal == nil, let codec = triggering.support?.codec else { return nil }
        while let next = triggering.submissions.popFirst() {
            guard triggering.table.isSubmitting(next.firing),
                let trigger = triggering.descriptions[next.firing.trigger]
            else { continue }
            return (next, trigger, codec)
        }
        return nil
    }

    /// The graph of a firing: read again, because its parameters depend on what fired the trigger.
    nonisolated static func graph(
        of submission: TriggerTable.Submission,
        _ trigger: TriggerDescription,
        _ codec: any TriggerCodec
    ) throws -> GraphDescription {
        let text = submission.isLast ? trigger.onRemove ?? trigger.graph : trigger.graph
        // What the parameters name may not be known when the trigger is removed.
        let parameters = submission.isLast ? "{}" : trigger.parameters
        var graph = try codec.graph(text, parameters: parameters, event: submission.event)
        let commands = graph.operations.count { operation in
            if case .command = operation.work { true } else { false }
        }
        let bytes = commands * submission.event.utf8.count
        guard bytes <= Limits.triggerEventBytesInAll else {
            throw ClientError(
                .tooLarge,
                "what fired the trigger takes \(bytes) bytes in its \(commands) commands, and may "
                    + "take \(Limits.triggerEventBytesInAll)"
            )
        }
        for index in graph.operations.indices {
            if case .command(var command) = graph.operations[index].work {
                command.environment[ProcessEnvironment.event] = submission.event
                graph.operations[index].work = .command(command)
            }
            if let priority = trigger.priority, graph.operations[index].priority == nil {
                graph.operations[index].priority = priority
            }
            if let queue = trigger.queue,
                graph.operations[index].queue == QueueSettings.defaultName
            {
                graph.operations[index].queue = queue
            }
        }
        return graph
    }

    private func submit(
        _ description: GraphDescription,
        for submission: TriggerTable.Submission
    ) async {
        // benign: the trigger was removed while its graph was read.
        guard triggering.table.isSubmitting(submission.firing) else { return }
        do throws(ClientError) {
            let submitter = "trigger/" + submission.name
            let (graph, compiled) = try compileAmongOthers(description, by: submitter)
            var contents = try StoredContents(graph, failFast: compiled.failFast)
            contents.submitter = submitter
            contents.idempotencyKey = submission.idempotencyKey
            contents.needs = compiled.graphsNeeded(by: nil)
            let id = try await submitOnce(graph, compiled, contents, for: submission.firing)
            // Nothing, unless the graph was submitted before.
            handle(trigger: .submitted(submission.firing, id))
        } catch {
            let isPassing = error.code == .unavailable
            // The reason follows a colon.
            let reason = error.refusal?.description ?? error.message
            refuse(submission, reason, isPassing ? .passing : .lasting)
        }
    }

    private func refuse(
        _ submission: TriggerTable.Submission,
        _ reason: String,
        _ refusal: TriggerTable.SubmissionRefusal
    ) {
        // Whoever can fire a trigger decides how often its graph is refused.
        if let count = triggering.faults.count(.refusedGraph, at: machineTime.now()) {
            logger.warning(
                "the graph of a trigger was refused",
                metadata: [
                    "trigger": "\(submission.name)", "reason": "\(reason)", "refusals": "\(count)",
                ]
            )
        }
        handle(trigger: .refused(submission.firing, reason: reason, refusal))
    }
}

extension CoordinatorHost.Activity {
    /// Fires triggers.
    package static let triggers = CoordinatorHost.Activity { await $0.service.runTriggers() }
}
