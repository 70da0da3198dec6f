import Foundation
import OperonModel
import OperonTesting
import Testing

/// What `operon explain` says of a real coordinator, for every reason that it may give.
@Suite(.timeLimit(.minutes(5))) struct ExplainGoldenTests {
    /// It stands, so that no lease ends while a worker is kept from hearing anything.
    private let clock = ManualClock()

    @Test func `every reason is told as the golden file has it`() async throws {
        var golden = Explanations()
        try await withoutWorkers(&golden)
        try await withBusyWorkers(&golden)
        try await whileSuspended(&golden)
        try await withinBounds(&golden)
        try await shortOfResources(&golden)
        try await onTheWay(&golden)
        try await withLargeInputs(&golden)
        try await whileOthersRun(&golden)
        try await withoutAnybody(&golden)
        try await afterwards(&golden)
        try golden.file.check()
        // One that no example tells would be found missing by nobody.
        let codes = Set(golden.codes)
        #expect(codes.symmetricDifference(ReasonView.codes) == [])
    }

    private func withoutWorkers(_ golden: inout Explanations) async throws {
        try await LiveServer.run(clock: clock) { server in
            try await server.submit("alone", "operations: { a: { operation: Play } }")
            try await golden.explain("there is no worker", "alone/a", server)
            try await server.join("clerk", slots: 1, plays: false)
            try await golden.explain("no worker knows the kind", "alone/a", server)
            try await server.join("elsewhere", slots: 1, queues: ["other"])
            try await golden.explain("no worker serves the queue", "alone/a", server)

            let leaver = try await server.join("leaver", slots: 1, queues: ["brief"])
            await server.gate("last")
            try await server.submit(
                "brief",
                """
                operations:
                  last: { operation: Play, queue: brief, priority: high }
                  next: { operation: Play, queue: brief }
                """
            )
            try await server.wait(for: "brief/last", .executing)
            try await server.drain(leaver)
            try await golden.explain("the worker is leaving", "brief/next", server)
        }
    }

    private func withBusyWorkers(_ golden: inout Explanations) async throws {
        try await LiveServer.run(clock: clock) { server in
            try await server.join("worker", slots: 1)
            await server.gate("holder")
            try await server.submit(
                "flaky",
                """
                operations:
                  bad: { operation: Play, retry: { limit: 1, delay: 1h } }
                  early: { operation: Play }
                """
            )
            try await server.waitForRetry("flaky", "bad")
            try await golden.explain("it is tried again later", "flaky/bad", server)
            try await server.wait(for: "flaky/early", reason: "notYet")
            try await golden.explain("it came too early", "flaky/early", server)
            try await server.submit(
                "night",
                """
                queues:
                  narrow: { maxConcurrentOperationCount: 1 }
                  closed: { maxConcurrentOperationCount: 0 }
                operations:
                  holder: { operation: Play, queue: narrow, exclusive: [db], priority: high }
                  busy: { operation: Play }
                  second: { operation: Play, queue: narrow }
                  never: { operation: Play, queue: closed }
                  writer: { operation: Play, exclusive: [db] }
                  later: { operation: Play, notBefore: 2030-01-01T00:00:00Z }
                  three:
                    { operation: Play, queue: narrow, exclusive: [db],
                      notBefore: 2030-01-01T00:00:00Z }
                  after: { operation: Play, dependencies: [holder] }
                  middle: { operation: Play, dependencies: [second] }
                  far: { operation: Play, dependencies: [middle] }
                  many: { operation: Play, dependencies: [d0, d1, d2, d3, d4, d5, d6, d7, d8, d9] }

                """
                    + (0..<10).map { "  d\($0): { operation: Play, dependencies: [holder] }\n" }
                    .joined()
            )
            try await server.wait(for: "night/holder", .executing)
            let examples = [
                ("a slot is free for nobody", "busy"), ("the queue is full", "second"),
                ("the limit is 0", "never"), ("the key is held", "writer"),
                ("its time has not come", "later"),
                ("three at once", "three"), ("it waits for what runs", "after"),
                ("it waits for what waits for what waits", "far"),
                ("it waits for many", "many"), ("it runs", "holder"),
            ]
            for (title, name) in examples {
                try await golden.explain(title, "night/\(name)", server)
            }
        }
    }

    private func whileSuspended(_ golden: inout Explanations) async throws {
        try await LiveServer.run(clock: clock) { server in
            try await server.join("worker", slots: 1)
            await server.gate("first")
            try await server.submit(
                "held",
                """
                operations:
                  first: { operation: Play, queue: q }
                  a: { operation: Play, queue: q, dependencies: [first] }
                """
            )
            try await server.wait(for: "held/first", .executing)
            try await server.run("suspend held/a")
            await server.open("first")
            try await server.wait(for: "held/a", .ready)
            try await golden.explain("it is suspended", "held/a", server)
            try await server.run("resume held/a --output quiet")
            try await server.wait(for: "held/a", .finished)

            try await server.run("suspend --queue q --reason backup --until 2030-01-01T00:00:00Z")
            try await server.submit("still", "operations: { a: { operation: Play, queue: q } }")
            try await golden.explain("its queue is suspended", "still/a", server)
            try await server.run("suspend still --reason wait")
            try await server.run("resume --queue q")
            try await golden.explain("its graph is suspended", "still/a", server)
            try await server.run("suspend still/a --reason mine")
            try await server.run("suspend --queue q")
            try await golden.explain("it, its graph and its queue are suspended", "still/a", server)
        }
    }

    /// Between coordinator and worker.
    private func onTheWay(_ golden: inout Explanations) async throws {
        try await LiveServer.run(clock: clock) { server in
            let worker = try await server.join("worker", slots: 3)
            worker.hold()
            try await server.submit("sent", "operations: { a: { operation: Play } }")
            try await golden.explain("it is on its way", "sent/a", server)
            try await server.run("cancel sent/a --reason typo")
            try await golden.explain("it was cancelled on its way", "sent/a", server)
            try await server.submit("gone", "operations: { a: { operation: Play } }")
            try await server.wait(for: "gone/a", .dispatched)
            try await server.run("cancel gone")
            try await golden.explain("its graph was cancelled", "gone/a", server)
            try await server.cut()
            try await server.submit("cut", "operations: { a: { operation: Play } }")
            try await golden.explain("the broker is down", "cut/a", server)
            await server.shutDown()
            try await golden.explain("the coordinator is leaving", "cut/a", server)
        }
    }

    private func withLargeInputs(_ golden: inout Explanations) async throws {
        try await LiveServer.run(clock: clock, dispatchedBytes: 10_000) { server in
            try await server.join("worker", slots: 2)
            await server.gate("large")
            let text = String(repeating: "x", count: 7_000)
            try await server.submit(
                "bulk",
                """
                operations:
                  large: { operation: Play, priority: high, input: \(text) }
                  larger: { operation: Play, input: \(text) }
                  small: { operation: Play, priority: low }
                """
            )
            try await server.wait(for: "bulk/large", .executing)
            try await golden.explain("there is no room for it", "bulk/larger", server)
            try await golden.explain("there is no room for one before it", "bulk/small", server)
        }
    }

    /// It runs, and waits.
    private func whileOthersRun(_ golden: inout Explanations) async throws {
        try await LiveServer.run(clock: clock) { server in
            try await server.join("worker", slots: 1, queues: ["default"])
            try await server.join("helper", slots: 1, queues: ["far"])
            await server.gate("part", "next")
            try await server.submit(
                "whole",
                """
                operations:
                  for-part: { operation: Play, priority: high }
                  part: { operation: Play, queue: far }
                  next: { operation: Play }
                """
            )
            try await server.wait(for: "whole/for-part", reason: "awaits")
            // It has taken the slot.
            try await server.wait(for: "whole/next", .executing)
            try await golden.explain("it waits for others as it runs", "whole/for-part", server)
            await server.open("part")
            try await server.wait(for: "whole/for-part", reason: "awaitsSlot")
            try await golden.explain("it may go on, and has no slot", "whole/for-part", server)
        }
    }

    private func withoutAnybody(_ golden: inout Explanations) async throws {
        try await LiveServer.run(clock: clock) { server in
            try await server.submit(
                "release",
                """
                operations:
                  approve: { external: true }
                  deploy: { operation: Play, dependencies: [approve] }
                """
            )
            try await server.wait(for: "release/approve", .executing)
            try await golden.explain("somebody is to complete it", "release/approve", server)
            try await golden.explain("it waits for such a one", "release/deploy", server)
        }
    }

    private func withinBounds(_ golden: inout Explanations) async throws {
        try await LiveServer.run(clock: clock) { server in
            try await server.join("worker", slots: 4)
            await server.gate("r[1]")
            try await server.submit(
                "sweep",
                """
                queues: { slow: { rate: 1/h } }
                keys: { api: { limit: 9, rate: 2/d } }
                operations:
                  r: { operation: Play, forEach: 1..2, inFlight: 1 }
                  s: { operation: Play, queue: slow, forEach: 1..2 }
                  k: { operation: Play, exclusive: api, forEach: 1..2 }
                """
            )
            try await server.wait(for: "sweep/r[1]", .executing)
            try await server.wait(for: "sweep/s[1]", .finished)
            try await server.wait(for: "sweep/k[1]", .finished)
            try await golden.explain("the group is full", "sweep/r[2]", server)
            try await golden.explain("the queue has a rate", "sweep/s[2]", server)
            try await golden.explain("the key has a rate", "sweep/k[2]", server)
        }
    }

    private func shortOfResources(_ golden: inout Explanations) async throws {
        try await LiveServer.run(clock: clock) { server in
            try await server.join("big", slots: 4, offers: [.gpus(2), .memory(bytes: 8 << 30)])
            try await server.join("small", slots: 4, offers: [.memory(bytes: 4 << 30)])
            await server.gate("trains")
            try await server.submit(
                "models",
                """
                operations:
                  trains: { operation: Play, resources: { gpus: 1 }, priority: high }
                  both: { operation: Play, resources: { gpus: 2 } }
                  quick:
                    { operation: Play, resources: { gpus: 1 }, priority: low,
                      expectedDuration: 1h }
                  huge:
                    { operation: Play, resources: { gpus: 4, memory: 4GiB },
                      workers: { region: eu } }
                """
            )
            try await server.wait(for: "models/trains", .executing)
            try await golden.explain("others have what it needs", "models/both", server)
            try await golden.explain("its worker is kept for another", "models/quick", server)
            try await golden.explain("no worker offers that much", "models/huge", server)
        }
    }

    private func afterwards(_ golden: inout Explanations) async throws {
        try await LiveServer.run(clock: clock) { server in
            try await server.join("worker", slots: 1)
            try await server.submit(
                "rain",
                "operations:\n  bad: { operation: Play }\n"
                    + (1..<13).map { number in
                        let before = number == 1 ? "bad" : "o\(number - 1)"
                        return "  o\(number): { operation: Play, dependencies: [\(before)] }\n"
                    }.joined()
            )
            try await server.wait(for: "rain/o12", .finished)
            try await golden.explain("it failed", "rain/bad", server)
            try await golden.explain("it was skipped", "rain/o2", server)
            try await golden.explain(
                "it was skipped at the end of a long chain",
                "rain/o12",
                server
            )
            try await server.submit(
                "calm",
                """
                operations:
                  build: { operation: Play }
                  alarm: { operation: Play, dependencies: { build: failed } }
                """
            )
            try await server.wait(for: "calm/alarm", .finished)
            try await golden.explain("nothing failed that it handles", "calm/alarm", server)
        }
    }
}

/// The examples of the golden file, and the codes of the reasons in them.
private struct Explanations {
    private(set) var file = Golden("explain.txt")
    private(set) var codes: [String] = []

    /// The text, and the reasons of the JSON.
    mutating func explain(
        _ title: String,
        _ operation: String,
        _ server: LiveServer
    ) async throws {
        let shown = try await server.run("explain \(operation)")
        let json = try await server.run("explain \(operation) --output json")
        let explanation = try JSONDecoder().decode(Explanation.self, from: Data(json.utf8))
        codes += explanation.reasons.map(\.code)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let reasons = try explanation.reasons.map {
            String(decoding: try encoder.encode($0), as: UTF8.self) + "\n"
        }
        file.add("# \(title)\n$ operon explain \(operation)\n")
        file.add((shown + reasons.joined()).withoutTimes + "\n")
    }
}
