import ClusterKit
import Foundation
import Glibc
import OperonCore
import OperonFaultKit
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTesting
import Testing

/// Triggers whose sources workers watch.
@Suite(.timeLimit(.minutes(5))) struct WorkerWatchTests {
    private static let graph = """
        name: report
        operations:
          a: { operation: nothing }
        """

    /// A trigger “t” on a source that is watched by workers of a region.
    private func add(
        _ client: any CoordinatorClient,
        _ source: String,
        region: String = "eu",
        _ more: String = "",
        replace: Bool = false
    ) async throws -> TriggerView {
        let text = String(decoding: JSONString.quoted(Self.graph), as: UTF8.self)
        let on = "{\(source),\"workers\":{\"region\":\"\(region)\"}}"
        let body = "{\"name\":\"t\",\"on\":\(on),\"graph\":{\"text\":\(text)}\(more)}"
        return try await client.addTrigger(
            Array(body.utf8),
            contentType: "application/json",
            replace: replace
        )
    }

    private func join(_ cluster: TestCluster, _ name: String, region: String = "eu") async throws {
        var offer = WorkerOffer()
        offer.watches = true
        offer.set(WorkerLabel("region", region))
        offer.set(WorkerLabel("host", "node"))
        try await cluster.join(name, slots: 1, offer: offer)
    }

    private func options(_ place: Place) -> TestCluster.Options {
        var options = TestCluster.Options.real(place, store: .memory)
        // The coordinator itself watches nothing.
        options.watchesMachine = false
        return options
    }

    /// Returns once the trigger is as wanted. Nobody is told how far a watch is but those who ask.
    private func wait(
        _ cluster: TestCluster,
        _ isWanted: (TriggerView) -> Bool
    ) async throws {
        while !isWanted(try await cluster.client.trigger("t")) {
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    /// Returns once this many firings have graphs that have ended.
    private func ended(_ cluster: TestCluster, _ count: Int) async throws -> [FiringView] {
        while true {
            let firings = try await cluster.client.firings(ofTrigger: "t", limit: 1_000)
            if firings.count(where: { $0.status == "ended" }) == count { return firings }
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    private func folder(_ body: (String) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("operon-at-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // benign: the system clears its temporary directory.
        defer { try? FileManager.default.removeItem(at: folder) }
        try await body(folder.path)
    }

    private func write(_ path: String) throws {
        try Data("1".utf8).write(to: URL(fileURLWithPath: path))
    }

    @Test(arguments: Place.allCases)
    func `each file on a worker's machine submits one graph, whichever worker watches`(
        place: Place
    ) async throws {
        try await folder { folder in
            try write(folder + "/old")
            try await TestCluster.run(options(place)) { cluster in
                try await join(cluster, "other", region: "us")
                try await join(cluster, "first")
                let source = "\"file\":{\"path\":\"\(folder)\",\"pattern\":\"*\"}"
                let view = try await add(cluster.client, source)
                #expect(view.on == "file \(folder)/* (written) at a worker with region=eu")
                try await wait(cluster) { $0.watch == "observing" }
                #expect(try await cluster.client.trigger("t").watchedBy == "first")
                try write(folder + "/new")
                _ = try await ended(cluster, 2)

                // It watches nothing more once it drains, and the next one knows what has fired.
                try await join(cluster, "second")
                _ = try await cluster.client.drain(worker: "first")
                try await wait(cluster) { $0.watchedBy == "second" && $0.watch == "observing" }
                try write(folder + "/last")
                let firings = try await ended(cluster, 3)
                #expect(firings.count == 3)
                #expect(try await cluster.client.graphs(GraphQuery()).graphs.count == 3)
            }
        }
    }

    @Test func `without a worker that may watch, it says so and begins when one comes`()
        async throws
    {
        try await folder { folder in
            try await TestCluster.run(options(.inProcess)) { cluster in
                // It meets the requirement, and watches nothing.
                try await cluster.join(
                    "deaf",
                    slots: 1,
                    offer: WorkerOffer(labels: [WorkerLabel("region", "eu")])
                )
                _ = try await add(cluster.client, "\"file\":\"\(folder)/in\"")
                try await wait(cluster) { $0.watch == "waiting" }
                let reasons = try await cluster.client.explain(trigger: "t").reasons
                #expect(reasons.first?.code == "notObserved")
                #expect(
                    reasons.first?.text == "It cannot be observed at present: there is no worker "
                        + "with region=eu that watches sources."
                )
                try await join(cluster, "w")
                try write(folder + "/in")
                _ = try await ended(cluster, 1)
            }
        }
    }

    @Test func `lines wait in the pipe of the worker's machine while a run has not ended`()
        async throws
    {
        try await folder { folder in
            let path = folder + "/lines"
            #expect(unsafe mkfifo(path, 0o600) == 0)
            try await TestCluster.run(options(.inProcess)) { cluster in
                try await join(cluster, "w")
                _ = try await add(cluster.client, "\"pipe\":\"\(path)\"", ",\"overlap\":\"queue\"")
                try await wait(cluster) { $0.watch == "observing" }
                _ = try await cluster.client.suspendTrigger("t", SuspendRequest())
                let writer = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
                let lines = (1...50).map { "line \($0)\n" }.joined()
                try writer.write(contentsOf: Data(lines.utf8))
                while try await cluster.client.firings(ofTrigger: "t", limit: 9).isEmpty {
                    try await Task.sleep(for: .milliseconds(5))
                }
                let waiting = try await cluster.client.firings(ofTrigger: "t", limit: 9)
                #expect(waiting.map(\.status) == ["waiting"] && waiting.map(\.count) == [1])
                _ = try await cluster.client.resumeTrigger("t")
                let firings = try await ended(cluster, 50)
                #expect(firings.allSatisfy { $0.count == 1 })
                // Not UTF-8: it is refused, and the next one comes all the same.
                try writer.write(contentsOf: Data([0xFF, 0x0A, 0x61, 0x0A]))
                _ = try await ended(cluster, 51)
                let reasons = try await cluster.client.explain(trigger: "t").reasons
                #expect(reasons.contains { $0.code == "occurrenceRefused" })
                try writer.close()
            }
        }
    }

    @Test func `the number of a process is that of the worker's machine, from the addition on`()
        async throws
    {
        try await TestCluster.run(options(.inProcess)) { cluster in
            try await expectRefusal(cluster, "\"process\":1", .unavailable)
            try await join(cluster, "w")
            // Its workers state what they hold once they are welcome.
            try await add(cluster, "\"pipe\":\"/nowhere\"")
            _ = try await cluster.client.removeTrigger("t")
            let child = Process()
            child.executableURL = URL(fileURLWithPath: "/bin/sleep")
            child.arguments = ["600"]
            try child.run()
            defer { kill(child.processIdentifier, SIGKILL) }
            let number = child.processIdentifier
            let view = try await add(cluster.client, "\"process\":\(number)")
            #expect(view.on == "process \(number) at a worker with host=node, region=eu")
            // The same again is the same trigger.
            _ = try await add(cluster.client, "\"process\":\(number)")
            try await wait(cluster) { $0.watch == "observing" }
            // It inherits the signals that this process blocks, SIGTERM among them.
            kill(number, SIGKILL)
            let firing = try #require(try await ended(cluster, 1).first)
            #expect(firing.identity.hasPrefix("exit:"))
            try await wait(cluster) { $0.watch == "ended" && $0.problem == nil }
            try await expectRefusal(cluster, "\"process\":\(Int32.max)", .invalid)
        }
    }

    private func expectRefusal(
        _ cluster: TestCluster,
        _ source: String,
        _ code: ClientError.Code
    ) async throws {
        do {
            _ = try await add(cluster.client, source, replace: true)
            Issue.record("\(source) was added")
        } catch let error as ClientError {
            #expect(error.code == code, "\(error.message)")
        }
    }

    /// Adds a trigger, and returns when a worker watches for it.
    private func add(_ cluster: TestCluster, _ source: String) async throws {
        _ = try await add(cluster.client, source)
        try await wait(cluster) { $0.watchedBy != nil }
    }

    /// Whether somebody reads from the pipe.
    private func isRead(_ path: String) -> Bool {
        let number = unsafe open(path, O_WRONLY | O_NONBLOCK)
        guard number >= 0 else { return false }
        close(number)
        return true
    }

    @Test(arguments: Place.allCases)
    func `what is removed, replaced or left by its worker is watched no more`(
        place: Place
    ) async throws {
        try await folder { folder in
            let paths = ["a", "b"].map { folder + "/" + $0 }
            for path in paths { #expect(unsafe mkfifo(path, 0o600) == 0) }
            try await TestCluster.run(options(place)) { cluster in
                try await join(cluster, "w")
                try await add(cluster, "\"pipe\":\"\(paths[0])\"")
                try await wait(cluster) { $0.watch == "observing" }
                #expect(isRead(paths[0]))
                _ = try await add(cluster.client, "\"pipe\":\"\(paths[1])\"", replace: true)
                while isRead(paths[0]) || !isRead(paths[1]) {
                    try await Task.sleep(for: .milliseconds(5))
                }
                _ = try await cluster.client.drain(worker: "w")
                try await wait(cluster) { $0.watchedBy == nil && $0.watch == "waiting" }
                while isRead(paths[1]) { try await Task.sleep(for: .milliseconds(5)) }
                try await join(cluster, "next")
                try await wait(cluster) { $0.watch == "observing" }
                _ = try await cluster.client.removeTrigger("t")
                while isRead(paths[1]) { try await Task.sleep(for: .milliseconds(5)) }
            }
        }
    }
}
