import OperonCore
import OperonModel
import OperonPorts

// What those who watch a graph are shown of it: see `ProgressFeed`.
extension CoordinatorService {
    /// Counts the operations of a graph at a pace from here on.
    func watchProgress(of graph: GraphID) throws(ClientError) -> ProgressUpdates {
        guard !catalog.isDropped(graph) else { throw .dropped(graph) }
        if let updates = progressFeeds[graph]?.join() { return updates }
        let feed = ProgressFeed(of: graph, by: self, pace: progressPace)
        progressFeeds[graph] = feed
        guard let updates = feed.join() else { preconditionFailure("a new feed is not over") }
        return updates
    }

    func forget(_ feed: ProgressFeed) {
        if progressFeeds[feed.graph] === feed { progressFeeds[feed.graph] = nil }
    }

    /// Sets the least time between two counts, for graphs that nobody watches yet.
    package func setProgressPace(_ pace: Duration) { progressPace = pace }

    /// The number of graphs whose progress somebody watches.
    package var watchedGraphCount: Int { progressFeeds.count }

    /// The graph with its counts and what runs, and how many operations it has. `nil`: it was
    /// dropped, or the service has ended.
    func counted(_ graph: GraphID) -> (progress: GraphProgressView, operationCount: Int)? {
        guard !hasEnded, !catalog.isDropped(graph) else { return nil }
        var progress = GraphProgressView(graph: view(of: graph), repeated: [])
        let running = scheduler.longestRunning(in: graph, limit: GraphProgressView.runningMax)
        if !running.isEmpty {
            let (now, wall) = (time.now(), time.wall())
            progress.running = running.map { operation, start in
                // In whole seconds: otherwise, it would be another time with each count.
                let second = Duration.seconds(1).nanoseconds
                let started = (wall + (start - now)).nanosecondsSince1970 / second * second
                return RunningOperationView(
                    name: name(of: operation).name,
                    startedAt: TimeText(WallTime(nanosecondsSince1970: started))
                )
            }
        }
        progress.news = progressFeeds[graph]?.news
        return (progress, catalog[graph].operations.count)
    }

    /// Keeps what goes wrong for those who watch its graph.
    func noteForProgress(_ notices: [Scheduler.Notice], at now: Timestamp) {
        guard !progressFeeds.isEmpty else { return }
        var failures: [OperationID: (why: String, seconds: Double?)] = [:]
        var skipped: [(first: OperationID, count: Int, cause: OperationID)] = []
        for notice in notices {
            switch notice {
            case .attemptEnded(let operation, _, .failed(let error), let start, let end)
            where progressFeeds[operation.graph] != nil:
                failures[operation] = (error.description, start.map { (end - $0).seconds })
            case .retry(let operation, let time):
                // Without a failure, it cannot do its work yet, which is nothing wrong.
                guard let failure = failures[operation], let feed = progressFeeds[operation.graph]
                else { continue }
                let retries = scheduler.retries(of: operation)
                var news = news(about: operation, nil, failure.why)
                news.seconds = failure.seconds
                news.next = NextAttemptView(
                    number: retries.count + 1,
                    of: max(retries.limit, retries.count) + 1,
                    at: TimeText(self.time.wall() + (time - now))
                )
                feed.note(news)
            case .finished(let operation, .failed(let error)):
                guard let feed = progressFeeds[operation.graph] else { continue }
                var news = news(about: operation, .failed, error.description)
                news.seconds = failures[operation]?.seconds
                feed.note(news)
            case .finished(let operation, .skipped(let cause)):
                skipped.append((operation, 1, cause))
            case .rangeFinished(let operations, .skipped(let cause)):
                if let first = operations.first { skipped.append((first, operations.count, cause)) }
            default: continue
            }
        }
        for one in Self.together(skipped) {
            guard let feed = progressFeeds[one.first.graph] else { continue }
            var news = news(about: one.first, .skipped, name(of: one.cause).name)
            if one.count > 1 { news.count = one.count }
            feed.note(news)
        }
    }

    /// Skipped operations in the order of their graph, which is not that of the dependencies. Those
    /// that follow each other and have the same cause are one.
    private static func together(
        _ skipped: [(first: OperationID, count: Int, cause: OperationID)]
    ) -> [(first: OperationID, count: Int, cause: OperationID)] {
        var together: [(first: OperationID, count: Int, cause: OperationID)] = []
        for one in skipped.sorted(by: { $0.first < $1.first }) {
            if let last = together.last, last.cause == one.cause,
                last.first.graph == one.first.graph
            {
                together[together.count - 1].count += one.count
            } else {
                together.append(one)
            }
        }
        return together
    }

    private func news(
        about operation: OperationID,
        _ outcome: OutcomeKind?,
        _ detail: String
    ) -> ProgressNewsView {
        ProgressNewsView(name: name(of: operation).name, outcome: outcome, detail: detail)
    }

    /// The counts of some operations of a graph, and how long counting took.
    func counted(
        _ graph: GraphID,
        _ ranges: [Range<UInt32>]
    ) -> (counts: [StateCounts], took: Duration)? {
        guard !hasEnded, !catalog.isDropped(graph) else { return nil }
        let start = SystemClock.now()
        let counts = ranges.map { scheduler.stateCounts(of: graph, in: $0) }
        return (counts, SystemClock.now() - start)
    }

    func keptOperations(of graph: GraphID) -> KeptOperations? {
        hasEnded || catalog.isDropped(graph) ? nil : catalog[graph].operations
    }
}
