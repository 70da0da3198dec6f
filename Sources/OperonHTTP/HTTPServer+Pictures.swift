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
    /// A page of operations of a graph.
    func operations() async throws -> OperationPage {
        var query = OperationQuery()
        query.state = try named("state")
        query.outcome = try named("outcome")
        query.queue = self.query["queue"]
        query.namePrefix = self.query["namePrefix"]
        query.numbers = try numbers()
        query.after = try number("after")
        query.limit = try limit(query.limit)
        guard let number = try number("box", UInt32.self) else {
            return try await client.operations(of: graph, query)
        }
        guard query.numbers == nil else {
            throw Failure.invalid("box", "cannot be combined with “numbers”")
        }
        let plan = try await plan(isRecent: false)
        guard let box = plan.box(Int(number)) else {
            throw ClientError(.notFound, "The picture of the graph has no box \(number).")
        }
        query.numbers = box.operations
        // A name may stand for another graph by now.
        var page = try await client.operations(of: String(plan.graph), query)
        page.box = box.title
        return page
    }

    /// Numbers of operations in ascending order; `nil`: none were given.
    private func numbers() throws(Failure) -> [UInt32]? {
        guard let text = query["numbers"] else { return nil }
        let most = OperationQuery.numbersMax
        let parts = text.utf8.split(
            separator: UInt8(ascii: ","),
            maxSplits: most,
            omittingEmptySubsequences: false
        )
        let numbers = parts.compactMap { part -> UInt32? in
            let isNumber = part.count < 10 && part.allSatisfy { (48...57).contains($0) }
            return isNumber ? UInt32(String(Substring(part))) : nil
        }
        guard numbers.count == parts.count, numbers.count <= most else {
            throw .invalid("numbers", "is 1 to \(most) whole numbers with commas between them")
        }
        return Set(numbers).sorted()
    }

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
