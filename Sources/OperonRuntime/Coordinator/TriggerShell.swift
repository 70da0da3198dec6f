import DequeModule
import OperonCore
import OperonModel
package import OperonPorts
import OperonSystem

/// What the coordinator's service keeps for its triggers: the decisions, the descriptions, and what
/// waits to be submitted.
struct TriggerShell: Sendable {
    var table = TriggerTable()
    /// Only looked up.
    var descriptions: [TriggerID: TriggerDescription] = [:]
    /// The number of the last trigger that was added in this epoch.
    var lastNumber: UInt32 = 0
    var submissions = Deque<TriggerTable.Submission>()
    /// Records that the next step of the scheduler stores.
    var attached: [TriggerRecord] = []
    /// Events of triggers that the next step of the scheduler stores.
    var events: [ClusterEvent] = []
    /// Runs that a newer firing replaces.
    var cancels: [GraphID] = []
    /// Limits of webhooks. Only looked up.
    var buckets: [TriggerID: RequestBucket] = [:]
    /// What the log says at most once a second, because others decide how often it happens.
    enum Fault: Hashable {
        case refusedGraph, refusedWebhook
    }
    let faults = FaultLog<Fault>()
    /// Whether ticks fire and graphs are submitted.
    var hasStarted = false
    var alarm = Alarm<Timestamp>()
    var dateAlarm = Alarm<WallTime>()
    let signal = Signal()
    /// Those of triggers with a source outside of the cluster. Only looked up.
    var watches: [TriggerID: TriggerWatch] = [:]
    /// Triggers whose watches may have to begin or end.
    var watchChanges: [TriggerID] = []
    let watchSignal = Signal()
    /// What workers watch.
    var workers = WorkerWatches()
    /// `nil`: this coordinator has no triggers.
    let support: TriggerSupport?

    init(_ support: TriggerSupport?) { self.support = support }
}

/// What a coordinator needs from outside for its triggers.
package struct TriggerSupport: Sendable {
    package let codec: any TriggerCodec
    package let zones: TimeZoneDirectory
    /// Variables that hold secrets of webhooks.
    package let environment: [String: String]
    /// `nil`: nothing outside of the cluster is watched.
    package let sources: (any TriggerSourceProvider)?

    package init(
        codec: any TriggerCodec,
        zones: TimeZoneDirectory,
        environment: [String: String] = [:],
        sources: (any TriggerSourceProvider)? = nil
    ) {
        self.codec = codec
        self.zones = zones
        self.environment = environment
        self.sources = sources
    }

    static let watchesNothing =
        TriggerSourceError(.accessRefused, "this coordinator watches nothing")

    /// The description as it is kept.
    func resolved(
        _ description: TriggerDescription
    ) throws(TriggerSourceError) -> TriggerDescription {
        guard let source = description.source.watched, description.watcher == .coordinator
        else { return description }
        guard let sources else {
            throw Self.watchesNothing
        }
        var description = description
        description.source = .watched(try sources.resolved(source))
        return description
    }

    /// The rules of the zone in which a trigger ticks.
    func zone(
        of description: TriggerDescription
    ) throws(TimeZoneDirectory.Problem) -> TimeZoneRules {
        guard case .cron(let source) = description.source else { return .utc }
        return try zones.zone(source.timezone)
    }

    /// The triggers of a store.
    ///
    /// - Throws: `StoreError.damaged` for triggers that make no sense.
    func restore(_ rows: [RestoredTrigger]) throws -> TriggerShell {
        var shell = TriggerShell(self)
        var restored: [(row: RestoredTrigger, definition: TriggerTable.Definition)] = []
        for row in rows {
            let stored = row.trigger
            let description: TriggerDescription
            var problem = ""
            do {
                description = try codec.decodeTrigger(
                    stored.body,
                    contentType: "application/json"
                )
            } catch {
                // One trigger must not keep a coordinator from its graphs.
                problem = "The store has a description that cannot be read: \(error)"
                description = TriggerDescription(
                    name: stored.name,
                    source: .event,
                    graph: TriggerGraph(file: "", contentType: "application/yaml", text: "")
                )
            }
            var rules = TimeZoneRules.utc
            do throws(TimeZoneDirectory.Problem) {
                rules = try zone(of: description)
            } catch {
                problem = "\(error)."
            }
            var definition = TriggerTable.Definition(
                stored.id,
                description,
                zone: rules,
                addedAt: stored.addedAt
            )
            if !problem.isEmpty {
                definition.problem = problem
                // A tick at the wrong hour would be worse than none.
                definition.schedule = .none
            }
            shell.descriptions[stored.id] = description
            restored.append((row, definition))
        }
        do throws(RestoreError) {
            shell.table = try TriggerTable(restoring: restored)
        } catch {
            throw StoreError(.damaged, "The triggers of the store do not fit together: \(error).")
        }
        return shell
    }
}
