/// How often something was done since the coordinator started, and how long it took in all. Two
/// answers give the mean of the time between them.
package struct DurationSumView: Hashable, Sendable, Codable {
    package var count: UInt64
    package var seconds: Double

    package init(count: UInt64, seconds: Double) {
        self.count = count
        self.seconds = seconds
    }
}

/// How fast a coordinator is.
package struct LatencyView: Hashable, Sendable, Codable {
    /// From the decision where an attempt runs until it runs.
    package var dispatch: DurationSumView
    /// Until the disk has what was written to the store.
    package var sync: DurationSumView

    package init(dispatch: DurationSumView, sync: DurationSumView) {
        self.dispatch = dispatch
        self.sync = sync
    }
}
