public import Logging
public import Operon
internal import OperonRuntime

extension Cluster {
    /// A cluster in memory, for tests of programs: the same coordinator and the same worker as ever
    /// in this process, without a broker, a disk or a network, and by a clock that the test moves.
    ///
    /// Delays, `notBefore`, deadlines, timeouts, pauses before another attempt, waits, and
    /// suspensions that end by themselves pass only by ``ManualClock/advance(by:)``. Each call
    /// makes a cluster of its own, which is to be closed at the end of the test.
    ///
    /// - Parameters:
    ///   - clock: What it tells the time by.
    ///   - slots: How many operations run at once.
    ///   - keep: How much of what has ended is kept.
    ///   - logger: Gets what an operator wants to know.
    public static func testing(
        clock: ManualClock,
        slots: Int = 2,
        keep: Retention = .inMemory,
        logger: Logger = Cluster.warnings
    ) -> Cluster {
        .local(slots: slots, keep: keep, time: clock.source, logger: logger)
    }
}
