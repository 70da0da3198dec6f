import Logging
import OperonCore
import OperonModel
import OperonPorts

// Watches the sources of triggers that are outside of the cluster.
extension CoordinatorService {
    /// How long a source that failed is left alone.
    private static let watchPause = Duration.seconds(1)

    /// The trigger takes nothing more.
    private struct WatchOver: Error {}

    /// Watches what triggers want to be watched, until its task is cancelled.
    nonisolated func watchSources() async {
        guard let provider = await triggering.support?.sources else { return }
        let news = await triggering.watchNews
        await withDiscardingTaskGroup { group in
            for await _ in news.raised {
                for (id, watch) in await nextWatches() {
                    group.addTask { await self.run(watch, of: id, provider) }
                }
            }
            group.cancelAll()
        }
        await provider.shutDown()
    }

    /// A trigger was added, changed or removed, or has fired for the last time.
    func noteForWatches(_ id: TriggerID) {
        let wanted = triggering.descriptions[id]?.source.watched
        guard wanted != nil || triggering.watches[id] != nil else { return }
        triggering.watchChanges.append(id)
        triggering.watchNews.raise()
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
            let wanted = isWanted ? triggering.descriptions[id]?.source.watched : nil
            guard triggering.watches[id]?.source != wanted else { continue }
            triggering.watches.removeValue(forKey: id)?.over.open()
            guard let wanted else { continue }
            let watch = TriggerWatch(wanted)
            triggering.watches[id] = watch
            begun.append((id, watch))
        }
        return begun
    }

    private nonisolated func run(
        _ watch: TriggerWatch,
        of id: TriggerID,
        _ provider: any TriggerSourceProvider
    ) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.observe(watch, of: id, provider) }
            group.addTask { await watch.over.wait() }
            await group.next()
            group.cancelAll()
        }
    }

    private nonisolated func observe(
        _ watch: TriggerWatch,
        of id: TriggerID,
        _ provider: any TriggerSourceProvider
    ) async {
        while !Task.isCancelled {
            do {
                try await provider.source(watch.source).run { occurrence in
                    try await self.take(occurrence, of: id, watch)
                } status: { [logger] status in
                    Self.log(status, id, logger)
                    watch.note(status)
                }
                return watch.noteEnd()
            } catch is WatchOver {
                return watch.noteEnd()
            } catch let error as TriggerSourceError where error.code == .invalid {
                logger.warning(
                    "a trigger cannot be observed",
                    metadata: ["trigger": "\(id)", "reason": "\(error)"]
                )
                return watch.noteEnd(error.message)
            } catch {
                if Task.isCancelled { return }
                // The system may have no descriptor left, or the store no room.
                watch.note(.waiting(Self.problem(error)))
            }
            do { try await time.sleep(time.now() + Self.watchPause) } catch { return }
        }
    }

    private static func problem(_ error: any Error) -> TriggerSourceError {
        switch error {
        case let error as TriggerSourceError: error
        case let error as ClientError: TriggerSourceError(.exhausted, error.message)
        case let error as SystemError: TriggerSourceError(error, "it cannot be observed")
        default: TriggerSourceError(.system, "\(error)")
        }
    }

    private static func log(_ status: TriggerSourceStatus, _ id: TriggerID, _ logger: Logger) {
        switch status {
        case .observing:
            logger.info("a trigger is observed", metadata: ["trigger": "\(id)"])
        case .waiting(let error):
            logger.warning(
                "a trigger cannot be observed at present",
                metadata: ["trigger": "\(id)", "reason": "\(error)"]
            )
        case .refused(let error):
            logger.warning(
                "an occurrence cannot fire its trigger",
                metadata: ["trigger": "\(id)", "reason": "\(error)"]
            )
        }
    }

    /// Returns when the occurrence is on the disk, or can never fire the trigger.
    private nonisolated func take(
        _ occurrence: Occurrence,
        of id: TriggerID,
        _ watch: TriggerWatch
    ) async throws {
        let event = TriggerTable.Occurrence(
            identity: occurrence.identity,
            data: String(decoding: occurrence.event, as: UTF8.self)
        )
        let answers = DurableAnswers(of: self)
        while true {
            try Task.checkCancellation()
            let answer = try await answers.change { service throws(ClientError) in
                try service.mayChange()
                return service.handle(trigger: .occurred(id, event))
            }
            switch answer {
            case .accepted, .again: return
            case .refused(.busy), .refused(.tooMany):
                // It waits where it is: in the folder, the pipe or the broker.
                for await _ in watch.room.raised { break }
            case .refused(.data(let why)):
                return watch.note(.refused(TriggerSourceError(.limitExceeded, why)))
            case .refused(.ended), .refused(.unknown), nil: throw WatchOver()
            }
        }
    }
}
