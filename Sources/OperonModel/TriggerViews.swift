// The views of triggers that clients see; see `Views.swift`.

/// A trigger.
package struct TriggerView: Hashable, Sendable, Codable {
    package var name: String
    /// One of `FiringSource.kinds`.
    package var source: String
    /// The source in words: `every 5m`, `cron 0 3 * * 1-5 (Europe/Berlin)`.
    package var on: String
    /// The file of the graph that it submits.
    package var graph: String
    /// `active`, `suspended` or `ended`.
    package var status: String
    package var suspension: SuspensionView?
    /// The next tick; `nil`: no timer fires it, or none is left.
    package var nextAt: TimeText?
    /// Firings that were accepted so far.
    package var firings: UInt64 = 0
    /// Firings whose graphs have not ended.
    package var open = 0
    /// The newest firing.
    package var last: FiringView?
    /// Why it cannot tick or cannot be observed, or why its graph was refused last; `nil`: neither.
    package var problem: String?
    package var overlap: String
    /// `nil`: it does not tick.
    package var missed: String?
    /// `nil`: it ticks, and ticks have no data; or it is watched and merges nothing.
    package var merge: String?
    /// How far the watching of its source is: `starting`, `observing`, `waiting` or `ended`; `nil`:
    /// nothing is watched.
    package var watch: String?
    /// The worker that watches its source; `nil`: the coordinator does, or nobody.
    package var watchedBy: String?
    /// Seconds.
    package var coalesce: Double?
    package var until: TimeText?
    package var limit: UInt64?
    package var addedAt: TimeText
    package var addedBy: String?

    package init(
        name: String,
        source: String,
        on: String,
        graph: String,
        status: String,
        overlap: String,
        addedAt: TimeText
    ) {
        self.name = name
        self.source = source
        self.on = on
        self.graph = graph
        self.status = status
        self.overlap = overlap
        self.addedAt = addedAt
    }
}

/// One firing of a trigger.
package struct FiringView: Hashable, Sendable, Codable {
    package var trigger: String
    package var number: UInt64
    /// What fired it: the same identity fires a trigger once.
    package var identity: String
    /// `waiting`, `merged`, `accepted`, `submitted`, `ended`, `skipped`, `dropped` or
    /// `refused`.
    package var status: String
    package var occurredAt: TimeText
    /// The time of the tick.
    package var plannedAt: TimeText?
    /// Occurrences, or missed ticks, that it stands for.
    package var count: UInt32 = 1
    /// The graph that was submitted.
    package var graph: UInt32?
    /// The outcome of that graph.
    package var outcome: OutcomeKind?
    /// The firing that it became a part of.
    package var mergedInto: UInt64?
    /// Why the graph was refused last.
    package var reason: String?
    /// Whether the identity had fired the trigger before.
    package var isRepeated: Bool?

    package init(
        trigger: String,
        number: UInt64,
        identity: String,
        status: String,
        occurredAt: TimeText
    ) {
        self.trigger = trigger
        self.number = number
        self.identity = identity
        self.status = status
        self.occurredAt = occurredAt
    }
}

/// A time at which a trigger will fire.
package struct TickView: Hashable, Sendable, Codable {
    package var at: TimeText
    /// The same in the time zone of the trigger, with its offset from UTC.
    package var local: String

    package init(at: TimeText, local: String) {
        self.at = at
        self.local = local
    }
}

/// One reason why a trigger has not fired, or has fired and submitted nothing.
package struct TriggerReasonView: Hashable, Sendable, Codable {
    /// One of `codes`.
    package var code: String
    /// A sentence for a person.
    package var text: String
    package var until: TimeText?
    package var graph: UInt32?

    package init(code: String, text: String, until: TimeText?, graph: UInt32?) {
        self.code = code
        self.text = text
        self.until = until
        self.graph = graph
    }

    /// Stable: codes are never renamed or removed.
    package static let codes: Set<String> = [
        "timeZone", "suspended", "until", "limit", "waiting", "coalesce", "overlap", "refused",
        "running", "skipped", "nextTick", "noTick", "noEvent", "noRequest", "noGraph",
        "noOccurrence", "notObserved", "sourceEnded", "occurrenceRefused",
    ]
}

package struct TriggerExplanation: Hashable, Sendable, Codable {
    package var trigger: TriggerView
    /// Empty: it has fired, and its graph is being submitted.
    package var reasons: [TriggerReasonView]

    package init(trigger: TriggerView, reasons: [TriggerReasonView]) {
        self.trigger = trigger
        self.reasons = reasons
    }
}

/// A request to a webhook.
package struct WebhookDelivery: Hashable, Sendable {
    /// The header field with the signature, whichever of them the request has.
    package var signature: String
    /// What its sender calls the request; empty: nothing.
    package var delivery: String
    package var body: [UInt8]

    package init(signature: String, delivery: String, body: [UInt8]) {
        self.signature = signature
        self.delivery = delivery
        self.body = body
    }

    /// The header fields of a source: the signature, and the identity of the request.
    package static func fields(
        _ signature: WebhookSource.Signature
    ) -> (signature: String, delivery: String) {
        switch signature {
        case .github: ("X-Hub-Signature-256", "X-GitHub-Delivery")
        case .stripe: ("Stripe-Signature", "")
        }
    }
}
