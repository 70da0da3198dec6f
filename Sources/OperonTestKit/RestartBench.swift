package import OperonCore
package import OperonModel
import OperonPorts

/// A scheduler on a test bench whose process may die: what it decides is kept, and the next one
/// begins with that, under a new epoch. Its workers live on.
package struct RestartBench {
    package var bench: SchedulerBench
    private var store: StoreImage

    package init(_ configuration: Scheduler.Configuration = SchedulerBench.noReadAhead) {
        bench = SchedulerBench(configuration)
        store = StoreImage(reign: SchedulerBench.reign)
        store.raiseEpoch()
    }

    /// What the next one would begin with.
    package var state: StoredState { store.state }

    /// Keeps what was decided since the last time, and returns it.
    @discardableResult
    package mutating func keep() throws -> Scheduler.Effects {
        let effects = bench.drain()
        var batch = StoreBatch(wall: bench.now.wall, records: effects.records)
        for case .graphAdded(let id) in effects.records {
            batch.graphs.append(
                StoredContents(
                    graph: id,
                    name: bench.scheduler.compiled(id).name,
                    operationCount: bench.scheduler.operationCount(of: id),
                    body: []
                )
            )
        }
        try store.apply(batch)
        return effects
    }

    /// The scheduler that the store gives now.
    package func restored() throws -> Scheduler {
        let state = store.state
        return try Scheduler(
            configuration: bench.scheduler.configuration,
            restoring: state,
            graphs: state.graphs.map { $0.isTombstone ? nil : bench.scheduler.compiled($0.id) },
            at: bench.now
        )
    }

    /// The coordinator dies and is started again, without a connection. What differs from before,
    /// of what must not: nothing.
    @discardableResult
    package mutating func restart() throws -> String? {
        try keep()
        store.raiseEpoch()
        let scheduler = try restored()
        let difference = bench.scheduler.durableDifference(from: scheduler, at: bench.now.monotonic)
        bench.scheduler = scheduler
        bench.scheduler.checkInvariants()
        return difference
    }

    /// Drops what the store does not need any more.
    package mutating func prune() throws {
        try keep()
        _ = store.prune(finishedBefore: nil, keeping: 0)
    }
}
