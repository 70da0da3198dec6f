import ClusterKit
import Foundation
import OperonCore
import OperonFaultKit
import OperonModel
import OperonPorts
import OperonRuntime
import OperonSystem
import OperonTesting
import Testing

struct TriggerTests {
    private static let graph = """
        name: report
        parameters:
          day: { type: string, default: none }
        operations:
          a: { run: "echo $day" }
        """

    private func trigger(
        _ name: String,
        _ on: String,
        _ more: String,
        _ graph: String
    ) -> [UInt8] {
        let text = String(decoding: JSONString.quoted(graph), as: UTF8.self)
        return Array("{\"name\":\"\(name)\",\"on\":\(on),\"graph\":{\"text\":\(text)}\(more)}".utf8)
    }

    private func add(
        _ client: any CoordinatorClient,
        _ name: String,
        _ on: String,
        _ more: String = "",
        graph: String = Self.graph,
        replace: Bool = false
    ) async throws -> TriggerView {
        try await client.addTrigger(
            trigger(name, on, more, graph),
            contentType: "application/json",
            replace: replace
        )
    }

    /// Returns once so many graphs have been submitted.
    private func waitForGraphs(_ cluster: TestCluster, _ count: Int) async throws {
        var left = count
        for try await event in try await cluster.client.events(after: 0, graph: nil) {
            guard case .event(let view) = event, view.kind.rawValue == "graphSubmitted" else {
                continue
            }
            left -= 1
            if left == 0 { return }
        }
    }

    @Test func `an event submits a graph with what fired it`() async throws {
        try await TestCluster.run { cluster in
            _ = try await add(
                cluster.client,
                "e",
                "{\"event\":{}}",
                ",\"set\":{\"day\":\"${event.data.day}\"},\"queue\":\"q\",\"priority\":\"high\""
            )
            let firing = try await cluster.client.fireTrigger(
                "e",
                data: Array("{\"day\":\"Mon\"}".utf8),
                idempotencyKey: "k"
            )
            #expect(firing.number == 1 && firing.isRepeated == nil)
            try await waitForGraphs(cluster, 1)

            let graph = try await cluster.client.graph("report")
            #expect(graph.submittedBy == "trigger/e")
            let operation = try await cluster.client.operation(
                OperationSelector(graph: "report", operation: "a")
            ).operation
            #expect(operation.queue == "q" && operation.priority == .high)
            let again = try await cluster.client.fireTrigger(
                "e",
                data: [],
                idempotencyKey: "k"
            )
            #expect(again.number == 1 && again.isRepeated == true && again.graph == graph.id)
            #expect(try await cluster.client.graphs(GraphQuery()).graphs.count == 1)
        }
    }

    @Test func `ticks submit graphs as time passes, and the end of each is noted`() async throws {
        let clock = ManualClock()
        var options = TestCluster.Options()
        options.clock = clock
        options.holdsAll = false
        try await TestCluster.run(options) { cluster in
            _ = try await add(cluster.client, "t", "{\"every\":\"60s\"}")
            #expect(try await cluster.client.nextTicks(ofTrigger: "t", count: 3).count == 3)
            clock.advance(by: .seconds(60))
            try await waitForGraphs(cluster, 1)
            let firing = try await cluster.client.firings(ofTrigger: "t", limit: 1)[0]
            #expect(firing.status == "submitted" || firing.status == "ended")
            let graphs = try await cluster.client.graphs(GraphQuery()).graphs
            #expect(graphs.map(\.submittedBy) == ["trigger/t"])
        }
    }

