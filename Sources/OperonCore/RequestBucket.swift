package import OperonModel

/// Bounds how many requests are accepted in a minute: a token bucket that is full at first.
package struct RequestBucket: Sendable {
    private let perMinute: Int
    private var tokens: Double
    private var filledAt: Timestamp?

    package init(perMinute: Int) {
        self.perMinute = perMinute
        tokens = Double(perMinute)
    }

    /// Whether one more request may be accepted now.
    package mutating func take(at now: Timestamp) -> Bool {
        if let filledAt, now > filledAt {
            let added = (now - filledAt).seconds * Double(perMinute) / 60
            tokens = min(Double(perMinute), tokens + added)
        }
        filledAt = max(filledAt ?? now, now)
        guard tokens >= 1 else { return false }
        tokens -= 1
        return true
    }
}
