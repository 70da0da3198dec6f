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

    /// Shows the status of the cluster at a pace from here on.
    func watchStatus(version: String) -> StatusUpdates {
        if let updates = statusFeed?.join() { return updates }
        let feed = StatusFeed(of: self, version: version, pace: statusPace)
        statusFeed = feed
        guard let updates = feed.join() else { preconditionFailure("a new feed is not over") }
        return updates
    }

    func forget(_ feed: StatusFeed) {
        if statusFeed === feed { statusFeed = nil }
    }

    /// `nil`: the service has ended.
    func watchedStatus(version: String) -> ClusterView? {
        hasEnded ? nil : fullClusterView(version: version)
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
                var view = RunningOperationView(
                    name: name(of: operation).name,
                    startedAt: TimeText(WallTime(nanosecondsSince1970: started))
                )
                view.index = operation.index
                if scheduler.attempt(of: operation)?.worker == .nobody { view.isExternal = true }
                return view
            }
        }
        return (progress, catalog[graph].operations.count)
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
