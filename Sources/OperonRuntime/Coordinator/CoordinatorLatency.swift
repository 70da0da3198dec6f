import OperonModel

/// What a coordinator measures for those who look at it. Metrics have the same, as histograms.
struct CoordinatorLatency {
    /// From the grant of an attempt to its start.
    private var dispatch = DurationSum()
    /// The syncs of the store.
    private var sync = DurationSum()
    /// The grant times of the attempts that have not started. Only looked up.
    private var grantedAt: [AttemptID: Timestamp] = [:]

    var view: LatencyView { LatencyView(dispatch: dispatch.view, sync: sync.view) }

    mutating func granted(_ attempt: AttemptID, at now: Timestamp) { grantedAt[attempt] = now }

    /// Counts the dispatch time of an attempt once, whichever notice tells its start first.
    ///
    /// - Parameter start: As the worker says. It counts as a time between the grant and now: the
    ///   clock of a worker may be wrong.
    /// - Returns: The dispatch time; `nil`: it has been counted.
    mutating func started(
        _ attempt: AttemptID,
        at start: Timestamp,
        toldAt now: Timestamp
    ) -> Duration? {
        guard let granted = grantedAt.removeValue(forKey: attempt) else { return nil }
        let time = max(.zero, min(start, now) - granted)
        dispatch.add(time)
        return time
    }

    mutating func ended(_ attempt: AttemptID) { grantedAt[attempt] = nil }

    mutating func synced(in time: Duration) { sync.add(time) }
}

/// How often something was done, and how long it took in all.
private struct DurationSum {
    private var count: UInt64 = 0
    private var seconds = 0.0

    mutating func add(_ duration: Duration) {
        count += 1
        seconds += duration.seconds
    }

    var view: DurationSumView { DurationSumView(count: count, seconds: seconds) }
}
