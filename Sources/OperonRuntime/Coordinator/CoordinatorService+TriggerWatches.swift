import Logging
import OperonCore
import OperonModel
import OperonPorts

// Watches the sources of triggers that are outside of the cluster.
extension CoordinatorService {
    /// Watches what triggers want to be watched, until its task is cancelled.
    nonisolated func watchSources() async {
        guard let support = await triggering.support else { return }
        let changes = await triggering.watchSignal
        await withDiscardingTaskGroup { group in
            for await _ in changes.raised {
                for (id, watch) in await nextWatches() {
                    group.addTask { await self.run(watch, of: id, support.sources) }
                }
            }
            group.cancelAll()
        }
        await support.sources?.shutDown()
    }

    /// A trigger was added, changed or removed.
    func noteForWatches(_ id: TriggerID) {
        let wanted = triggering.descriptions[id]?.source.watched
        guard wanted != nil || triggering.watches[id] != nil else { return }
        triggering.watchChanges.append(id)
        triggering.watchSignal.raise()
    }

    /// Ends the watches that are not wanted any more.
    ///
    /// - Returns: Those that are to be begun.
    private func nextWatches() -> [(TriggerID, TriggerWatch)] {
        let changes = triggering.watchChanges
        triggering.watchChanges = []
        var begun: [(TriggerID, TriggerWatch)] = []
        for id in changes {
            let isWanted = triggering.table.takesOccurrences(id, at: time.wall())
            let description = isWanted ? triggering.descriptions[id] : nil
            let wanted = description?.source.watched
            let watcher = description?.watcher ?? .coordinator
            let current = triggering.watches[id]
            // What was added anew may be observed where it could not be before.
            let hasFailed = current?.report.state == .ended && current?.report.problem != ""
            if let current, current.source == wanted, current.watcher == watcher,
                current.until == description?.policy.until, !hasFailed
            {
                continue
            }
            triggering.watches.removeValue(forKey: id)?.end.open()
            guard let wanted else { continue }
            let watch = TriggerWatch(wanted, by: watcher, until: description?.policy.until)
            triggering.watches[id] = watch
            begun.append((id, watch))
        }
        return begun
    }

    private nonisolated func run(
        _ watch: TriggerWatch,
        of id: TriggerID,
        _ provider: (any TriggerSourceProvider)?
    ) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.observe(watch, of: id, provider) }
            group.addTask { await watch.end.wait() }
            if let until = watch.until {
                group.addTask {
                    // Cancelled: another task was first.
                    do { try await self.time.sleepUntilDate(until) } catch { return }
                    await self.forget(watch, of: id)
                }
            }
            await group.next()
            group.cancelAll()
        }
    }

    /// The trigger does not fire any more. A change of it may begin another watch.
    private func forget(_ watch: TriggerWatch, of id: TriggerID) {
        guard isCurrent(watch, of: id) else { return }
        triggering.watches[id] = nil
    }

    private func isCurrent(_ watch: TriggerWatch, of id: TriggerID) -> Bool {
        triggering.watches[id]?.end === watch.end
            && triggering.descriptions[id]?.source.watched == watch.source
            && triggering.descriptions[id]?.watcher == watch.watcher
    }

    private nonisolated func observe(
        _ watch: TriggerWatch,
        of id: TriggerID,
        _ provider: (any TriggerSourceProvider)?
    ) async {
        guard let codec = await triggering.support?.codec else { return }
        let name = await name(of: id)
        let tell: @Sendable (TriggerSourceStatus) -> Void = { [logger] status in
            if let news = watch.note(status) { Self.log(news, name, logger) }
        }
        let observation = SourceObservation(time: time) { () throws(TriggerSourceError) in
            switch watch.watcher {
            case .workers(let requirements):
                return WorkerSource(
                    service: self,
                    trigger: id,
                    watch: watch,
                    requirements: requirements,
                    codec: codec
                )
            case .coordinator:
                guard let provider else { throw TriggerSupport.watchesNothing }
                return try provider.source(watch.source)
            }
        }
        let end = await observation.run(
            { try await self.take($0, of: id, watch, tell) },
            status: tell
        )
        switch end {
        case .ended: watch.noteEnd()
        case .impossible(let problem):
            tell(.waiting(problem))
            watch.noteEnd(problem.message)
        case .unwanted: await forget(watch, of: id)
        case .cancelled: return
        }
    }

    private func name(of id: TriggerID) -> String {
        triggering.descriptions[id]?.name ?? "\(id)"
    }

    private static func log(_ news: TriggerWatch.News, _ name: String, _ logger: Logger) {
        switch news {
        case .observed: logger.info("a trigger is observed", metadata: ["trigger": "\(name)"])
        case .observedAgain:
            // As loud as the loss.
            logger.warning("a trigger is observed again", metadata: ["trigger": "\(name)"])
        case .lost(let error):
            logger.warning(
                "a trigger cannot be observed at present",
                metadata: ["trigger": "\(name)", "reason": "\(error)"]
            )
        case .refused(let error):
            logger.warning(
                "an occurrence cannot fire its trigger",
                metadata: ["trigger": "\(name)", "reason": "\(error)"]
            )
        }
    }

    /// Returns when the occurrence is on the disk, or can never fire the trigger.
    private nonisolated func take(
        _ occurrence: Occurrence,
        of id: TriggerID,
        _ watch: TriggerWatch,
        _ tell: @Sendable (TriggerSourceStatus) -> Void
    ) async throws {
        let event = TriggerTable.Occurrence(
            identity: occurrence.identity,
            data: String(decoding: occurrence.event, as: UTF8.self)
        )
        let answers = DurableAnswers(of: self)
        var hasWaited = false
        while true {
            try Task.checkCancellation()
            // Before the question, so that no change is missed.
            let change = watch.nextChange
            let answer: TriggerTable.Answer?
            do throws(ClientError) {
                answer = try await answers.change { service throws(ClientError) in
                    try service.mayChange()
                    // A source that was replaced must not fire what replaced it.
                    guard service.isCurrent(watch, of: id) else { return .refused(.unknown) }
                    return service.handle(trigger: .occurred(id, event))
                }
            } catch {
                // The source goes on: what it has in its memory would be lost with it.
                try await goesOn()
                tell(.waiting(TriggerSourceError(.exhausted, error.message)))
                hasWaited = true
                try await time.sleep(time.now() + SourceObservation.pauses.first)
                continue
            }
            switch answer {
            case .accepted, .again:
                if hasWaited { tell(.observing) }
                return
            // It stays where it is: with the source, in the kernel, in the broker.
            case .refused(.busy), .refused(.tooMany): await change.wait()
            case .refused(.data(let why)):
                return tell(.refused(TriggerSourceError(.limitExceeded, why)))
            case .refused(.ended), .refused(.unknown), nil: throw SourceObservation.Unwanted()
            }
        }
    }
}
