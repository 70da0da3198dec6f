import OperonCore
import OperonModel
import OperonPorts
import Synchronization

/// What the coordinator's service keeps of the sources that workers watch.
struct WorkerWatches: Sendable {
    /// Wakes whoever follows one watch.
    final class Feed: Sendable {
        let signal = Signal()
    }

    /// A question for a worker, until it is answered.
    struct Question: Sendable {
        let worker: WatchTable.Worker
        let answered = Latch()
        var answer: Result<String, TriggerSourceError>?
    }

    /// How long a worker has to say which process has a number.
    static let answerPatience = Duration.seconds(10)

    var table = WatchTable(firstID: .drawn())
    /// Those that the table knows.
    var watchers: [WatchTable.Worker] = []
    /// Only looked up.
    var feeds: [TriggerID: Feed] = [:]
    /// Only looked up.
    var questions: [UInt64: Question] = [:]
    var lastQuestion: UInt64 = 0
}

/// A source that a worker watches, as the coordinator sees it.
struct WorkerSource: TriggerSource {
    /// Refused occurrences of one report that are counted.
    private static let refusalsMax: UInt32 = 1_000

    let service: CoordinatorService
    let trigger: TriggerID
    let watch: TriggerWatch
    let requirements: [WorkerRequirement]
    let codec: any TriggerCodec

    func run(
        _ report: @escaping @Sendable (Occurrence) async throws -> Void,
        status: @escaping @Sendable (TriggerSourceStatus) -> Void
    ) async throws {
        guard let feed = await service.begin(watch, of: trigger, requirements) else {
            throw SourceObservation.Unwanted()
        }
        let result: Result<Void, any Error>
        do {
            result = .success(try await follow(feed, report, status))
        } catch {
            result = .failure(error)
        }
        await service.endWatch(of: trigger, feed)
        try result.get()
    }

    /// Returns when nothing more can occur. While an occurrence waits to be taken, it goes on to
    /// tell how the watch is.
    private func follow(
        _ feed: WorkerWatches.Feed,
        _ report: @escaping @Sendable (Occurrence) async throws -> Void,
        _ status: @escaping @Sendable (TriggerSourceStatus) -> Void
    ) async throws {
        // The table gives out one at a time.
        let (occurrences, occurred) = AsyncStream<Occurrence>.makeStream()
        try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            group.addTask {
                for await _ in feed.signal.raised {
                    for news in await service.watchNews(of: trigger, feed) {
                        switch news {
                        case .observing: status(.observing)
                        case .waiting(let problem): status(.waiting(problem))
                        case .refused(let count, let problem):
                            for _ in 0..<min(count, Self.refusalsMax) { status(.refused(problem)) }
                        case .occurred(let occurrence): occurred.yield(occurrence)
                        case .ended: return
                        }
                    }
                }
                throw CancellationError()
            }
            group.addTask {
                for await occurrence in occurrences {
                    if let problem = problem(of: occurrence) {
                        status(.refused(problem))
                    } else {
                        try await report(occurrence)
                    }
                    await service.take(occurrence, of: trigger, feed)
                }
                throw CancellationError()
            }
            try await group.next()
        }
    }

    /// Why what a worker has reported can fire nothing; `nil`: it can.
    private func problem(of occurrence: Occurrence) -> TriggerSourceError? {
        guard occurrence.identity.hasPrefix(watch.source.identityPrefix) else {
            return TriggerSourceError(.unreadable, "its worker reported something else")
        }
        do {
            try codec.checkData(occurrence.event)
            return nil
        } catch {
            return TriggerSourceError(.unreadable, "its worker reported no JSON: \(error)")
        }
    }
}
