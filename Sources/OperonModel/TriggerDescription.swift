/// The number of a trigger: the epoch in which it was added, and its number among those of that
/// epoch. So a trigger that is removed and added again has another number, after restarts as well.
package struct TriggerID: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
    package let rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }

    package init(epoch: Epoch, number: UInt32) {
        rawValue = UInt64(epoch.rawValue) << 32 | UInt64(number)
    }

    /// The epoch in which it was added.
    package var epoch: Epoch { Epoch(rawValue: UInt32(truncatingIfNeeded: rawValue >> 32)) }

    package static func < (left: TriggerID, right: TriggerID) -> Bool {
        left.rawValue < right.rawValue
    }

    package var description: String { "\(rawValue >> 32).\(rawValue & 0xFFFF_FFFF)" }
}

/// A trigger: when its source fires, the coordinator submits its graph.
package struct TriggerDescription: Hashable, Sendable {
    /// Unique among the triggers of a coordinator. 1…256 bytes without control characters.
    package var name: String
    package var source: FiringSource
    /// Who watches the source, if it is a watched one.
    package var watcher = TriggerWatcher.coordinator
    package var graph: TriggerGraph
    /// Values of the graph's parameters: a JSON object. `${event.…}` in a text stands for a part of
    /// what fired the trigger.
    package var parameters = "{}"
    package var policy = TriggerPolicy()
    /// For operations of the graph that set none.
    package var priority: QueuePriority?
    /// For operations of the graph that name none.
    package var queue: String?
    /// Submitted once when the trigger is removed.
    package var onRemove: TriggerGraph?

    package init(name: String, source: FiringSource, graph: TriggerGraph) {
        self.name = name
        self.source = source
        self.graph = graph
    }
}

/// The text of a graph file, as it was when its trigger was added.
package struct TriggerGraph: Hashable, Sendable {
    /// The name of the file, for errors and for a graph that has no name of its own.
    package var file: String
    /// `application/yaml`, `application/json` or `application/jsonl`.
    package var contentType: String
    package var text: String
    /// The directory to which relative directories in the text are relative; `nil`: none.
    package var directory: String?

    package init(file: String, contentType: String, text: String, directory: String? = nil) {
        self.file = file
        self.contentType = contentType
        self.text = text
        self.directory = directory
    }
}

/// What makes a trigger fire.
package enum FiringSource: Hashable, Sendable {
    /// At fixed intervals.
    case every(IntervalSource)
    /// At the times that a cron expression names.
    case cron(CronSource)
    /// When a client fires it.
    case event
    /// When a signed request arrives.
    case webhook(WebhookSource)
    /// When a graph ends.
    case graph(GraphSource)
    /// When something occurs that a coordinator or a worker watches.
    case watched(WatchedSource)

    /// Whether requests fire the trigger: those of clients, or of a webhook.
    package var isFiredByRequests: Bool {
        switch self {
        case .event, .webhook: true
        case .every, .cron, .graph, .watched: false
        }
    }

    /// The name of the source, as in trigger files. Stable.
    package var kind: String {
        switch self {
        case .every: "every"
        case .cron: "cron"
        case .event: "event"
        case .webhook: "webhook"
        case .graph: "graph"
        case .watched(let source): source.kind
        }
    }

    /// The names of all sources.
    package static let kinds =
        ["every", "cron", "event", "webhook", "graph"] + WatchedSource.kinds

    package var watched: WatchedSource? {
        if case .watched(let source) = self { source } else { nil }
    }

    /// Whether times alone decide when it fires.
    package var isTimer: Bool {
        switch self {
        case .every, .cron: true
        case .event, .webhook, .graph, .watched: false
        }
    }
}

package struct IntervalSource: Hashable, Sendable {
    /// At least `Limits.triggerIntervalMin`.
    package var interval: Duration
    /// The first tick; `nil`: one interval after the trigger was added.
    package var startAt: WallTime?
    /// How late a tick may be, so that several triggers fire together. Less than the interval.
    package var leeway: Duration

    package init(interval: Duration, startAt: WallTime? = nil, leeway: Duration = .zero) {
        self.interval = interval
        self.startAt = startAt
        self.leeway = leeway
    }
}

package struct CronSource: Hashable, Sendable {
    package var expression: CronExpression
    /// A name of the IANA time zone database.
    package var timezone: String
    /// How late a tick may be, so that several triggers fire together. At most an hour.
    package var leeway: Duration

    package init(_ expression: CronExpression, timezone: String = "UTC", leeway: Duration = .zero) {
        self.expression = expression
        self.timezone = timezone
        self.leeway = leeway
    }

    package static let leewayMax = Duration.seconds(3_600)
}

