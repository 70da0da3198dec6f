import OperonCore
import OperonModel

// The rate of the queue “b”. The time at which its bucket is full again grows with each start, and
// is never further away than a burst: so no stretch of time has more starts than the rate allows.
extension SimulatorLedger {
    /// What a store has of the rate.
    struct Rated {
        var rate: StartRate?
        var fullAt: WallTime?
        /// `Clocks.setAt` before that, if that was long ago.
        var clockSetAt: Timestamp?
    }

    /// The simulated clocks, when something is recorded.
    struct Clocks {
        var now = Moment(monotonic: .zero, wall: WallTime(nanosecondsSince1970: 0))
        /// When the wall clock was set last; if the coordinator stood still then, when it went on.
        var setAt = Timestamp.zero

        /// What is recorded was decided with this setting of the wall clock. A commit takes less.
        fileprivate var steadySetting: Timestamp? {
            now.monotonic - setAt > .seconds(10) ? setAt : nil
        }
    }

    mutating func checkRate(_ record: StoreRecord) {
        switch record {
        case .queueReset("b"): kept.rated = Rated()
        case .rateSet(.queue("b"), let rate, _): kept.rated = Rated(rate: rate)
        case .rateUsed(.queue("b"), let fullAt): use(until: fullAt)
        case _: return
        }
    }

    private mutating func use(until fullAt: WallTime) {
        guard let rate = kept.rated.rate else { return broken("a queue without a rate used it") }
        met(.rateUsed)
        let interval = Duration.nanoseconds(rate.intervalNanoseconds)
        let setting = clocks.steadySetting
        if let before = kept.rated.fullAt, setting != nil, setting == kept.rated.clockSetAt,
            fullAt - before < interval
        {
            broken("queue “b” started an operation and took no token")
        }
        if setting != nil, fullAt - clocks.now.wall > interval * rate.burst {
            broken("queue “b” started more operations than its rate allows")
        }
        kept.rated.fullAt = fullAt
        kept.rated.clockSetAt = setting
    }
}
