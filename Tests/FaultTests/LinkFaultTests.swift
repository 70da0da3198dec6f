import OperonCore
import OperonFaultKit
import Testing

/// What networks do to the connections of workers and of the coordinator. Every test has proxies of
/// its own, and most of its time it waits.
@Suite struct LinkFaultTests {
    private static let kinds = AMQPByteScanner.Kind.allCases
    private static let directions = FaultProxy.Direction.allCases

    // MARK: - Cuts

    @Test func `workers whose connections are cut at every kind of byte lose nothing`()
        async throws
    {
        let cuts = Self.directions.flatMap { direction in
            Self.kinds.map { (direction, $0) }
        }
        var generator = faultGenerator(3)
        try await FaultProxy.withProxies(cuts.count, to: Workspace.testBroker()) { proxies in
            try await Workspace.run { workspace in
                let (file, graph) = try workspace.writeGraph(
                    layers: 4,
                    width: 8,
                    milliseconds: 200...600,
                    gates: [3: "done"]
                )
                let workers = try proxies.map { proxy in
                    try workspace.startWorkers(1, slots: 1, broker: proxy.clientURL)[0]
                }
                let run = try workspace.startReportedRun(file)
                for round in 1...3 {
                    for worker in workers {
                        try await worker.says("welcomed by the coordinator", times: round)
                    }
                    var armed: [FaultProxy.ArmedCut] = []
                    for (proxy, (direction, kind)) in zip(proxies, cuts) {
                        let skipping = Int(generator.next() % 3)
                        armed.append(
                            await proxy.arm(
                                FaultProxy.Cut(direction, .byte(kind, skipping: skipping))
                            )
                        )
                    }
                    for cut in armed { try await cut.happens() }
                }
                for worker in workers {
                    try await worker.says("welcomed by the coordinator", times: 4)
                }
                _ = try workspace.write("done", "")
                let ended = try await run.end()

                try workspace.expectOnce(ended, of: graph)
            }
        }
    }

    @Test func `a coordinator whose connection is cut at every kind of byte loses nothing`()
        async throws
    {
        try await FaultProxy.withProxy(to: Workspace.testBroker()) { proxy in
            try await Workspace.run { workspace in
                let (file, graph) = try workspace.writeGraph(
                    layers: 4,
                    width: 4,
                    milliseconds: 200...600,
                    gates: [3: "done"]
                )
                try workspace.startWorkers(2, slots: 2)
                let run = try workspace.startReportedRun(file, broker: proxy.clientURL)
                try await run.says("running o0-")
                var generator = faultGenerator(4)
                for direction in Self.directions {
                    for kind in Self.kinds {
                        // Some of them while it logs in again after the cut before.
                        let skipping = Int(generator.next() % 12)
                        let cut = FaultProxy.Cut(direction, .byte(kind, skipping: skipping))
                        try await proxy.arm(cut).happens()
                    }
                }
                _ = try workspace.write("done", "")
                let ended = try await run.end()

                try workspace.expectOnce(ended, of: graph)
            }
        }
    }

    // MARK: - Slow links

    @Test func `bytes that arrive one by one are understood`() async throws {
        try await FaultProxy.withProxy(to: Workspace.testBroker()) { proxy in
            for direction in Self.directions {
                await proxy.change(direction) { $0.bytePause = .microseconds(100) }
            }
            try await Workspace.run(broker: proxy.clientURL) { workspace in
                let (file, graph) = try workspace.writeGraph(
                    layers: 3,
                    width: 3,
                    milliseconds: 50...100
                )
                try workspace.startWorkers(1, slots: 3)
                let ended = try await workspace.startReportedRun(file).end()

                try workspace.expectOnce(ended, of: graph)
            }
        }
    }

