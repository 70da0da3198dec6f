import OperonModel

/// What became of spans, and when a person is told: at the first loss, at most once a minute while
/// there are more, when the collector takes spans again, and at the end.
struct SpanLosses: Sendable {
    private var count = 0
    /// The count of the last sentence.
    private var told = 0
    /// Why the last batch was lost; `nil`: it was sent.
    private var trouble: String?
    private var toldAt: ContinuousClock.Instant?

    private static let pace = Duration.seconds(60)

    private func isDue(_ now: ContinuousClock.Instant) -> Bool {
        guard let toldAt else { return true }
        return now - toldAt >= Self.pace
    }

    /// - Returns: The sentence to say now; `nil`: nothing.
    private mutating func tell(_ why: String) -> String? {
        let now = ContinuousClock.now
        guard isDue(now) else { return nil }
        (toldAt, told) = (now, count)
        return "\(Self.words(count)) lost: \(why)"
    }

    /// Spans for which the queue had no room.
    mutating func dropped(_ spans: Int) -> String? {
        count += spans
        return tell("more are made than the collector takes (OTEL_BSP_MAX_QUEUE_SIZE)")
    }

    /// A batch that the collector did not take.
    mutating func lost(_ spans: Int, _ why: String) -> String? {
        count += spans
        defer { trouble = why }
        if trouble == nil { toldAt = nil }
        return tell(why)
    }

    /// A batch that the collector took, without some of its spans.
    mutating func sent(_ spans: Int, _ rejection: ExportRequest.Rejection?) -> String? {
        defer { trouble = nil }
        if trouble != nil {
            defer { (count, told, toldAt) = (0, 0, nil) }
            return "the collector takes spans again; \(Self.words(count)) lost"
        }
        guard let rejection, rejection.count > 0 else { return nil }
        count += rejection.count
        let why = rejection.why.isEmpty ? "" : ": \(rejection.why.prefix(bytes: 256))"
        return tell("the collector did not take them\(why)")
    }

    mutating func ended(waiting: Int) -> String? {
        count += waiting
        guard count > told else { return nil }
        let why = trouble.map { ": \($0)" } ?? ""
        return "\(Self.words(count)) lost\(why)"
    }

    private static func words(_ spans: Int) -> String {
        spans == 1 ? "1 span is" : "\(spans) spans are"
    }
}