    @Test func `the same trigger again has no effect, and another of its name is refused`()
        async throws
    {
        try await TestCluster.run { cluster in
            let first = try await add(cluster.client, "e", "{\"event\":{}}")
            #expect(try await add(cluster.client, "e", "{\"event\":{}}") == first)
            await #expect(throws: ClientError.self) {
                _ = try await add(cluster.client, "e", "{\"every\":\"5s\"}")
            }
            let other = try await add(cluster.client, "e", "{\"every\":\"5s\"}", replace: true)
            #expect(other.source == "every")
            let removed = try await cluster.client.removeTrigger("e")
            #expect(removed.name == "e")
            #expect(try await cluster.client.triggers().isEmpty)
        }
    }

    @Test func `a webhook needs a valid signature`() async throws {
        try await TestCluster.run { cluster in
            let on = """
                {"webhook":{"signature":"github","secretEnvironment":"OPERON_WEBHOOK_TEST",\
                "perMinute":2}}
                """
            _ = try await add(cluster.client, "h", on)
            let body = Array("{\"ref\":\"main\"}".utf8)
            let key = Array(TestCluster.webhookSecret.utf8)
            let code = SHA256.authenticationCode(for: body, key: key)
                .map { String(format: "%02x", $0) }.joined()
            func deliver(
                _ signature: String,
                _ id: String,
                _ bytes: [UInt8],
                to name: String = "h"
            ) async throws -> FiringView {
                let delivery = WebhookDelivery(signature: signature, delivery: id, body: bytes)
                return try await cluster.client.deliver(delivery, toTrigger: name)
            }
            #expect(try await deliver("sha256=" + code, "1", body).number == 1)
            #expect(try await deliver("sha256=" + code, "1", body).isRepeated == true)
            for (signature, bytes, name) in [
                ("sha256=" + code, body + [32], "h"),
                ("sha256=" + code.dropLast() + "0g", body, "h"),
                (code, body, "h"), ("", body, "h"), ("sha256=", body, "h"),
                ("sha256=" + code, body, "other"),
            ] {
                do {
                    _ = try await deliver(signature, "2", bytes, to: name)
                    Issue.record("“\(signature)” was taken")
                } catch let error as ClientError {
                    #expect(error.code == .unauthorized)
                }
            }
            do {
                _ = try await deliver("sha256=" + code, "3", body)
                Issue.record("more than two requests in a minute were taken")
            } catch let error as ClientError {
                #expect(error.code == .unavailable)
            }
        }
    }

    /// Delivers a signed body, and returns the firing when nothing more becomes of it.
    private func deliver(
        _ body: String,
        to name: String,
        _ cluster: TestCluster
    ) async throws -> FiringView {
        let bytes = Array(body.utf8)
        let key = Array(TestCluster.webhookSecret.utf8)
        let code = SHA256.authenticationCode(for: bytes, key: key)
            .map { String(format: "%02x", $0) }.joined()
        let delivery = WebhookDelivery(signature: "sha256=" + code, delivery: "", body: bytes)
        let firing = try await cluster.client.deliver(delivery, toTrigger: name)
        while true {
            let last = try await cluster.client.firings(ofTrigger: name, limit: 1)[0]
            #expect(last.number == firing.number)
            if ["ended", "refused"].contains(last.status) { return last }
            // A firing that is refused gives no signal: only those who ask are told.
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    @Test(.timeLimit(.minutes(2)))
    func `a signed body is text to the shell, or its firing is refused`() async throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("operon-hook-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        // benign: the system clears its temporary directory.
        defer { try? FileManager.default.removeItem(atPath: folder) }
        func graph(_ reference: String) -> String {
            "name: g\nparameters: { branch: }\n"
                + "operations: { a: { run: 'printf \"%s;\" \(reference) >> \(folder)/out' } }\n"
        }
        try await TestCluster.run(.real(.inProcess, store: .memory)) { cluster in
            try await cluster.join("w", slots: 1)
            let on = """
                {"webhook":{"signature":"github","secretEnvironment":"OPERON_WEBHOOK_TEST"}}
                """
            let set = ",\"set\":{\"branch\":\"${event.data.ref}\"}"
            _ = try await add(cluster.client, "spliced", on, set, graph: graph("${branch}"))
            let quoted = graph("\"$branch\"")
            _ = try await add(cluster.client, "variable", on, set, graph: quoted)

            // As many as would suspend the trigger, if the trigger were to blame.
            for number in 1...Limits.triggerRefusedMax {
                let body = "{\"ref\":\"$(touch \(folder)/touched)\",\"number\":\(number)}"
                let firing = try await deliver(body, to: "spliced", cluster)
                #expect(firing.status == "refused")
                #expect(firing.reason?.contains("write \"$branch\", a variable") == true)
            }
            let why = try await cluster.client.explain(trigger: "spliced")
            #expect(why.reasons.contains { $0.text.contains("write \"$branch\"") }, "\(why)")
            let harmless = try await deliver("{\"ref\":\"main\"}", to: "spliced", cluster)
            #expect(harmless.status == "ended" && harmless.outcome == .succeeded)

            let body = "{\"ref\":\"$(touch \(folder)/touched)\"}"
            let text = try await deliver(body, to: "variable", cluster)
            #expect(text.status == "ended" && text.outcome == .succeeded)
            #expect(
                try String(contentsOfFile: folder + "/out", encoding: .utf8)
                    == "main;$(touch \(folder)/touched);"
            )
            #expect(!FileManager.default.fileExists(atPath: folder + "/touched"))
        }
    }

    @Test func `a Stripe signature counts for a time only`() async throws {
        let clock = ManualClock()
        var options = TestCluster.Options()
        options.clock = clock
        try await TestCluster.run(options) { cluster in
            let on = """
                {"webhook":{"signature":"stripe","secretEnvironment":"OPERON_WEBHOOK_TEST"}}
                """
            _ = try await add(cluster.client, "h", on)
            let now = clock.source.wall().nanosecondsSince1970 / 1_000_000_000
            let key = Array(TestCluster.webhookSecret.utf8)
            func deliver(at time: Int64) async throws -> FiringView {
                let signed = Array("\(time).{}".utf8)
                let code = SHA256.authenticationCode(for: signed, key: key)
                    .map { String(format: "%02x", $0) }.joined()
                let signature = "t=\(time),v1=" + String(repeating: "0", count: 64) + ",v1=" + code
                let delivery = WebhookDelivery(
                    signature: signature,
                    delivery: "",
                    body: Array("{}".utf8)
                )
                return try await cluster.client.deliver(delivery, toTrigger: "h")
            }
            #expect(try await deliver(at: now - 299).number == 1)
            #expect(try await deliver(at: now - 299).isRepeated == true)
            for time in [now - 301, now + 301, -1, Int64.max] {
                await #expect(throws: ClientError.self) { _ = try await deliver(at: time) }
            }
        }
    }

    @Test func `the end of a graph fires the triggers that wait for it`() async throws {
        try await TestCluster.run { cluster in
            try await cluster.join("worker", slots: 1)
            _ = try await add(
                cluster.client,
                "after",
                "{\"graph\":{\"name\":\"build\",\"outcomes\":[\"failed\"]}}"
            )
            var build = GraphDescription(name: "build")
            build.operations = [
                OperationDescription(name: "x", work: .registered(kind: "Play", input: .empty))
            ]
            let id = try await cluster.client.submit(Submission(graph: build)).id
            let operation = OperationID(graph: GraphID(rawValue: id), index: 0)
            _ = try await cluster.gates.open(operation, .failed(.exit(code: 1)))
            try await waitForGraphs(cluster, 2)
            #expect(try await cluster.client.graph("report").submittedBy == "trigger/after")
        }
    }

    @Test(arguments: [
        ("{\"every\":\"500ms\"}", "1s or more"), ("{\"cron\":\"61 * * * *\"}", "minute “61”"),
        ("{\"cron\":\"* * * * *\",\"timezone\":\"Europe/Berln\"}", "no time zone “Europe/Berln”"),
        ("{\"cron\":\"* * * * *\",\"timezone\":\"../../etc/passwd\"}", "no name of a time zone"),
        ("{\"graph\":\"report\"}", "it would fire for ever"),
        ("{\"event\":{},\"every\":\"5s\"}", "exactly one of"),
        (
            "{\"webhook\":{\"signature\":\"github\",\"secretEnvironment\":\"HOME\"}}",
            "OPERON_WEBHOOK_"
        ),
    ])
    func `a wrong trigger is refused with a reason`(on: String, why: String) async throws {
        try await TestCluster.run { cluster in
            do {
                _ = try await add(cluster.client, "t", on)
                Issue.record("\(on) was taken")
            } catch let error as ClientError {
                #expect(error.code == .invalid && error.message.contains(why), "\(error)")
            }
            #expect(try await cluster.client.triggers().isEmpty)
        }
    }

    /// What an event will have is not known, but the name is wrong for all of them.
    @Test(arguments: ["x", "${event.data.day}"])
    func `a value for a parameter that the graph does not have is refused`(
        value: String
    ) async throws {
        try await TestCluster.run { cluster in
            await #expect {
                _ = try await add(
                    cluster.client,
                    "t",
                    "\"event\"",
                    ",\"set\":{\"day\":\"\(value)\",\"dya\":\"\(value)\"}"
                )
            } throws: {
                let message = "set: the graph has no parameter “dya”; did you mean “day”?"
                return ($0 as? ClientError)?.message == message
            }
        }
    }
}
