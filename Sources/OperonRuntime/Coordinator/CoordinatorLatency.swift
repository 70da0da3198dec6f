import OperonModel

/// What a coordinator measures for those who look at it. Metrics have the same, as histograms.
struct CoordinatorLatency {
    /// From the grant of an attempt to its start.
    var dispatch = DurationSum()
    /// The syncs of the store.
    var sync = DurationSum()
    /// The grant times of the attempts that have not started. Only looked up.
    var grantedAt: [AttemptID: Timestamp] = [:]

    var view: LatencyView { LatencyView(dispatch: dispatch.view, sync: sync.view) }
}

/// How often something was done, and how long it took in all.
struct DurationSum {
    private var count: UInt64 = 0
    private var seconds = 0.0

    /// - Parameter duration: Below zero, it counts as zero: the clocks of two machines differ.
    mutating func add(_ duration: Duration) {
        count += 1
        seconds += max(0, duration.seconds)
    }

    var view: DurationSumView { DurationSumView(count: count, seconds: seconds) }
}
