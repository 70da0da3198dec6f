import OperonCore
import OperonModel

// What the submitter is told of operations that no worker known now could ever run.
extension CoordinatorService {
    /// The answer to a submission of a graph, or to an addition from `first` on.
    func answer(_ graph: GraphID, from first: UInt32? = nil) -> GraphView {
        var view = view(of: graph)
        view.firstAdded = first
        let warnings = warnings(about: graph, from: first ?? 0)
        if !warnings.isEmpty { view.warnings = warnings }
        return view
    }

    private func warnings(about graph: GraphID, from first: UInt32) -> [WarningView] {
        let found = scheduler.unrunnable(in: graph, from: first)
        guard !found.isEmpty else { return [] }
        guard scheduler.hasWorkers else {
            // One in this process joins in a moment.
            return ownWorker == nil ? [noWorker] : []
        }
        return found.prefix(WarningView.listedMax).map { warning(of: $0) }
    }

    private var noWorker: WarningView {
        let isAlive = scheduler.workerStatus(at: time.now()).contains(where: \.isAlive)
        return WarningView(
            code: "noWorker",
            text: isAlive
                ? "All workers are draining: the operations wait until another one starts."
                : "There is no worker yet: the operations wait until one starts.",
            missing: ""
        )
    }

    private func warning(of found: Scheduler.Unrunnable) -> WarningView {
        let names = found.operations.map { name(of: $0) }
        let listed = Self.list(names.map(\.name), more: found.more)
        var view: WarningView
        switch found.missing {
        case .kind(let kind):
            view = WarningView(
                code: "noWorkerForKind",
                text: "No worker knows the kind “\(kind)” of \(listed): start one that does.",
                missing: kind
            )
        case .queue(let queue):
            view = WarningView(
                code: "noWorkerForQueue",
                text: "No worker that could run \(listed) serves queue “\(queue)”: start one that "
                    + "does.",
                missing: queue
            )
        case .demand(let demand):
            let lacking = lacking(demand, for: found.operations[0])
            view = WarningView(
                code: "noWorkerForResources",
                text: "No worker could ever run \(listed): \(lacking). Start a worker that offers "
                    + "this.",
                missing: lacking
            )
        }
        view.operations = names
        view.more = found.more
        return view
    }

    // MARK: - The whole cluster

    /// The cluster with what waits, what is missing for it, and what the workers have left.
    func fullClusterView(version: String) -> ClusterView {
        var view = clusterView(version: version)
        let resources = scheduler.resourceStatus
            .sorted { ($1.workers, $0.name) < ($0.workers, $1.name) }
            .prefix(ResourceView.listedMax)
        if !resources.isEmpty {
            view.resources = resources.sorted { $0.name < $1.name }.map { one in
                ResourceView(name: one.name, offered: one.offered, left: one.left)
            }
        }
        let waiting = scheduler.waitingDemands.enumerated().sorted { left, right in
            let (one, other) = (left.element, right.element)
            return (one.unrunnable, one.ready, one.inFlight, right.offset)
                > (other.unrunnable, other.ready, other.inFlight, left.offset)
        }.map { $0.element }
        guard !waiting.isEmpty else { return view }
        view.demands = waiting.prefix(DemandView.listedMax).map { status in
            var view = DemandView(
                status.demand,
                ready: status.ready,
                inFlight: status.inFlight,
                unrunnable: status.unrunnable
            )
            view.missing = missing(for: status)
            return view
        }
        if waiting.count > DemandView.listedMax {
            view.moreDemands = waiting.count - DemandView.listedMax
        }
        return view
    }

    private func missing(for status: Scheduler.DemandStatus) -> String? {
        switch status.missing {
        case .kind(let kind): "none knows the kind “\(kind)”"
        case .queue(let queue): "none that knows their kind serves queue “\(queue)”"
        case .demand(let demand): demand.lacking(nearestOf: scheduler.serving(status))
        case nil: status.unrunnable > 0 ? "there is no worker" : nil
        }
    }

    /// What the worker that comes closest lacks to run an operation.
    func lacking(_ demand: ResourceDemand, for operation: OperationID) -> String {
        demand.lacking(nearestOf: scheduler.serving(operation)) ?? "there is no worker"
    }
}
