package struct WorkerView: Hashable, Sendable, Codable {
    package var id: String
    package var name: String
    package var host: String
    package var slots: Int
    package var busySlots: Int
    /// How many attempts the worker holds, running or not.
    package var held: Int
    /// `alive`, `draining`, `gone`.
    package var status: String
    package var queues: [String]
    package var kinds: [String]
    /// Whether the worker runs any other kind as well; `nil`: it does not.
    package var runsAnyKind: Bool?
    /// What it offers besides slots, and what is left of it; `nil`: nothing.
    package var resources: [ResourceView]?
    /// `nil`: it has none.
    package var labels: [String: String]?
    /// Whether it holds operations to their resources; `nil`: it does not.
    package var enforces: Bool?
    package var heardSecondsAgo: Double
    /// Since when it is alive; `nil`: it is not, or the coordinator is of an earlier version.
    package var since: TimeText?
    /// What it runs, the longest first, ten at most; `nil`: nothing.
    package var running: [WorkerOperationView]?
    /// The worker's key, and the id of the token with which it joined: either can be revoked.
    /// `nil`: it has no session with sealed messages.
    package var key: String?
    package var token: String?

    package init(
        id: String,
        name: String,
        host: String,
        slots: Int,
        busySlots: Int,
        held: Int,
        status: String,
        queues: [String],
        kinds: [String],
        heardSecondsAgo: Double
    ) {
        self.id = id
        self.name = name
        self.host = host
        self.slots = slots
        self.busySlots = busySlots
        self.held = held
        self.status = status
        self.queues = queues
        self.kinds = kinds
        self.heardSecondsAgo = heardSecondsAgo
    }
}

/// An operation that a worker runs.
package struct WorkerOperationView: Hashable, Sendable, Codable {
    package var operation: OperationName
    /// When its attempt started.
    package var startedAt: TimeText

    package init(_ operation: OperationName, startedAt: TimeText) {
        self.operation = operation
        self.startedAt = startedAt
    }
}
