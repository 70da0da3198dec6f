import Foundation
import OperonTestKit
import Testing

/// Workers and the broker die in the middle of a run.
@Suite(.serialized) struct FaultTests {
    /// Layers of operations, each of which notes its start and its end in a file. One of a layer
    /// depends on two of the layer before.
    private struct Graph {
        let text: String
        let dependencies: [String: [String]]

        init(layers: Int, width: Int, milliseconds: ClosedRange<Int>, ledger: String) {
            var text = "defaults: { inheritEnvironment: [PATH, TMPDIR] }\noperations:\n"
            var dependencies: [String: [String]] = [:]
            for layer in 0..<layers {
                for column in 0..<width {
                    let name = "o\(layer)-\(column)"
                    let spread = milliseconds.upperBound - milliseconds.lowerBound
                    let length = milliseconds.lowerBound + (layer * 7 + column * 3) % 10 * spread / 9
                    let before =
                        layer == 0
                        ? [] : ["o\(layer - 1)-\(column)", "o\(layer - 1)-\((column + 1) % width)"]
                    dependencies[name] = before
                    // One short line per echo, appended in one write.
                    text += """
                          \(name):
                            run: |
                              echo "start $OPERON_OPERATION $OPERON_ATTEMPT" >> \(ledger)
                              sleep \(Double(length) / 1_000)
                              echo "end $OPERON_OPERATION $OPERON_ATTEMPT" >> \(ledger)
                            dependencies: [\(before.joined(separator: ", "))]

                        """
                }
            }
            self.text = text
            self.dependencies = dependencies
        }
    }

    /// What ran is what the report tells: no attempt of one operation ran twice, and none that the
    /// report does not know.
    private func expectLedger(_ scene: Scene, _ report: Report) {
        var starts: [String: Int] = [:]
        for line in scene.lines(of: "ledger") where line.hasPrefix("start ") {
            starts[String(line.dropFirst(6)), default: 0] += 1
        }
        #expect(starts.filter { $0.value > 1 } == [:], "an attempt ran twice")
        let told = Set(report.operations.flatMap { operation in
            operation.attempts.map { "\(operation.name) \($0.number)" }
        })
        #expect(Set(starts.keys).subtracting(told) == [], "the report does not tell all that ran")
        let ended = Set(scene.lines(of: "ledger").filter { $0.hasPrefix("end ") })
        let unfinished = report.operations.filter { operation in
            !ended.contains("end \(operation.name) \(operation.attempts.last?.number ?? 0)")
        }
        #expect(unfinished.map(\.name) == [], "what succeeded ran to its end")
    }

    @Test func `a worker that is killed loses its attempts, and others run them again`()
        async throws
    {
        try await Scene.play { scene in
            let graph = Graph(
                layers: 12,
                width: 5,
                milliseconds: 100...300,
                ledger: scene.path("ledger")
            )
            let file = try scene.write("graph.yaml", graph.text)
            let workers = try scene.startWorkers(3, slots: 2)
            let run = try scene.startRun(file, on: .broker, ["--output", "json"])
            // The second worker runs something now, and it lasts 100 ms at least.
            try await run.says("running o3-")
            let victim = try await Self.busyWorker(workers, scene)
            victim.signal(SIGKILL)
            let ended = try await run.end()

            let report = try ended.report()
            #expect(ended.end == .exit(0))
            report.expectSuccess()
            report.expectOrder(graph.dependencies)
            let lost = report.operations.flatMap { $0.attempts.filter { $0.ended == "lost" } }
            #expect(!lost.isEmpty)
            #expect(Set(lost.map(\.worker)).count == 1, "one worker was lost")
            #expect(ended.errors.contains("is gone."))
            expectLedger(scene, report)
        }
    }

    /// A worker that has a child process that runs an operation.
    private static func busyWorker(_ workers: [Program], _ scene: Scene) async throws -> Program {
        let deadline = ContinuousClock.now + .seconds(20)
        while ContinuousClock.now < deadline {
            for worker in workers where hasOperation(worker) { return worker }
            // Processes of another process give no signal.
            try await Task.sleep(for: .milliseconds(1))
        }
        throw CommandFailure("no worker runs anything")
    }

    private static func hasOperation(_ worker: Program) -> Bool {
        let path = "/proc/\(worker.process)/task"
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        return threads.contains { thread in
            let children = try? String(
                contentsOfFile: "\(path)/\(thread)/children",
                encoding: .utf8
            )
            return (children ?? "").split(separator: " ").contains { child in
                let line = try? String(contentsOfFile: "/proc/\(child)/cmdline", encoding: .utf8)
                return line?.contains("OPERON_OPERATION") == true
            }
        }
    }

    @Test func `a broker that is killed and comes back costs nothing`() async throws {
        try await BrokerFixture.withBroker { broker in
            try await Scene.play { scene in
                let graph = Graph(
                    layers: 10,
                    width: 6,
                    milliseconds: 100...200,
                    ledger: scene.path("ledger")
                )
                let file = try scene.write("graph.yaml", graph.text)
                try scene.startWorkers(3, slots: 2, broker: broker.url)
                let options = ["--output", "json"]
                let run = try scene.startRun(file, on: .broker, broker: broker.url, options)
                try await run.says("running o2-")
                try await broker.kill9()
                #expect(!run.hasEnded)
                try await broker.restart()
                let ended = try await run.end()

                let report = try ended.report()
                #expect(ended.end == .exit(0))
                report.expectSuccess()
                report.expectOrder(graph.dependencies)
                expectLedger(scene, report)
            }
        }
    }

    @Test func `a frozen broker that thaws costs nothing`() async throws {
        try await BrokerFixture.withBroker { broker in
            try await Scene.play { scene in
                let graph = Graph(
                    layers: 6,
                    width: 4,
                    milliseconds: 100...200,
                    ledger: scene.path("ledger")
                )
                let file = try scene.write("graph.yaml", graph.text)
                try scene.startWorkers(2, slots: 2, broker: broker.url)
                let options = ["--output", "json"]
                let run = try scene.startRun(file, on: .broker, broker: broker.url, options)
                try await run.says("running o1-")
                try await broker.freeze()
                // Longer than a beat, shorter than a lease: nobody may be given up for it.
                try await Task.sleep(for: .seconds(3))
                try await broker.thaw()
                let ended = try await run.end()

                let report = try ended.report()
                #expect(ended.end == .exit(0))
                report.expectSuccess(attempts: 1)
                report.expectOrder(graph.dependencies)
                expectLedger(scene, report)
            }
        }
    }
}
