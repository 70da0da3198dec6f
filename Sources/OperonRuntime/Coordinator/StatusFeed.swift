import OperonModel
import OperonPorts

/// Makes the status of the cluster at a pace, once for all who watch the cluster. Its task runs
/// while somebody watches.
final class StatusFeed: Sendable {
    /// The least time between two: a display of the whole cluster fetches lists after each.
    static let defaultPace = Duration.milliseconds(500)

    private let service: CoordinatorService
    private let version: String
    private let pace: Duration
    private let readers = FeedReaders<ClusterView>()

    init(of service: CoordinatorService, version: String, pace: Duration) {
        self.service = service
        self.version = version
        self.pace = pace
    }

    /// Adds a reader, who gets the latest status first. `nil`: the feed is over, because nobody
    /// watched any more.
    func join() -> StatusUpdates? { readers.join { await self.run() } }

    private func run() async {
        while !Task.isCancelled {
            // Taken first: what is decided meanwhile is shown the next time.
            let newest = await service.lastEvent
            guard let status = await service.watchedStatus(version: version),
                await service.untilDurable()
            else { break }
            readers.publish(status)
            // The pace for people. If nobody watches any more, the wait that follows ends at once.
            try? await service.machineTime.sleep(for: pace)
            guard await service.waitForEvents(after: newest) > newest else { break }
        }
        await service.forget(self)
        readers.end()
    }
}
