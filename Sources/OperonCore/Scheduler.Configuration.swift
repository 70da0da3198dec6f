package import OperonModel

extension Scheduler {
    /// Every interval and limit of a scheduler.
    package struct Configuration: Hashable, Sendable {
        /// How often a worker sends a beat.
        package var beat: Duration = .seconds(2)
        /// Silence after which a worker counts as gone: three beats, so that one lost beat and one
        /// late beat lose no attempt.
        package var lease: Duration = .seconds(6)
        /// The coordinator waits for a silent worker's attempt for its run time divided by this, if
        /// that is longer than the lease: the longer the attempt has run, the more its worker's
        /// return is worth.
        package var patienceDivisor: Int64 = 20
        package var patienceMax: Duration = .seconds(300)
        /// How long an operation that holds keys keeps them after its worker was last heard.
        package var exclusiveLease: Duration = .seconds(60)
        /// An operation fails with `workerLost` after its own child process has died this many
        /// times. Five, as in HyperQueue: a crash may have other causes once or twice.
        package var crashLimit = 5
        /// An operation fails after it has lost this many workers; `nil`: there is no limit.
        package var lostLimit: Int?
        /// How many workers that are gone are remembered, in case they come back. There is a limit
        /// because every message walks the table, and a worker that dies again and again adds an
        /// entry each time.
        package var goneWorkersMax = 256
        /// How many dependencies and waits one event visits to find out whether an operation may
        /// wait: about three milliseconds' worth. Later events continue the search.
        package var searchVisitsMax = 4_096
        /// How many kinds that no graph names any more are remembered with their run times.
        /// Programs have dozens of kinds, but a client may name any number.
        package var unusedKindsMax = 1_000
        /// Bytes of events that a worker may have in flight.
        package var eventWindow: UInt32 = 1 << 20
        /// How long a worker stays with a silent reign whose store is in memory only.
        package var orphanAfter: Duration = .seconds(60)
        /// The run time of operations that a worker may hold beyond its slots: enough to cover a
        /// round trip (measured 0.4 ms on loopback), too little to affect a schedule.
        package var readAhead: Duration = .milliseconds(4)
        /// How many operations a worker may hold beyond its slots, however short they are. With 64,
        /// workers that ran operations of no length waited for each transaction of the store; with
        /// 256, the transactions are a third as many, and the broker takes a third less time.
        package var readAheadCountMax = 256
        /// Operations with successive indices that are cancelled together get one record if there
        /// are at least so many. Fewer get one each, because readers of events see their names.
        package var rangeMin = 64
        /// How many operations one message carries.
        package var operationsPerMessage = 1
        package var limits = Limits()
        /// Seeds the jitter of retries.
        package var seed: UInt64 = 0
        /// A rule that is broken on purpose, which the simulator must notice. Only the simulator's
        /// tests set it.
        package var violation: PlantedViolation?

        package init() {}
    }
}
