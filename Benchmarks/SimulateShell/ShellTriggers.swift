import OperonCore
import OperonGraphFile
import OperonModel
import OperonPorts
import OperonRuntime

// A client that has triggers: each firing that was accepted submits one graph.
extension ShellSimulation {
    /// Read by the reader that the programs have.
    static let triggerSupport = TriggerSupport(codec: GraphFileCodec(), zones: TimeZoneDirectory())
    private static let ticksMax = 3

    func runTriggers() async {
        do throws(ClientError) {
            try await add(ShellLedger.fired, on: "\"event\"", "\"limit\": 100")
            try await add(
                ShellLedger.ticked,
                on: "{ \"every\": { \"interval\": \"5s\" } }",
                "\"limit\": \(Self.ticksMax)"
            )
            var keys: [String] = []
            for number in 0..<1 + machine.draw(below: 5) {
                await pause(upTo: .seconds(6))
                let key = "k\(number)"
                keys.append("key:" + key)
                _ = try await ask { client async throws(ClientError) in
                    try await client.fireTrigger(ShellLedger.fired, data: [], idempotencyKey: key)
                }
            }
            let firings = try await waitForEnds(of: ShellLedger.fired, count: keys.count)
            if firings.map(\.identity).sorted() != keys {
                ledger.breaks("\(keys) were accepted, and \(firings.map(\.identity)) have fired")
            }
            try await checkGraphs(of: firings, ShellLedger.fired)
            let ticks = try await waitForEnds(of: ShellLedger.ticked, count: Self.ticksMax)
            if Set(ticks.map(\.plannedAt)).count != Self.ticksMax {
                ledger.breaks("of \(Self.ticksMax) ticks there are \(ticks.map(\.plannedAt))")
            }
            try await checkGraphs(of: ticks, ShellLedger.ticked)
        } catch {
            if !isEnding { ledger.breaks("a client of triggers is refused: \(error)") }
        }
    }

    private func add(_ name: String, on source: String, _ rest: String) async throws(ClientError) {
        let graph =
            "name: \(name)\\noperations: { a: { run: x }, b: { run: x, dependencies: [a] } }"
        let body = """
            { "name": "\(name)", "on": \(source), "graph": { "text": "\(graph)" }, \(rest) }
            """
        // The same trigger again has no effect.
        _ = try await ask { client async throws(ClientError) in
            try await client.addTrigger(
                Array(body.utf8),
                contentType: "application/json",
                replace: false
            )
        }
    }

    /// The firings of a trigger, once there are so many and all of their graphs have ended.
    private func waitForEnds(
        of name: String,
        count: Int
    ) async throws(ClientError) -> [FiringView] {
        while true {
            let firings = try await ask { client async throws(ClientError) in
                try await client.firings(ofTrigger: name, limit: 100)
            }
            let ended = firings.filter { $0.status == "ended" }
            if ended.count >= count, ended.count == firings.count { return firings }
            ledger.waits("the firings of \(name): \(firings.map(\.status))")
            await pause(upTo: .seconds(1))
        }
    }

    private func checkGraphs(
        of firings: [FiringView],
        _ name: String
    ) async throws(ClientError) {
        let graphs = firings.compactMap(\.graph)
        if Set(graphs).count != firings.count {
            ledger.breaks("the firings of \(name) have submitted \(graphs)")
        }
        guard scenario.retention == nil else { return }
        var query = GraphQuery()
        query.name = name
        let given = query
        let page = try await ask { client async throws(ClientError) in
            try await client.graphs(given)
        }
        if page.graphs.map(\.id).sorted() != graphs.sorted() {
            ledger.breaks("of the graphs \(page.graphs.map(\.id)), firings know \(graphs)")
        }
    }
}
