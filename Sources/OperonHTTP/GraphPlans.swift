import OperonModel
import OperonPorts

/// The plans of the graphs that browsers show, each made once for all of them.
actor GraphPlans {
    /// The most plans that are kept.
    static let plansMax = 4
    /// The most operations that all kept plans have together. One plan is always kept.
    static let operationsMax = 2_000_000
    /// How old the timeline of a running graph may be. Making it takes at most a part of the time.
    static let ageMax = Duration.seconds(2)
    private static let timePart = 10

    private var plans: [UInt32: GraphPlan] = [:]
    private var making: [UInt32: Task<GraphPlan, any Error>] = [:]
    /// The one that was begun last. They are made one after the other: each holds a whole graph.
    private var newest: Task<GraphPlan, any Error>?
    /// The graphs of the plans, the one that was used last at the end.
    private var order: [UInt32] = []

    /// The plan of a graph.
    ///
    /// - Parameter isRecent: Whether the attempts of a running graph are to be recent. What depends
    ///   on what is always recent, as far as operations were added.
    func plan(
        of name: String,
        isRecent: Bool,
        by client: any CoordinatorClient
    ) async throws -> GraphPlan {
        let graph = try await client.graph(name)
        if let plan = plans[graph.id], isValid(plan, graph, isRecent) {
            use(graph.id)
            return plan
        }
        if let task = making[graph.id] { return try await task.value }
        let before = newest
        let task = Task {
            _ = await before?.result
            return try await GraphPlan.make(of: graph, by: client)
        }
        newest = task
        making[graph.id] = task
        defer {
            making[graph.id] = nil
            // It would keep its plan.
            if newest == task { newest = nil }
        }
        let plan = try await task.value
        plans[graph.id] = plan
        use(graph.id)
        while let first = order.first, order.count > 1, isTooMuch {
            plans[first] = nil
            order.removeFirst()
        }
        return plan
    }

    private func isValid(_ plan: GraphPlan, _ graph: GraphView, _ isRecent: Bool) -> Bool {
        guard plan.operationCount == graph.counts.total else { return false }
        if plan.isFinished, plan.finishedAt == graph.finishedAt { return true }
        // The end of a graph is shown at once.
        if isRecent, graph.counts.unfinished == 0 { return false }
        let age = ContinuousClock.now - plan.madeAt
        return !isRecent || age <= max(Self.ageMax, plan.took * Self.timePart)
    }

    private func use(_ graph: UInt32) {
        order.removeAll { $0 == graph }
        order.append(graph)
    }

    private var isTooMuch: Bool {
        plans.count > Self.plansMax
            || plans.values.reduce(0) { $0 + $1.operationCount } > Self.operationsMax
    }
}
