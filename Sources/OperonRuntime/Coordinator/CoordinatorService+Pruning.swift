import Logging
import OperonCore
package import OperonModel
import OperonPorts

extension CoordinatorService {
    /// Drops finished graphs; keeps only what later dependencies may need of them.
    package func prune(beyond retention: Retention) async throws {
        guard let store, retention.isBounded else { return }
        ended = Ended()
        let bounds = StoreRetention.Bounds(retention, at: time.wall())
        do {
            let old = try await store.prunable(beyond: bounds)
            guard !old.isEmpty else { return }
            // From here on the scheduler decides nothing about them. Its earlier decisions are
            // synced before the graphs are dropped. If this process dies in between, the graphs are
            // restored whole.
            let dropped = forget(old)
            try await durable()
            try await store.drop(dropped, by: scheduler.epoch)
            try await forgetWorkers(in: store)
            logger.info("finished graphs dropped", metadata: ["count": "\(dropped.count)"])
        } catch let error as StoreError where error.isTransient {
            logger.warning("nothing dropped", metadata: ["reason": "\(error)"])
        } catch let error as ClientError {
            logger.warning("nothing dropped", metadata: ["reason": "\(error)"])
        }
    }

    /// Forgets the names of workers that are gone and of which no attempt is kept any more.
    private func forgetWorkers(in store: any OperationStore) async throws {
        guard workerNames.count > workerNamesMax else { return }
        let here = scheduler.workerStatus(at: time.now())
            .filter { $0.isAlive || $0.ownsAttempts }.map(\.identity.incarnation)
        let gone = Set(workerNames.keys).subtracting(here)
            .sorted { $0.rawValue < $1.rawValue }
        // Harmless: a worker that returns meanwhile is shown by its id until it joins again.
        for worker in try await store.forget(workers: gone, by: scheduler.epoch) {
            workerNames[worker] = nil
        }
        // The store reads all attempts for this, so it is repeated only once there are twice as
        // many names.
        workerNamesMax = max(limits.storedWorkers, 2 * workerNames.count)
    }

    /// Makes the scheduler forget these graphs; returns those that it keeps only the outcomes of.
    private func forget(_ graphs: [GraphID]) -> [GraphID] {
        let before = graphs.reduce(0) { $0 + scheduler.operationCount(of: $1) }
        handle([.graphsForgotten(graphs)])
        let gone = graphs.filter { scheduler.isGone($0) }
        for graph in gone { catalog.drop(graph, scheduler.droppedOutcomes(of: graph)) }
        if before >= HeapMemory.largeGraph { HeapMemory.giveBackSoon() }
        return gone
    }

    /// What has finished since the store was last asked for graphs to drop.
    struct Ended: Sendable {
        var graphs = 0
        var operations = 0
        /// The bytes of inputs, outputs and logs.
        var bytes = 0
    }

    /// Drops graphs beyond these bounds: at once, after each interval, and earlier when much has
    /// finished. Returns when its task is cancelled.
    ///
    /// - Throws: An error after which the store cannot continue.
    package func keepPruned(within retention: Retention) async throws {
        guard retention.isBounded else { return }
        let graphs = retention.graphs.map { max(1, min($0 / 10, Self.endedGraphs)) }
        let operations = retention.operations.map { max(1, min($0 / 10, Self.endedOperations)) }
        let bytes = retention.bytes.map { max(1, $0 / 4) }
        pruneAfter = Ended(
            graphs: graphs ?? .max,
            operations: operations ?? .max,
            bytes: bytes ?? .max
        )
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [time, pruneSignal] in
                while !Task.isCancelled {
                    pruneSignal.raise()
                    do { try await time.sleep(time.now() + Self.pruneInterval) } catch { return }
                }
            }
            for await _ in pruneSignal.raised { try await prune(beyond: retention) }
            group.cancelAll()
        }
    }

    /// The time between two checks: bounds on age are measured in days.
    private static let pruneInterval = Duration.seconds(600)
    /// The most operations that may finish before the next check, if their number is bounded: a
    /// check costs as much as a few hundred operations.
    private static let endedOperations = 10_000
    /// The same for graphs, if the number of graphs is bounded.
    private static let endedGraphs = 1_000

    /// Counts a finished graph whose end the store has by now.
    func noteEnded(_ graph: GraphID) {
        ended.graphs += 1
        ended.operations += scheduler.operationCount(of: graph)
        if pruneAfter.bytes < .max { ended.bytes += catalog[graph].inputBytes }
        guard
            ended.graphs >= pruneAfter.graphs || ended.operations >= pruneAfter.operations
                || ended.bytes >= pruneAfter.bytes
        else { return }
        pruneSignal.raise()
    }
}
