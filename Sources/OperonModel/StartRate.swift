/// How often operations may start in the whole cluster: a token bucket. Each start of an attempt
/// takes a token, and tokens come back one by one.
public struct StartRate: Hashable, Sendable, Codable {
    /// How many operations may start in each period, 1…1,000,000.
    public var count: Int
    /// The period, a millisecond to a year.
    public var period: Duration
    /// How many may start at once after a pause, 1…1,000,000.
    public var burst: Int

    /// The largest `count` and `burst`.
    public static let countMax = 1_000_000
    /// The longest period, and the longest time in which the tokens of a whole burst come back.
    public static let periodMax = Duration.seconds(365 * 86_400)
    /// The shortest period.
    public static let periodMin = Duration.milliseconds(1)

    /// Creates a rate of `count` starts in each period.
    ///
    /// - Parameter burst: `nil`: as many as come back in a tenth of a second, and at least one. A
    ///   smaller burst would lose starts at high rates, because timers are a little late.
    public init(_ count: Int, per period: Duration = .seconds(1), burst: Int? = nil) {
        self.count = count
        self.period = period
        self.burst = burst ?? Self.defaultBurst(count, per: period)
    }

    private static func defaultBurst(_ count: Int, per period: Duration) -> Int {
        guard count > 0, period > .zero else { return 1 }
        let starts = Double(min(count, countMax)) * 0.1 / period.seconds
        return max(1, Int(min(starts, Double(countMax))))
    }

    /// The time in which one token comes back, in nanoseconds, rounded up.
    package var intervalNanoseconds: Int64 {
        let count = Int64(count)
        let (whole, rest) = period.nanoseconds.quotientAndRemainder(dividingBy: count)
        return whole + (rest > 0 ? 1 : 0)
    }

    /// Checks the bounds.
    ///
    /// - Throws: `invalid`.
    package func check(_ field: String) throws(Refusal) {
        func refuse(_ why: String) -> Refusal { .invalid(field: field, why: why) }
        guard (1...Self.countMax).contains(count) else {
            throw refuse("\(count) starts are not from 1 to \(Self.countMax)")
        }
        guard (Self.periodMin...Self.periodMax).contains(period) else {
            throw refuse("its period must be from 1ms to 365d")
        }
        guard period.nanoseconds % Self.periodMin.nanoseconds == 0 else {
            throw refuse("its period must be a whole number of milliseconds")
        }
        guard (1...Self.countMax).contains(burst) else {
            throw refuse("a burst of \(burst) is not from 1 to \(Self.countMax)")
        }
        let (whole, isTooLong) = intervalNanoseconds.multipliedReportingOverflow(by: Int64(burst))
        guard !isTooLong, whole <= Self.periodMax.nanoseconds else {
            throw refuse("a burst of \(burst) takes more than 365d to come back")
        }
    }
}

// MARK: - As text

extension StartRate {
    /// What a rate looks like, for messages.
    package static let hint = "a rate such as 10/s, 100/m or 5/30s"

    private static let units: [(name: String, nanoseconds: Int64)] = [
        ("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000),
        ("h", 3_600_000_000_000), ("d", 86_400_000_000_000),
    ]

    /// Reads a rate such as `10/s` or `5/30s`; `nil`: it is none, or a number in it is too large.
    ///
    /// - Parameter burst: As in `init`.
    package init?(_ text: String, burst: Int? = nil) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let count = Self.number(parts[0]),
            let unit = Self.units.first(where: { $0.name == parts[1].drop(while: Self.isDigit) })
        else { return nil }
        let digits = parts[1].prefix(while: Self.isDigit)
        guard let factor = digits.isEmpty ? 1 : Self.number(digits) else { return nil }
        let (nanoseconds, isTooLong) = unit.nanoseconds
            .multipliedReportingOverflow(by: Int64(factor))
        guard !isTooLong, nanoseconds > 0 else { return nil }
        self.init(count, per: .nanoseconds(nanoseconds), burst: burst)
    }

    private static func isDigit(_ character: Character) -> Bool {
        character.isASCII && character.isNumber
    }

    private static func number(_ text: Substring) -> Int? {
        guard !text.isEmpty, text.allSatisfy(isDigit) else { return nil }
        return Int(text)
    }

    /// The rate without its burst, as `init(_:burst:)` reads it.
    package var text: String {
        let nanoseconds = period.nanoseconds
        let unit = Self.units.last { nanoseconds % $0.nanoseconds == 0 } ?? Self.units[0]
        let factor = nanoseconds / unit.nanoseconds
        return "\(count)/\(factor == 1 ? "" : "\(factor)")\(unit.name)"
    }
}

/// A queue or a key: what a rate applies to.
package enum RateScope: Hashable, Sendable, Codable, Comparable {
    case queue(String)
    case key(String)

    package static func < (left: RateScope, right: RateScope) -> Bool {
        switch (left, right) {
        case (.queue(let left), .queue(let right)), (.key(let left), .key(let right)): left < right
        case (.queue, .key): true
        case (.key, .queue): false
        }
    }
}
