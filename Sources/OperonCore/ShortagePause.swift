package import OperonModel

/// How long a worker leaves an attempt alone that it gives back because its machine has no
/// descriptor, process or memory for it: doubled while that lasts, so that giving back and
/// receiving again is no busy loop.
///
/// Driven by whoever starts processes; one value for all attempts of a worker, since they lack the
/// same.
package struct ShortagePause: Hashable, Sendable {
    /// A second: long for a machine, short for a person who waits.
    package static let shortest = Duration.seconds(1)
    /// Half a minute, as between two starts of a worker that crashes.
    package static let longest = Duration.seconds(30)

    private var pause = Duration.zero
    /// What is short before this moment is short for the same reason: the pause stays.
    private var until = Timestamp.zero

    package init() {}

    /// The pause after an attempt for which there was nothing, and whether it is a new one, which
    /// is worth a word.
    package mutating func missed(at now: Timestamp) -> (pause: Duration, isNew: Bool) {
        guard now >= until else { return (pause, false) }
        pause = pause == .zero ? Self.shortest : min(Self.longest, pause * 2)
        until = now + pause
        return (pause, true)
    }

    /// There was enough for an attempt.
    package mutating func served() { self = ShortagePause() }
}
