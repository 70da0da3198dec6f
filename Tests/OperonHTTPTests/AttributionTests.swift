import OperonHTTP
import OperonModel
import OperonPorts
import Testing

/// The events of what clients ask for say by whom, whoever it is.
@Suite(.timeLimit(.minutes(5))) struct AttributionTests {
    private static func token(_ name: String) -> String { "token-of-\(name)-0123456789" }

    private static let tokens = ["ann", "bob"].map { "\($0):\(token($0)) operate\n" }.joined()

    private static let a = OperationSelector("open", "a")
    private static let b = OperationSelector("open", "b")

    /// Runs something with the clients of two people; returns the events that have a name.
    private func events(
        _ body:
            @Sendable @escaping (
                ServedCluster, _ ann: HTTPCoordinatorClient, _ bob: HTTPCoordinatorClient
            ) async throws -> Void
    ) async throws -> [String] {
        let found = Found()
        try await ServedCluster.run(tokens: Self.tokens) { (served: ServedCluster) async throws in
            try await served.client(token: Self.token("ann")) { ann in
                try await served.client(token: Self.token("bob")) { bob in
                    try await body(served, ann, bob)
                    // The last event of all.
                    var end = QueueChange()
                    end.priority = .low
                    _ = try await bob.setQueue("end", end)
                    for try await event in try await ann.events(after: 0, graph: nil) {
                        guard case .event(let view) = event else { continue }
                        if view.queue == "end" { break }
                        guard let by = view.by else { continue }
                        let trigger = view.trigger.map { " \($0)" } ?? ""
                        await found.add("\(view.kind.rawValue)\(trigger) by \(by)")
                    }
                }
            }
        }
        return await found.all
    }

    private actor Found {
        private(set) var all: [String] = []
        func add(_ event: String) { all.append(event) }
    }

    @Test func `every change of a graph says by whom`() async throws {
        let failure = OperationError.thrown(type: "T", message: "no", payload: [])
        let found = try await events { served, ann, bob in
            var graph = GraphDescription.of("open", [("a", [])])
            graph.operations[0].work = .external(input: .empty)
            var submission = Submission(graph: graph)
            submission.isOpen = true
            _ = try await ann.submit(submission)
            _ = try await bob.add(Submission(graph: .of("", [("b", [])])), to: "open")
            _ = try await ann.suspend(.operation(Self.b), SuspendRequest())
            _ = try await bob.resume(.operation(Self.b))
            _ = try await bob.suspend(.graph("open"), SuspendRequest())
            _ = try await ann.resume(.graph("open"))
            _ = try await ann.setPriority(of: Self.b, to: .high)
            _ = try await bob.addDependency(of: Self.b, on: Self.a, .finished)
            _ = try await ann.removeDependency(of: Self.b, on: Self.a)
            _ = try await bob.complete(Self.a, attempt: nil, with: .failed(failure))
            _ = try await ann.retry(graph: "open", RetryRequest())
            _ = try await bob.close(graph: "open")
            _ = try await ann.cancel(.operation(Self.b), CancelRequest())
            _ = try await bob.cancel(.graph("open"), CancelRequest())
            _ = try await ann.rerun(graph: "open", RerunRequest(["a"]))
        }
        #expect(
            found == [
                "graphSubmitted by ann", "graphAdded by bob", "suspended by ann", "resumed by bob",
                "suspended by bob", "resumed by ann", "priority by ann", "dependencyAdded by bob",
                "dependencyRemoved by ann", "finished by bob", "reopened by ann",
                "graphClosed by bob", "cancelRequested by ann", "graphCancelled by bob",
                "graphSubmitted by ann",
            ]
        )
    }

    @Test func `every change of queues, keys and workers says by whom`() async throws {
        let found = try await events { served, ann, bob in
            try await served.cluster.join("worker", slots: 1, queues: ["other"])
            _ = try await ann.submit(Submission(graph: .diamond))
            var change = QueueChange()
            change.maxConcurrentOperationCount = 2
            _ = try await bob.setQueue("default", change)
            change = QueueChange()
            change.rate = "10/s"
            _ = try await ann.setQueue("default", change)
            change = QueueChange()
            change.priority = .low
            _ = try await bob.setQueue("default", change)
            _ = try await ann.suspend(.queue("default"), SuspendRequest())
            _ = try await bob.resume(.queue("default"))
            _ = try await ann.resetQueue("default")
            _ = try await bob.cancel(.queue("default"), CancelRequest())
            _ = try await ann.setKey(KeySettings(name: "db", limit: 2))
            _ = try await bob.resetKey("db")
            _ = try await ann.drain(worker: "worker")
        }
        #expect(
            found == [
                "graphSubmitted by ann", "queueSet by bob", "queueSet by ann", "queueSet by bob",
                "suspended by ann", "resumed by bob", "queueSet by ann", "queueCancelled by bob",
                "keySet by ann", "keySet by bob", "workerDraining by ann",
            ]
        )
    }

    private static func trigger(limit: Int) -> [UInt8] {
        let graph = #"{\"operations\":{\"a\":{\"external\":true}}}"#
        let text = """
            {"name": "night", "on": {"event": {}}, "limit": \(limit),
            "graph": {"contentType": "application/json", "text": "\(graph)"}}
            """
        return Array(text.utf8)
    }

    @Test func `every change of a trigger says by whom`() async throws {
        let json = "application/json"
        let found = try await events { _, ann, bob in
            _ = try await ann.addTrigger(Self.trigger(limit: 5), contentType: json, replace: false)
            _ = try await bob.addTrigger(Self.trigger(limit: 9), contentType: json, replace: true)
            _ = try await ann.suspendTrigger("night", SuspendRequest())
            _ = try await bob.resumeTrigger("night")
            // It is over at once, and nobody asked for that.
            var over = SuspendRequest()
            over.until = TimeText(WallTime(nanosecondsSince1970: 1))
            _ = try await bob.suspendTrigger("night", over)
            _ = try await ann.fireTrigger("night", data: [], idempotencyKey: "1")
            // The same again changes nothing.
            _ = try await ann.fireTrigger("night", data: [], idempotencyKey: "1")
            _ = try await bob.removeTrigger("night")
        }
        // The graph that the firing submits is the trigger's.
        #expect(
            found.filter { $0.hasPrefix("trigger") } == [
                "triggerAdded night by ann", "triggerReplaced night by bob",
                "triggerSuspended night by ann", "triggerResumed night by bob",
                "triggerSuspended night by bob", "triggerFired night by ann",
                "triggerRemoved night by bob",
            ]
        )
    }
}
