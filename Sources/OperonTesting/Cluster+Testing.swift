public import Logging
public import Operon
internal import OperonRuntime

extension Cluster {
    /// Creates a cluster in memory for tests: the usual coordinator and worker in this process,
    /// without a broker, a disk or a network, and with a clock that the test moves.
    ///
    /// Delays, `notBefore`, deadlines, timeouts, pauses before retries, waits, and suspensions that
    /// end by themselves pass only by ``ManualClock/advance(by:)``. Each call creates a separate
    /// cluster, which must be closed at the end of the test.
    ///
    /// - Parameters:
    ///   - clock: The clock of the cluster.
    ///   - slots: How many operations run at once.
    ///   - keep: The retention of finished operations.
    ///   - logger: Receives messages for operators.
    public static func testing(
        clock: ManualClock,
        slots: Int = 2,
        keep: Retention = .inMemory,
        logger: Logger = Cluster.warnings
    ) -> Cluster {
        .local(slots: slots, keep: keep, time: clock.source, logger: logger)
    }
}
