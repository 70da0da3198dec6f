package import OperonModel

/// How long a worker pauses an attempt that it gives back because its machine has no descriptor,
/// process or memory for it. The pause doubles while the shortage lasts, so that giving back and
/// receiving again does not become a busy loop.
///
/// The code that starts processes drives it. A worker has one value for all its attempts, since
/// they lack the same resources.
package struct ShortagePause: Hashable, Sendable {
    /// A second: long for a machine, short for a person who waits.
    package static let shortest = Duration.seconds(1)
    /// Half a minute, as between two starts of a worker that crashes.
    package static let longest = Duration.seconds(30)

    private var pause = Duration.zero
    /// A shortage before this time has the same cause, so the pause stays.
    private var until = Timestamp.zero

    package init() {}

    /// The pause after an attempt that lacked resources, and whether it is a new pause, which is
    /// worth a log message.
    package mutating func missed(at now: Timestamp) -> (pause: Duration, isNew: Bool) {
        guard now >= until else { return (pause, false) }
        pause = pause == .zero ? Self.shortest : min(Self.longest, pause * 2)
        until = now + pause
        return (pause, true)
    }

    /// An attempt had enough resources.
    package mutating func served() { self = ShortagePause() }
}