/// Requests from outside that show with a signature that their sender knows the secret.
package struct WebhookSource: Hashable, Sendable {
    package enum Signature: String, Hashable, Sendable, CaseIterable {
        /// `X-Hub-Signature-256: sha256=…` over the body; `X-GitHub-Delivery` identifies the
        /// request.
        case github
        /// `Stripe-Signature: t=…,v1=…` over the time and the body.
        case stripe
    }

    /// Where the coordinator finds the secret.
    package enum Secret: Hashable, Sendable {
        case file(String)
        /// A variable of the coordinator's environment.
        case environment(String)
    }

    package var signature: Signature
    package var secret: Secret
    /// How far the time in a Stripe signature may be from the coordinator's clock.
    package var tolerance: Duration
    /// The most bytes of a body.
    package var bodyBytes: Int
    /// The most requests that are accepted in a minute.
    package var perMinute: Int

    package init(signature: Signature, secret: Secret) {
        self.signature = signature
        self.secret = secret
        tolerance = .seconds(300)
        bodyBytes = Limits.triggerDataBytes
        perMinute = 600
    }

    /// The largest value of `perMinute`.
    package static let perMinuteMax = 60_000
}

/// The end of a graph.
package struct GraphSource: Hashable, Sendable {
    /// The name of the graph.
    package var name: String
    /// Empty: every outcome.
    package var outcomes: [OutcomeKind]

    package init(name: String, outcomes: [OutcomeKind] = []) {
        self.name = name
        self.outcomes = outcomes
    }
}

/// What a trigger does when it fires while a graph that it submitted has not ended.
package enum TriggerOverlap: String, Hashable, Sendable, CaseIterable {
    /// Submits the graph again.
    case allow
    /// Does nothing.
    case skip
    /// Submits the graph when the run has ended. What fires it meanwhile is merged into one firing.
    case queue
    /// Cancels the run, and submits the graph when it has ended.
    case cancelRunning
}

/// What happens to ticks that came while the coordinator was down or the trigger was suspended.
package enum MissedTicks: String, Hashable, Sendable, CaseIterable {
    /// They are not made up for.
    case skip
    /// One firing stands for all of them.
    case once
    /// Each fires, the last `Limits.triggerMissedMax` of them.
    case all
}

/// How the data of several occurrences become one firing.
package enum EventMerge: String, Hashable, Sendable, CaseIterable {
    /// The sum of whole numbers.
    case add
    /// The bits of whole numbers that are set in any of them.
    case or
    /// The last one.
    case replace
    /// A list of all, in order; at most `Limits.triggerCollectedMax`.
    case collect
}

package struct TriggerPolicy: Hashable, Sendable {
    package var overlap = TriggerOverlap.allow
    package var missed = MissedTicks.once
    /// How data of several occurrences become one firing; `nil`: those of watched sources are not
    /// merged, but wait where they are, and of all others the last ones count.
    package var merge: EventMerge?
    /// What occurs within this time after the first occurrence is merged into one firing; `nil`:
    /// each fires at once.
    package var coalesce: Duration?
    /// The trigger does not fire after this time; `nil`: it has no end.
    package var until: WallTime?
    /// The number of firings after which it does not fire any more; `nil`: unlimited.
    package var limit: UInt64?

    package init() {}
}

extension Limits {
    /// The triggers of one coordinator.
    package static let triggersMax = 100_000
    /// Bytes of one trigger in JSON, with the texts of its graphs.
    package static let triggerBytes = 4 << 20
    /// The shortest interval between two ticks.
    package static let triggerIntervalMin = Duration.seconds(1)
    /// Bytes of the data of one firing, merged data included.
    package static let triggerDataBytes = 256 << 10
    /// Bytes that the event of a firing may take in all commands of its graph together.
    package static let triggerEventBytesInAll = 64 << 20
    /// Occurrences that one firing collects.
    package static let triggerCollectedMax = 1_000
    /// Missed ticks of one trigger that are made up for.
    package static let triggerMissedMax = 1_000
    /// Firings of one trigger that have not ended.
    package static let triggerOpenMax = 1_000
    /// Firings of one trigger that are remembered after they ended, so that a repeated delivery
    /// gets the same answer.
    package static let triggerFiringsKept = 200
    /// Refusals of one firing after which it is given up.
    package static let triggerRefusalsMax = 10
    /// Firings in a row that are given up, after which a trigger is suspended.
    package static let triggerRefusedMax = 3
    /// A tick that is handled later than this is a missed one.
    package static let triggerLatenessMax = Duration.seconds(60)
    /// Bytes of the identity of a firing.
    package static let triggerIdentityBytes = 256
    /// Bytes of the reason of a refusal that is kept.
    package static let triggerReasonBytes = 2_000
}

extension WebhookSource {
    /// Otherwise a client that adds triggers could try out the values of any variable.
    package static let secretPrefix = "OPERON_WEBHOOK_"

    package static func mayHoldSecret(_ variable: String) -> Bool {
        variable.hasPrefix(secretPrefix) && variable.utf8.count <= 256
            && variable.utf8.allSatisfy { $0 == 0x5F || $0.isASCIIAlphanumeric }
    }
}

extension UInt8 {
    fileprivate var isASCIIAlphanumeric: Bool {
        (48...57).contains(self) || (65...90).contains(self & 0xDF)
    }
}
