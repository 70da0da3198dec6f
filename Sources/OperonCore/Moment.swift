package import OperonModel

/// Both times of an event: the monotonic one decides leases, pauses and timeouts; the wall clock
/// only what a person wrote as a date.
package struct Moment: Hashable, Sendable {
    package var monotonic: Timestamp
    package var wall: WallTime

    package init(monotonic: Timestamp, wall: WallTime) {
        self.monotonic = monotonic
        self.wall = wall
    }
}
