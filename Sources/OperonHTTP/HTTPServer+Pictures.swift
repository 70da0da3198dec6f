import OperonModel
import OperonPorts

// Routes for what shows all operations of a graph.

extension HTTPServer {
    /// The bars of a timeline: more cannot be told apart, and fewer are of no use.
    private static let barsUsual = 4_000
    private static let barsMax = 20_000

    static let pictureRoutes: [Route] = [
        Route("GET", "/v1/graphs/{graph}/records", .view, query: ["after", "limit"]) { call in
            .json(
                try await call.client.records(
                    of: call.graph,
                    after: try call.number("after"),
                    limit: try call.limit(1_000)
                )
            )
        },
        Route("GET", "/v1/graphs/{graph}/states", .view) { call in
            .json(try await call.client.states(of: call.graph))
        },
        Route("GET", "/v1/graphs/{graph}/picture", .view, query: ["states"]) { call in
            let plan = try await call.plan(isRecent: false)
            let states = try await call.client.states(of: call.graph)
            return try call.flag("states")
                ? .json(plan.states(states)) : .json(plan.picture(states))
        },
        Route("GET", "/v1/graphs/{graph}/timeline", .view, query: ["from", "to", "bars"]) { call in
            let bars = try call.number("bars", Int.self) ?? barsUsual
            guard (1...barsMax).contains(bars) else {
                throw Failure.invalid("bars", "is from 1 to \(barsMax)")
            }
            let (from, to) = (try call.place("from"), try call.place("to"))
            if let from, let to, to < from {
                throw Failure.invalid("to", "is before from")
            }
            let plan = try await call.plan(isRecent: true)
            return .json(plan.timeline(from: from, to: to, barsMax: bars))
        },
    ]
}

extension Call {
    fileprivate func plan(isRecent: Bool) async throws -> GraphPlan {
        try await server.plans.plan(of: graph, isRecent: isRecent, by: client)
    }

    /// Seconds since the submission of a graph.
    fileprivate func place(_ name: String) throws(Failure) -> Double? {
        guard let text = query[name] else { return nil }
        guard let seconds = Double(text), seconds.isFinite, seconds >= 0 else {
            throw .invalid(name, "“\(text)” is no number of seconds")
        }
        return seconds
    }
}
