#if Cluster
internal import OperonGraphFile
internal import OperonModel
internal import OperonPorts

/// The triggers of a cluster, which submit graphs when their sources fire. Trigger files are
/// described in `docs/TRIGGERS.md`.
///
/// ```swift
/// try await cluster.triggers.add(contentsOf: "nightly.yaml")
/// try await cluster.triggers.fire("deploy", data: ["version": 12], key: "release-12")
/// ```
public struct Triggers: Sendable {
    private let cluster: Cluster

    init(_ cluster: Cluster) { self.cluster = cluster }

    /// A trigger, as it was when the coordinator was asked.
    public struct Trigger: Hashable, Sendable {
        /// Its name.
        public let name: String
        /// What fires it, in words.
        public let source: String
        /// Whether it is suspended.
        public let isSuspended: Bool
        /// Whether its time or its number of firings is over.
        public let hasEnded: Bool
        /// Its next tick; `nil`: no timer fires it, it is suspended, or none is left.
        public let nextTick: WallTime?
        /// How many firings were accepted.
        public let firingCount: Int
        /// Why its graph was refused last; `nil`: it was not.
        public let problem: String?

        init(_ view: TriggerView) {
            name = view.name
            source = view.on
            isSuspended = view.suspension != nil
            hasEnded = view.status == "ended"
            nextTick = view.nextAt?.time
            firingCount = Int(clamping: view.firings)
            problem = view.problem
        }
    }

    /// One firing of a trigger.
    public struct Firing: Hashable, Sendable {
        /// The number of the firing of its trigger, from 1.
        public let number: Int
        /// What fired the trigger: the same identity fires it once.
        public let identity: String
        /// `waiting`, `merged`, `accepted`, `submitted`, `ended`, `skipped` or `dropped`.
        public let status: String
        /// The graph that was submitted; `nil`: none, or not yet.
        public let graph: GraphID?
        /// The outcome of that graph; `nil`: it has not ended.
        public let outcome: OutcomeKind?

        init(_ view: FiringView) {
            number = Int(clamping: view.number)
            identity = view.identity
            status = view.status
            graph = view.graph.map { GraphID(rawValue: $0) }
            outcome = view.outcome
        }
    }

    /// Adds the trigger in a file, in YAML or JSON. Adding the same trigger again has no effect.
    ///
    /// - Parameters:
    ///   - path: The trigger file. The graph files that it names are read as well.
    ///   - replace: Whether it replaces another trigger of its name.
    /// - Throws: ``OperonError`` with the code `invalid` for everything that is wrong with the
    ///   file, `refused` if there is another trigger of its name.
    @discardableResult
    public func add(contentsOf path: String, replace: Bool = false) async throws -> Trigger {
        let trigger: TriggerDescription
        do throws(GraphFileError) {
            trigger = try TriggerFile.read(path: path)
        } catch {
            throw OperonError(.invalid, error.description)
        }
        let body = GraphFileCodec().encode(trigger)
        return Trigger(
            try await cluster.ask {
                try await $0.addTrigger(
                    body,
                    contentType: GraphFileCodec.triggerContentType,
                    replace: replace
                )
            }
        )
    }

    /// All triggers, by name.
    public func all() async throws -> [Trigger] {
        try await cluster.ask { try await $0.triggers() }.map { Trigger($0) }
    }

    /// The trigger of this name.
    ///
    /// - Throws: ``OperonError`` with the code `notFound`.
    public func named(_ name: String) async throws -> Trigger {
        Trigger(try await cluster.ask { try await $0.trigger(name) })
    }

    /// Fires a trigger on `event`. Returns once the firing is stored.
    ///
    /// - Parameters:
    ///   - name: The name of the trigger.
    ///   - data: What its graph finds in the file `OPERON_EVENT`, encoded as JSON.
    ///   - key: Calls with the same key fire the trigger once; `nil`: each call does.
    @discardableResult
    public func fire<Data: Encodable & Sendable>(
        _ name: String,
        data: Data,
        key: String? = nil
    ) async throws -> Firing {
        let payload: Payload
        do {
            payload = try Payload(encoding: data)
        } catch {
            throw OperonError(.invalid, "The data cannot be written as JSON: \(error).")
        }
        return try await fire(name, payload.bytes, key)
    }

    /// Fires a trigger on `event` without data. Returns once the firing is stored.
    ///
    /// - Parameters:
    ///   - name: The name of the trigger.
    ///   - key: Calls with the same key fire the trigger once; `nil`: each call does.
    @discardableResult
    public func fire(_ name: String, key: String? = nil) async throws -> Firing {
        try await fire(name, [], key)
    }

    private func fire(_ name: String, _ data: [UInt8], _ key: String?) async throws -> Firing {
        Firing(
            try await cluster.ask {
                try await $0.fireTrigger(name, data: data, idempotencyKey: key)
            }
        )
    }

    /// Suspends a trigger: it submits nothing until it is resumed.
    ///
    /// - Parameters:
    ///   - name: The name of the trigger.
    ///   - until: When the suspension ends; `nil`: it lasts until ``resume(_:)``.
    ///   - reason: The reason, for people, of at most 4,096 bytes.
    public func suspend(_ name: String, until: WallTime? = nil, reason: String = "") async throws {
        var request = SuspendRequest()
        request.until = until.map { TimeText($0) }
        request.reason = reason
        let asked = request
        _ = try await cluster.ask { try await $0.suspendTrigger(name, asked) }
    }

    /// Resumes a suspended trigger.
    public func resume(_ name: String) async throws {
        _ = try await cluster.ask { try await $0.resumeTrigger(name) }
    }

    /// Removes a trigger with its history. Graphs that it has submitted keep running.
    public func remove(_ name: String) async throws {
        _ = try await cluster.ask { try await $0.removeTrigger(name) }
    }

    /// The last firings of a trigger, the newest first.
    public func history(of name: String, limit: Int = 50) async throws -> [Firing] {
        try await cluster.ask { try await $0.firings(ofTrigger: name, limit: limit) }
            .map { Firing($0) }
    }

    /// The next ticks of a trigger.
    public func nextTicks(of name: String, count: Int = 10) async throws -> [WallTime] {
        try await cluster.ask { try await $0.nextTicks(ofTrigger: name, count: count) }
            .map(\.at.time)
    }
}

extension Cluster {
    /// The triggers of this cluster. In a cluster in this process they fire while the program runs.
    public var triggers: Triggers { Triggers(self) }
}
#endif
