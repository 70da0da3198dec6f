package import OperonCore
package import OperonModel
import OperonPorts

/// What a scheduler on a test bench decided, one batch for each event, until it is kept.
package struct BenchJournal: Sendable {
    var batches: [StoreBatch] = []
    var pieces = CompiledPieces()

    mutating func note(
        _ event: Scheduler.Event,
        _ records: ArraySlice<StoreRecord>,
        at now: Moment
    ) {
        guard !records.isEmpty else { return }
        var batch = StoreBatch(wall: now.wall, records: Array(records))
        batch.graphs = pieces.contents(of: event, recordedAs: records)
        batches.append(batch)
    }
}

/// A scheduler on a test bench whose process may die: what it decides is kept, and the next one
/// begins with that, under a new epoch. Its workers live on.
package struct RestartBench {
    package var bench: SchedulerBench
    private var store: StoreImage

    package init(_ configuration: Scheduler.Configuration = SchedulerBench.noReadAhead) {
        bench = SchedulerBench(configuration)
        bench.journal = BenchJournal()
        store = StoreImage(reign: SchedulerBench.reign)
        store.raiseEpoch()
    }

    /// What the next one would begin with.
    package var state: StoredState { store.state }

    /// Keeps what was decided since the last time, and returns it.
    @discardableResult
    package mutating func keep() throws -> Scheduler.Effects {
        for batch in bench.journal?.batches ?? [] { try store.apply(batch) }
        bench.journal?.batches = []
        return bench.drain()
    }

    /// The scheduler that the store gives now.
    package func restored() throws -> Scheduler {
        let pieces = bench.journal?.pieces ?? CompiledPieces()
        return try pieces.restored(store.state, bench.scheduler.configuration, at: bench.now)
    }

    /// The coordinator dies and is started again, without a connection. What differs from before,
    /// of what must not: nothing.
    @discardableResult
    package mutating func restart() throws -> String? {
        try keep()
        store.raiseEpoch()
        let scheduler = try restored()
        let difference = bench.scheduler.durableDifference(from: scheduler)
        bench.scheduler = scheduler
        bench.scheduler.checkInvariants()
        return difference
    }

    /// As a running coordinator does: it forgets what its store then drops.
    package mutating func forget() throws {
        try keep()
        let graphs = store.prunable(beyond: StoreRetention.Bounds(graphs: 0))
        bench.drive(.graphsForgotten(graphs))
        store.drop(graphs.filter { bench.scheduler.isGone($0) })
    }

    /// Drops what the store does not need any more.
    package mutating func prune() throws {
        try keep()
        store.drop(store.prunable(beyond: StoreRetention.Bounds(graphs: 0)))
    }
}
