package import OperonModel

/// When a trigger ticks.
package enum TriggerSchedule: Hashable, Sendable {
    /// Not by itself.
    case none
    /// At `start`, and then at each interval of so many nanoseconds.
    case every(start: WallTime, interval: Int64)
    case cron(CronSchedule, TimeZoneRules)

    /// The first tick after this time; `nil`: there is none.
    package func next(after time: WallTime) -> WallTime? {
        switch self {
        case .none: return nil
        case .every(let start, let interval):
            guard time >= start else { return start }
            let passed = (time - start).nanoseconds / interval
            let (step, overflow) = (passed + 1).multipliedReportingOverflow(by: interval)
            let (sum, carried) = start.nanosecondsSince1970.addingReportingOverflow(step)
            return overflow || carried ? nil : WallTime(nanosecondsSince1970: sum)
        case .cron(let schedule, _):
            let nanoseconds = time.nanosecondsSince1970
            let seconds = nanoseconds / 1_000_000_000 - (nanoseconds % 1_000_000_000 < 0 ? 1 : 0)
            guard let next = schedule.next(after: seconds) else { return nil }
            let (product, overflow) = next.multipliedReportingOverflow(by: 1_000_000_000)
            return overflow ? nil : WallTime(nanosecondsSince1970: product)
        }
    }

    /// The last `maximum` ticks after one time and up to another, in order.
    func ticks(after: WallTime, through: WallTime, last maximum: Int) -> [WallTime] {
        // Nearly always there is none, or one.
        guard let first = next(after: after), first <= through else { return [] }
        guard let second = next(after: first), second <= through else { return [first] }
        var window = Duration.seconds(3_600)
        while true {
            let from = max(after, through.before(window))
            var ticks: [WallTime] = []
            var place = from
            while let tick = next(after: place), tick <= through {
                ticks.append(tick)
                place = tick
                if ticks.count > 2 * maximum { ticks.removeFirst(maximum) }
            }
            if ticks.count >= maximum || from == after { return ticks.suffix(maximum) }
            window *= 8
        }
    }

    /// The zone in which people read the ticks.
    var zone: TimeZoneRules {
        switch self {
        case .none, .every: .utc
        case .cron(_, let zone): zone
        }
    }
}

extension WallTime {
    /// The time this much earlier. Saturates.
    fileprivate func before(_ duration: Duration) -> WallTime {
        self + .nanoseconds(-duration.nanoseconds)
    }
}
