import OperonArguments
import OperonCore
import OperonModel
import OperonRuntime

/// What the only worker of a run without a broker offers. No other worker can join, so what this
/// one could never run would wait for ever.
struct LocalOffer: Sendable {
    private let offer: WorkerOffer

    init(_ worker: WorkerHost.Configuration) {
        var offer = Machine(environment: worker.environment).offer(
            resources: worker.resources,
            labels: worker.labels
        )
        offer.enforces = worker.controlGroups != nil
        offer.secrets = !worker.secrets.isEmpty
        self.offer = offer
    }

    /// Refuses a whole graph before anything of it starts.
    func check(_ graph: LoadedGraph) throws(Failure) {
        let compiled = graph.compiled
        guard let number = compiled.demands.indices.first(where: { !isMet(compiled.demands[$0]) })
        else { return }
        let operations = graph.description.operations.indices.filter {
            Int(compiled.policies[Int(compiled.policy[$0])].demand) == number
        }
        let named = operations.prefix(Self.namedMax).map { graph.description.operations[$0].name }
        throw Failure(
            ExitStatus.failed,
            sentence(
                named,
                more: operations.count - named.count,
                compiled.demands[number],
                "Nothing was started."
            )
        )
    }

    /// Operations that were added to a run, that can never run here, while nothing else can.
    private struct DeadEnd: Hashable, Sendable {
        let operations: [OperationID]
        let more: Int
        let demand: ResourceDemand
    }

    /// Returns when nothing is left to run but what can never run here: a sentence that says so.
    ///
    /// - Throws: `CancellationError`.
    func waitForDeadEnd(
        _ coordinator: CoordinatorService,
        _ graph: GrowingGraph
    ) async throws -> String {
        var last: DeadEnd?
        while true {
            try await Task.sleep(for: Self.pause)
            let id = graph.id
            let found = await coordinator.query { Self.deadEnd(of: id, $0) }
            // Between two looks, nothing has come that could go on.
            if let found, found == last {
                let named = found.operations.map { graph.name(of: $0.index) }
                let nothing = "The run was ended, because nothing else can run."
                return sentence(named, more: found.more, found.demand, nothing)
            }
            last = found
        }
    }

    private static let pause = Duration.seconds(1)
    /// The most operations that a sentence names.
    private static let namedMax = 3

    private static func deadEnd(of graph: GraphID, _ scheduler: Scheduler) -> DeadEnd? {
        guard scheduler.hasWorkers else { return nil }
        var ready = 0
        for waiting in scheduler.waitingDemands {
            guard waiting.inFlight == 0, waiting.unrunnable == waiting.ready else { return nil }
            ready += waiting.ready
        }
        // What is ready besides waits for a time, or for somebody else.
        guard ready > 0, scheduler.stateCounts(of: graph).ready == ready else { return nil }
        for found in scheduler.unrunnable(in: graph) {
            guard case .demand(let demand) = found.missing else { continue }
            return DeadEnd(operations: found.operations, more: found.more, demand: demand)
        }
        return nil
    }

    // MARK: - Words

    private func isMet(_ demand: ResourceDemand) -> Bool { demand.isMet(by: offer) }

    private func sentence(
        _ names: [String],
        more: Int,
        _ demand: ResourceDemand,
        _ consequence: String
    ) -> String {
        let named = names.map { "“\($0)”" }.joined(separator: ", ")
        let lacking = demand.lacking(nearestOf: [offer]) ?? ""
        return "\(named)\(more > 0 ? " and \(more) more" : "") can never run here: \(lacking). "
            + "\(consequence) Offer it with \(options(for: demand)), or run with --broker on a "
            + "worker that offers it."
    }

    /// The options of this command that can offer what is missing.
    private func options(for demand: ResourceDemand) -> String {
        var options: [String] = []
        if demand.resources.all.contains(where: { (offer.resources[$0.name] ?? 0) < $0.amount }) {
            options.append("--resources")
        }
        if !demand.requirements.allSatisfy({ $0.isMet(by: offer.labels) }) {
            options.append("--label")
        }
        if demand.isEnforced, !offer.enforces { options.append("--control-group") }
        if demand.needsSecrets, !offer.secrets { options.append("--secrets") }
        return options.joined(separator: " and ")
    }
}
