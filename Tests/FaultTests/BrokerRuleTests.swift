import Glibc
import OperonCore
import OperonFaultKit
import Testing

@testable import OperonAMQP

/// One broker with hard rules: who holds a message without an acknowledgement for three seconds
/// loses its channel; and what a run leaves on it is counted.
@Suite(.serialized, .ownBroker("consumer_timeout = 3000\n"))
struct BrokerRuleTests {
    @Test func `twenty workers are killed in one run, and nothing is lost or left`() async throws {
        let broker = try #require(BrokerFixture.current)
        var generator = faultGenerator(20)
        try await Workspace.run(broker: broker.url) { workspace in
            let (file, graph) = try workspace.writeGraph(
                layers: 20,
                width: 12,
                milliseconds: 50...250,
                gates: [19: "killed"],
                isBraided: false
            )
            var workers = try workspace.startWorkers(4, slots: 3)
            let run = try workspace.startReportedRun(file)
            try await run.says("running o0-")
            for _ in 0..<20 {
                // The moment is what is tried, whatever happens in it.
                let pause = 100 + Int(generator.next() % 1_000)
                try await Task.sleep(for: .milliseconds(pause))
                let victim = Int(generator.next() % UInt64(workers.count))
                // One that has not come so far has nothing to lose.
                try await workers[victim].says("welcomed by the coordinator")
                workers[victim].signal(SIGKILL)
                #expect(try await workers[victim].end().end == .signal(SIGKILL))
                workers[victim] = try workspace.startWorkers(1, slots: 3)[0]
            }
            #expect(!run.hasEnded)
            _ = try workspace.write("killed", "")
            let ended = try await run.end()

            let report = try workspace.expectSound(ended, of: graph, limit: 12)
            #expect(Set(report.lost.map(\.worker)).count > 5)
            #expect(Set(report.endings) == ["succeeded", "lost"])
            for worker in workers { worker.signal(SIGTERM) }
            for worker in workers {
                #expect(try await worker.end(within: .seconds(20)).end == .exit(0))
            }
            try await workspace.waitUntilNoProcess()
            #expect(try await broker.queues(prefix: workspace.prefix) == [])
            #expect(try workspace.temporaryFiles() == [])
        }
    }

    @Test func `an operation longer than the broker's patience with consumers runs once`()
        async throws
    {
        let broker = try #require(BrokerFixture.current)
        // It looks at each channel once a minute otherwise.
        try await broker.evaluate(
            "application:set_env(rabbit, channel_tick_interval, 1000)."
        )
        try await Workspace.run(broker: broker.url) { workspace in
            let (file, graph) = try workspace.writeGraph(
                layers: 1,
                width: 2,
                milliseconds: 1...1,
                gates: [0: "closed"]
            )
            try workspace.startWorkers(1, slots: 2)
            let run = try workspace.startReportedRun(file)
            for column in 0..<2 { try await run.says("running o0-\(column)\n") }

            // It takes a message at the same time, and does not acknowledge it.
            let reason = try await AckingConsumer.channelEnd(at: broker.url, within: .seconds(60))

            #expect(reason.code == 406)
            #expect(reason.text.contains("timed out"), "\(reason.text)")
            #expect(!run.hasEnded)
            _ = try workspace.write("closed", "")
            try workspace.expectOnce(try await run.end(), of: graph)
        }
    }

    /// From the end of an operation to the start of the next in its column, in the first layers.
    private static func handOvers(in ledger: Ledger, layers: Int) -> [Duration] {
        (1..<layers).flatMap { layer in
            (0..<4).compactMap { column in
                let end = ledger.entries.first {
                    $0.kind == .end && $0.operation == "o\(layer - 1)-\(column)"
                }
                let start = ledger.starts(of: "o\(layer)-\(column)").first
                guard let end, let start else { return nil }
                return start.time - end.time
            }
        }
    }

    @Test func `an alarm of three leases costs no attempt, and its end is noticed at once`()
        async throws
    {
        let broker = try #require(BrokerFixture.current)
        try await Workspace.run(broker: broker.url) { workspace in
            let (file, graph) = try workspace.writeGraph(
                layers: 6,
                width: 4,
                milliseconds: 200...600,
                gates: [2: "over"],
                isBraided: false
            )
            let workers = try workspace.startWorkers(2, slots: 2)
            let run = try workspace.startReportedRun(file)
            for column in 0..<4 { try await run.says("running o2-\(column)\n") }
            try await broker.setMemoryAlarm(true)
            // Whoever publishes is told, so each of them at its next beat.
            for worker in workers { try await worker.says("takes nothing more") }
            // What runs ends while nobody can be told.
            _ = try workspace.write("over", "")
            // It is the length of the alarm that is tried: three leases, and some time until the
            // next attempt to connect, which every lease brings.
            try await Task.sleep(for: .seconds(20))
            let before = try workspace.ledger().entries.count
            try await broker.setMemoryAlarm(false)
            for worker in workers { try await worker.says("the broker goes on") }
            let over = try Ledger.now()
            let ended = try await run.end()

            try workspace.expectOnce(ended, of: graph)
            let next = try #require(
                try workspace.ledger().entries.dropFirst(before).first { $0.kind == .start }
            )
            // Less than a beat: nothing waited for the next one. A busy machine takes its time for
            // every operation, also before the alarm.
            let usual = try Self.handOvers(in: workspace.ledger(), layers: 3).max() ?? .zero
            #expect(next.time - over < .seconds(1) + usual * 2)
        }
    }
}
