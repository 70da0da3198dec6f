package import OperonModel

/// Both times of an event: the monotonic clock decides leases, pauses and timeouts; the wall clock
/// decides dates that a person gave, and pauses that began in a previous run.
package struct Moment: Hashable, Sendable {
    package var monotonic: Timestamp
    package var wall: WallTime

    package init(monotonic: Timestamp, wall: WallTime) {
        self.monotonic = monotonic
        self.wall = wall
    }
}
