package import OperonCore
import OperonModel

/// What is counted at the time of a scrape: the operations of each queue and of each demand class,
/// and what the workers offer. No series outlives what it counts.
package struct ScrapedMeters: Sendable {
    package struct Family: Sendable {
        package let label: String
        /// Each value with its dimensions; without any, it belongs to no single series.
        package let values: [(dimensions: [(String, String)], value: Double)]
    }

    package struct Queue: Sendable {
        var name: String
        var ready: Int
        var inFlight: Int
    }

    /// The most queues, and the most demand classes, that are listed individually. Each costs the
    /// monitoring system two series for as long as it remembers them, and clients choose them.
    package static let listedMax = 1_000
    /// The most resources that are listed individually. Workers choose their names.
    package static let resourcesMax = 100
    /// The longest text of a demand that is listed individually, in bytes. A demand may have 64
    /// requirements of 64 values each.
    package static let demandBytesMax = 512

    private let queues: [Queue]
    private let demands: [Scheduler.DemandStatus]
    private let resources: [Scheduler.ResourceStatus]

    package init(
        queues: [Queue],
        demands: [Scheduler.DemandStatus],
        resources: [Scheduler.ResourceStatus]
    ) {
        self.queues = queues
        self.demands = demands
        self.resources = resources
    }

    /// Lists what has the most operations individually, and the sums of all others.
    package var families: [Family] { queueFamilies + demandFamilies + resourceFamilies }

    // MARK: - Operations

    /// A series before it has a label.
    private struct Row {
        /// Different for each row.
        let name: String
        let dimensions: [(String, String)]
        var ready: Int
        var inFlight: Int
    }

    private typealias Label = CoordinatorMeters.Label

    private var queueFamilies: [Family] {
        Self.families(
            queues.map { queue in
                Row(
                    name: queue.name,
                    dimensions: [("queue", queue.name)],
                    ready: queue.ready,
                    inFlight: queue.inFlight
                )
            },
            unlisted: [],
            labels: [
                Label.queueReady, Label.queueInFlight, Label.otherReady, Label.otherInFlight,
            ]
        )
    }

    private var demandFamilies: [Family] {
        let rows = demands.map { status in
            let (resources, workers) = (status.demand.resourceText, status.demand.selector)
            let enforce = String(status.demand.isEnforced)
            return Row(
                name: "\(resources) \(workers) \(enforce)",
                dimensions: [("resources", resources), ("workers", workers), ("enforce", enforce)],
                ready: status.ready,
                inFlight: status.inFlight
            )
        }
        let merged = Self.merged(rows)
        return Self.families(
            merged.filter { $0.name.utf8.count <= Self.demandBytesMax },
            unlisted: merged.filter { $0.name.utf8.count > Self.demandBytesMax },
            labels: [
                Label.demandReady, Label.demandInFlight, Label.otherDemandsReady,
                Label.otherDemandsInFlight,
            ]
        )
    }

    /// One row for demands that differ only in whether they need secrets, which no label shows.
    private static func merged(_ rows: [Row]) -> [Row] {
        var merged: [Row] = []
        var places: [String: Int] = [:]
        for row in rows {
            if let place = places[row.name] {
                merged[place].ready += row.ready
                merged[place].inFlight += row.inFlight
            } else {
                places[row.name] = merged.count
                merged.append(row)
            }
        }
        return merged
    }

    /// - Parameter labels: those of ready and in flight, and of the two sums.
    private static func families(
        _ rows: [Row],
        unlisted: [Row],
        labels: [String]
    ) -> [Family] {
        let ordered = rows.sorted { left, right in
            let counts = (left.ready + left.inFlight, right.ready + right.inFlight)
            return counts.0 == counts.1 ? left.name < right.name : counts.0 > counts.1
        }
        let listed = ordered.prefix(listedMax)
        let others = ordered.dropFirst(listedMax) + unlisted
        func family(_ label: String, _ value: (Row) -> Int) -> Family {
            Family(label: label, values: listed.map { ($0.dimensions, Double(value($0))) })
        }
        func sum(_ label: String, _ value: (Row) -> Int) -> Family {
            Family(label: label, values: [([], Double(others.reduce(0) { $0 + value($1) }))])
        }
        return [
            family(labels[0]) { $0.ready }, family(labels[1]) { $0.inFlight },
            sum(labels[2]) { $0.ready }, sum(labels[3]) { $0.inFlight },
        ]
    }

    // MARK: - Resources

    /// Lists the resources that the most workers offer. A sum over the others would have no unit,
    /// so they are only counted.
    private var resourceFamilies: [Family] {
        let listed = resources.sorted { ($1.workers, $0.name) < ($0.workers, $1.name) }
            .prefix(Self.resourcesMax)
        func family(_ label: String, _ value: (Scheduler.ResourceStatus) -> Double) -> Family {
            Family(
                label: label,
                values: listed.map { one in
                    let value = ResourceText.wholeUnits(value(one), of: one.name)
                    return ([("resource", one.name)], value)
                }
            )
        }
        let others = Double(resources.count - listed.count)
        return [
            family(Label.resourceOffered) { $0.offered }, family(Label.resourceFree) { $0.left },
            Family(label: Label.otherResources, values: [([], others)]),
        ]
    }
}

extension CoordinatorService {
    /// Sets the values that are read on request; all other values are counted as they happen.
    ///
    /// - Returns: What is counted for each scrape. The caller sorts and writes it, because there
    ///   may be much of it and the coordinator can do nothing else meanwhile.
    package func refreshMeters() -> ScrapedMeters {
        meters?.set(
            clusterView(version: ""),
            isUp: scheduler.isUp,
            isKept: keeping?.trouble == nil
        )
        return ScrapedMeters(
            queues: scheduler.queueStatus.map { queue in
                ScrapedMeters.Queue(
                    name: queue.name,
                    ready: queue.ready,
                    inFlight: queue.inFlight
                )
            },
            demands: scheduler.demandStatus,
            resources: scheduler.resourceStatus
        )
    }
}