    @Test func `a worker whose link is busy with large outputs keeps its lease`() async throws {
        try await FaultProxy.withProxy(to: Workspace.testBroker()) { proxy in
            // 10 Mbit/s: twenty mebibytes take three leases.
            for direction in Self.directions {
                await proxy.change(direction) { $0.bytesPerSecond = 10_000_000 / 8 }
            }
            try await Workspace.run { workspace in
                let work = """
                    { printf '"'; head -c 1048574 /dev/zero | tr '\\0' x; printf '"'; } \\
                    > $OPERON_OUTPUT
                    """
                let names = (0..<20).map { "o\($0)" }
                let text =
                    "operations:\n"
                    + names.map { name in
                        LayeredGraph.operation(
                            name,
                            Ledger.script(work, in: workspace.path("ledger"))
                        )
                    }.joined()
                let file = try workspace.write("graph.yaml", text)
                try workspace.startWorkers(1, slots: 4, broker: proxy.clientURL)
                let ended = try await workspace.startReportedRun(file).end()

                let report = try ended.report()
                #expect(LedgerCheck(try workspace.ledger(), against: report).violations == [])
                #expect(report.endings == Array(repeating: "succeeded", count: 20))
                #expect(!ended.errors.contains("is gone"), "\(ended.errors)")
                #expect(await proxy.state.connections == 1)
                #expect(await proxy.state.bytes[.toServer, default: 0] > 20 << 20)
            }
        }
    }

    // MARK: - Silence

    /// `side`: whose connection goes through the proxy.
    @Test(arguments: TransportPair.Side.allCases, FaultProxy.Direction.allCases)
    func `a minute in which nothing arrives in one direction is survived`(
        side: TransportPair.Side,
        direction: FaultProxy.Direction
    ) async throws {
        try await FaultProxy.withProxy(to: Workspace.testBroker()) { proxy in
            try await Workspace.run { workspace in
                let (file, graph) = try workspace.writeGraph(
                    layers: 6,
                    width: 4,
                    milliseconds: 200...600,
                    gates: [3: "done"]
                )
                let isWorker = side == .worker
                let deaf = try workspace.startWorkers(
                    1,
                    slots: 2,
                    broker: isWorker ? proxy.clientURL : nil
                )[0]
                try workspace.startWorkers(1, slots: 2)
                let run = try workspace.startReportedRun(
                    file,
                    broker: isWorker ? nil : proxy.clientURL
                )
                try await run.says("running o3-")
                let welcomes = deaf.errors.text.count(of: "welcomed by the coordinator")
                await proxy.drop(direction, true)
                // It is the length of the silence that is tried.
                try await Task.sleep(for: .seconds(60))
                await proxy.drop(direction, false)
                try await deaf.says("welcomed by the coordinator", times: welcomes + 1)
                _ = try workspace.write("done", "")
                let ended = try await run.end()

                guard isWorker else { return try workspace.expectOnce(ended, of: graph) }
                let report = try workspace.expectSound(ended, of: graph)
                let check = LedgerCheck(try workspace.ledger(), against: report)
                let lost = report.operations.filter { $0.attempts.contains { $0.ended == "lost" } }
                #expect(Set(check.duplicates.keys).isSubset(of: lost.map(\.name)))
                // None, if nobody else had a slot for them until it was back.
                #expect(Set(report.lost.map(\.worker)).isSubset(of: ["w1"]))
            }
        }
    }

    enum Cut: String, CaseIterable {
        /// Connections are reset, and new ones refused.
        case unplugged
        /// Nothing arrives, and nobody is told.
        case silent
    }

    @Test(arguments: Cut.allCases)
    func `a cut of 13 s of all links leaves no operation run twice`(cut: Cut) async throws {
        try await FaultProxy.withProxy(to: Workspace.testBroker()) { proxy in
            try await Workspace.run(broker: proxy.clientURL) { workspace in
                let (file, graph) = try workspace.writeGraph(
                    layers: 5,
                    width: 4,
                    milliseconds: 200...600,
                    gates: [2: "done"]
                )
                try workspace.startWorkers(2, slots: 2)
                let run = try workspace.startReportedRun(file)
                for column in 0..<4 { try await run.says("running o2-\(column)\n") }
                // It is the length of the cut that is tried: two leases and a heartbeat.
                switch cut {
                case .unplugged:
                    await proxy.unplug(true)
                    try await Task.sleep(for: .seconds(13))
                    await proxy.unplug(false)
                case .silent:
                    for direction in Self.directions { await proxy.drop(direction, true) }
                    try await Task.sleep(for: .seconds(13))
                    for direction in Self.directions { await proxy.drop(direction, false) }
                }
                _ = try workspace.write("done", "")
                let ended = try await run.end()

                try workspace.expectOnce(ended, of: graph)
            }
        }
    }
}
