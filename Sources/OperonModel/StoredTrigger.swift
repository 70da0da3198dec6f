/// The number of a firing of a trigger, from 1.
package struct FiringID: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
    package let trigger: TriggerID
    package let number: UInt64

    package init(_ trigger: TriggerID, _ number: UInt64) {
        self.trigger = trigger
        self.number = number
    }

    package static func < (left: FiringID, right: FiringID) -> Bool {
        (left.trigger, left.number) < (right.trigger, right.number)
    }

    package var description: String { "\(trigger)/\(number)" }
}

/// A trigger, as it was added.
package struct StoredTrigger: Hashable, Sendable, Codable {
    package var id: TriggerID
    package var name: String
    package var addedAt: WallTime
    /// The name of the client that added it; empty: it has none.
    package var addedBy: String
    /// The description, encoded by the runtime. Opaque to the store.
    package var body: [UInt8]

    package init(
        id: TriggerID,
        name: String,
        addedAt: WallTime,
        addedBy: String = "",
        body: [UInt8]
    ) {
        self.id = id
        self.name = name
        self.addedAt = addedAt
        self.addedBy = addedBy
        self.body = body
    }
}

/// What changes about a trigger and cannot be derived from its firings.
package struct TriggerState: Hashable, Sendable, Codable {
    /// Ticks up to this time were decided on, whether or not they fired.
    package var position: WallTime
    package var suspension: Suspension?
    /// The trigger was removed, and its last graph has not been submitted yet.
    package var isRemoved = false

    package init(position: WallTime) { self.position = position }
}

/// How far a firing is.
package enum FiringStatus: Hashable, Sendable, Codable {
    /// Further occurrences are merged into it before it is submitted.
    case waiting
    /// It became a part of a later firing of the same trigger.
    case merged(into: UInt64)
    /// The graph is to be submitted.
    case accepted
    case submitted(GraphID)
    /// The graph that it submitted has ended.
    case ended(GraphID, OutcomeKind)
    /// A run had not ended, and the trigger does not overlap.
    case skipped
    /// The trigger was removed before the graph was submitted.
    case dropped
    /// The coordinator has refused the graph too often.
    case refused

    /// The name of the status. Stable.
    package var name: String {
        switch self {
        case .waiting: "waiting"
        case .merged: "merged"
        case .accepted: "accepted"
        case .submitted: "submitted"
        case .ended: "ended"
        case .skipped: "skipped"
        case .dropped: "dropped"
        case .refused: "refused"
        }
    }

    package var graph: GraphID? {
        switch self {
        case .submitted(let graph), .ended(let graph, _): graph
        case .waiting, .merged, .accepted, .skipped, .dropped, .refused: nil
        }
    }

    /// Whether nothing more happens to the firing.
    package var isFinal: Bool {
        switch self {
        case .merged, .ended, .skipped, .dropped, .refused: true
        case .waiting, .accepted, .submitted: false
        }
    }
}

/// One firing of a trigger. It is stored before anybody is told of it.
package struct StoredFiring: Hashable, Sendable, Codable {
    package var id: FiringID
    /// What fired it: the same identity never fires a trigger twice.
    package var identity: String
    /// The planned time of a tick; `nil`: no timer fired it.
    package var plannedAt: WallTime?
    package var occurredAt: WallTime
    /// How many firings of the trigger were accepted, up to this one.
    package var ordinal: UInt64
    /// Ticks up to this time are never fired again, because their firings may be forgotten.
    package var floor: WallTime?
    package var status: FiringStatus
    /// Occurrences that it stands for, or missed ticks and itself.
    package var count: UInt32 = 1
    /// JSON, until the graph is submitted; empty: there is none, or it was submitted.
    package var data = ""
    /// Why the last submission was refused, or why it was skipped; empty: it was not.
    package var reason = ""

    package init(
        id: FiringID,
        identity: String,
        plannedAt: WallTime? = nil,
        occurredAt: WallTime,
        ordinal: UInt64,
        floor: WallTime? = nil,
        status: FiringStatus
    ) {
        self.id = id
        self.identity = identity
        self.plannedAt = plannedAt
        self.occurredAt = occurredAt
        self.ordinal = ordinal
        self.floor = floor
        self.status = status
    }
}

/// What a store keeps of the decisions about triggers.
package enum TriggerRecord: Hashable, Sendable, Codable {
    case added(StoredTrigger, TriggerState)
    /// The trigger has another description. Its firings stay.
    case replaced(StoredTrigger, TriggerState)
    case changed(TriggerID, TriggerState)
    /// The trigger with all its firings.
    case removed(TriggerID)
    /// A firing, new or changed.
    case firing(StoredFiring)
    case firingForgotten(FiringID)

    /// The trigger that must exist before the record; `nil`: the record adds it.
    package var existing: TriggerID? {
        switch self {
        case .added: nil
        case .replaced(let trigger, _): trigger.id
        case .changed(let id, _), .removed(let id): id
        case .firing(let firing): firing.id.trigger
        case .firingForgotten(let id): id.trigger
        }
    }

    package var trigger: TriggerID {
        if case .added(let trigger, _) = self { trigger.id } else { existing ?? .init(rawValue: 0) }
    }
}

/// A trigger and everything that is kept of it.
package struct RestoredTrigger: Hashable, Sendable {
    package var trigger: StoredTrigger
    package var state: TriggerState
    /// In ascending order of their numbers.
    package var firings: [StoredFiring] = []

    package init(trigger: StoredTrigger, state: TriggerState, firings: [StoredFiring] = []) {
        self.trigger = trigger
        self.state = state
        self.firings = firings
    }
}
