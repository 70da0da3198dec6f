import ClusterKit
import Foundation
import Glibc
import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime
import Testing

/// Triggers on what occurs outside of the cluster.
@Suite(.timeLimit(.minutes(5))) struct TriggerSourceTests {
    private static let graph = """
        name: report
        operations:
          a: { operation: Play }
        """

    private func add(
        _ client: any CoordinatorClient,
        _ on: String,
        _ more: String = "",
        replace: Bool = false
    ) async throws -> TriggerView {
        let text = String(decoding: JSONString.quoted(Self.graph), as: UTF8.self)
        let body = "{\"name\":\"t\",\"on\":\(on),\"graph\":{\"text\":\(text)}\(more)}"
        return try await client.addTrigger(
            Array(body.utf8),
            contentType: "application/json",
            replace: replace
        )
    }

    /// Returns once the newest firing of the trigger has this number and is as wanted.
    private func firing(
        _ client: any CoordinatorClient,
        _ number: UInt64,
        _ isWanted: (FiringView) -> Bool = { _ in true }
    ) async throws -> FiringView {
        while true {
            let firings = try await client.firings(ofTrigger: "t", limit: 1)
            if let last = firings.first, last.number == number, isWanted(last) { return last }
            try Task.checkCancellation()
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    private func observing(_ client: any CoordinatorClient) async throws {
        while try await client.trigger("t").watch != "observing" {
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    private func folder(_ body: (URL) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("operon-in-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // benign: the system clears its temporary directory.
        defer { try? FileManager.default.removeItem(at: folder) }
        try await body(folder)
    }

    private func write(_ name: String, _ text: String, in folder: URL) throws {
        try Data(text.utf8).write(to: folder.appendingPathComponent(name))
    }

    @Test func `each file that is written submits one graph, also if the trigger is replaced`()
        async throws
    {
        try await folder { folder in
            try write("old.csv", "1", in: folder)
            try write("other.txt", "1", in: folder)
            try await TestCluster.run { cluster in
                let on = "{\"file\":{\"path\":\"\(folder.path)\",\"pattern\":\"*.csv\"}}"
                let view = try await add(cluster.client, on)
                #expect(view.on == "file \(folder.path)/*.csv (written)")
                #expect(view.merge == nil)
                _ = try await firing(cluster.client, 1)
                try write("new.csv", "2", in: folder)
                _ = try await firing(cluster.client, 2)

                // Another source: it looks at the folder anew, and knows both files.
                let other = on.replacing("}}", with: ",\"on\":[\"written\",\"deleted\"]}}")
                let replaced = try await add(cluster.client, other, replace: true)
                #expect(replaced.firings == 2)
                try await observing(cluster.client)
                try write("last.csv", "3", in: folder)
                _ = try await firing(cluster.client, 3) { $0.graph != nil }
                let graphs = try await cluster.client.graphs(GraphQuery()).graphs
                #expect(graphs.count == 3)
            }
        }
    }

    @Test func `what comes while a run has not ended waits, and each has its turn`() async throws {
        try await folder { folder in
            try await TestCluster.run { cluster in
                try await cluster.join("w", slots: 4)
                let on = "{\"file\":{\"path\":\"\(folder.path)\",\"pattern\":\"*\"}}"
                _ = try await add(cluster.client, on, ",\"overlap\":\"queue\"")
                try await observing(cluster.client)
                for name in ["a", "b", "c", "d"] { try write(name, name, in: folder) }
                for number in 0..<4 as Range<UInt32> {
                    let id = OperationID(graph: GraphID(rawValue: number), index: 0)
                    _ = try await cluster.gates.open(id, .returned(.empty))
                }
                _ = try await firing(cluster.client, 4) { $0.status == "ended" }
                let firings = try await cluster.client.firings(ofTrigger: "t", limit: 10)
                #expect(firings.map(\.status) == ["ended", "ended", "ended", "ended"])
                #expect(firings.allSatisfy { $0.count == 1 })
            }
        }
    }

    @Test func `the lines that come while a trigger is suspended each fire it later`() async throws
    {
        try await folder { folder in
            let path = folder.appendingPathComponent("lines").path
            #expect(unsafe mkfifo(path, 0o600) == 0)
            try await TestCluster.run { cluster in
                _ = try await add(cluster.client, "{\"pipe\":\"\(path)\"}")
                try await observing(cluster.client)
                _ = try await cluster.client.suspendTrigger("t", SuspendRequest())
                let writer = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
                try writer.write(contentsOf: Data("one\ntwo\nthree\n".utf8))
                let waiting = try await firing(cluster.client, 1)
                #expect(waiting.status == "waiting" && waiting.count == 1)
                _ = try await cluster.client.resumeTrigger("t")
                _ = try await firing(cluster.client, 3) { $0.graph != nil }
                #expect(try await cluster.client.graphs(GraphQuery()).graphs.count == 3)
                try writer.close()
            }
        }
    }

    @Test func `with merge, one firing collects what occurs while the trigger is suspended`()
        async throws
    {
        try await folder { folder in
            try await TestCluster.run { cluster in
                let on = "{\"file\":{\"path\":\"\(folder.path)\",\"pattern\":\"*\"}}"
                _ = try await add(cluster.client, on, ",\"merge\":\"collect\"")
                try await observing(cluster.client)
                _ = try await cluster.client.suspendTrigger("t", SuspendRequest())
                for name in ["a", "b", "c"] { try write(name, name, in: folder) }
                _ = try await firing(cluster.client, 3)
                _ = try await cluster.client.resumeTrigger("t")
                let first = try #require(
                    try await cluster.client.firings(ofTrigger: "t", limit: 10).last
                )
                #expect(first.count == 3 && first.number == 1)
            }
        }
    }

    @Test func `a program that ends is a process that fires once`() async throws {
        let program = Process()
        program.executableURL = URL(fileURLWithPath: "/bin/sleep")
        program.arguments = ["600"]
        try program.run()
        try await TestCluster.run { cluster in
            let view = try await add(
                cluster.client,
                "{\"process\":\(program.processIdentifier)}"
            )
            #expect(view.on == "process \(program.processIdentifier)")
            try await observing(cluster.client)
            kill(program.processIdentifier, SIGKILL)
            _ = try await firing(cluster.client, 1)
            while try await cluster.client.trigger("t").watch != "ended" { await Task.yield() }
            let reasons = try await cluster.client.explain(trigger: "t").reasons.map(\.code)
            #expect(reasons.contains("sourceEnded"))
            #expect(try await cluster.client.trigger("t").firings == 1)
        }
    }

    @Test func `a folder that is missing is explained, and observed when it is there`()
        async throws
    {
        try await folder { folder in
            let path = folder.appendingPathComponent("later").path
            try await TestCluster.run { cluster in
                _ = try await add(cluster.client, "{\"file\":\"\(path)/a\"}")
                var explained: TriggerExplanation
                repeat {
                    explained = try await cluster.client.explain(trigger: "t")
                } while explained.trigger.watch != "waiting"
                #expect(explained.reasons.first?.code == "notObserved")
                #expect(explained.reasons.first?.text.contains(path) == true)
                try FileManager.default.createDirectory(
                    atPath: path,
                    withIntermediateDirectories: true
                )
                try Data("x".utf8).write(to: URL(fileURLWithPath: path + "/a"))
                _ = try await firing(cluster.client, 1)
            }
        }
    }

    @Test func `what the old source holds does not fire the trigger that replaced it`()
        async throws
    {
        try await folder { folder in
            try await TestCluster.run { cluster in
                let on = "{\"file\":{\"path\":\"\(folder.path)\",\"pattern\":\"*\"}}"
                _ = try await add(cluster.client, on)
                try await observing(cluster.client)
                _ = try await cluster.client.suspendTrigger("t", SuspendRequest())
                for name in ["a", "b"] { try write(name, name, in: folder) }
                _ = try await firing(cluster.client, 1)
                _ = try await add(cluster.client, "{\"event\":{}}", replace: true)
                while try await cluster.client.trigger("t").watch != nil { await Task.yield() }
                let fired = try await cluster.client.fireTrigger("t", data: [], idempotencyKey: "k")
                #expect(fired.number == 2)
            }
        }
    }

    @Test func `a watch that ended begins again when the end of its trigger is moved`()
        async throws
    {
        try await folder { folder in
            try await TestCluster.run { cluster in
                let on = "{\"file\":{\"path\":\"\(folder.path)\",\"pattern\":\"*\"}}"
                _ = try await add(cluster.client, on, ",\"until\":\"2020-01-01T00:00:00Z\"")
                try write("a", "a", in: folder)
                #expect(try await cluster.client.trigger("t").watch == nil)
                _ = try await add(
                    cluster.client,
                    on,
                    ",\"until\":\"2120-01-01T00:00:00Z\"",
                    replace: true
                )
                _ = try await firing(cluster.client, 1)
            }
        }
    }

    @Test func `a limit ends the watching`() async throws {
        try await folder { folder in
            try await TestCluster.run { cluster in
                let on = "{\"file\":{\"path\":\"\(folder.path)\",\"pattern\":\"*\"}}"
                _ = try await add(cluster.client, on, ",\"limit\":2")
                for name in ["a", "b", "c"] { try write(name, name, in: folder) }
                _ = try await firing(cluster.client, 2)
                while try await cluster.client.trigger("t").watch != nil { await Task.yield() }
                #expect(try await cluster.client.trigger("t").firings == 2)
            }
        }
    }

    @Test(arguments: [
        ("{\"process\":2147483647}", "there is no process 2147483647"),
        ("{\"process\":{\"identity\":\"x\"}}", "is not the identity of a process"),
        ("{\"message\":\"orders\"}", "this coordinator has no broker"),
    ])
    func `what cannot be watched is refused`(on: String, why: String) async throws {
        try await TestCluster.run { cluster in
            do {
                _ = try await add(cluster.client, on)
                Issue.record("\(on) was taken")
            } catch let error as ClientError {
                #expect(error.code == .invalid && error.message.contains(why), "\(error)")
            }
        }
    }

    @Test func `a coordinator watches its machine only if it is told to`() async throws {
        var options = TestCluster.Options()
        options.watchesMachine = false
        try await TestCluster.run(options) { cluster in
            do {
                _ = try await add(cluster.client, "{\"file\":\"/etc/passwd\"}")
                Issue.record("it watches")
            } catch let error as ClientError {
                #expect(error.message.contains("--watch-machine"))
            }
        }
    }
}
