import Foundation
import OperonHTTP
import OperonModel
import OperonPorts
import Testing

/// Every method of the port means the same over HTTP as in the same process.
@Suite(.timeLimit(.minutes(5))) struct RoundTripTests {
    @Test func `a graph is submitted, listed, shown and closed`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            try await served.client { client in
                var submission = Submission(graph: .diamond)
                submission.isOpen = true
                submission.traceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
                var view = try await client.submit(submission)
                #expect(view.warnings?.map(\.code) == ["noWorker"])
                view.warnings = nil
                #expect(view == (try await served.coordinator.graph("diamond")))
                let sent = try #require(await served.tap.submissions.first)
                #expect(sent.graph == submission.graph)
                #expect(sent.traceParent == submission.traceParent)
                #expect(sent.isOpen)

                var query = GraphQuery()
                query.status = .running
                query.name = "diamond"
                query.limit = 1
                let page = try await client.graphs(query)
                #expect(page == (try await served.coordinator.graphs(query)))
                #expect(page.graphs.count == 1)

                let more = Submission(graph: .of("", [("after", ["end"])]))
                let added = try await client.add(more, to: "@latest")
                #expect(added.counts.total == 5 && added.firstAdded == 4)
                #expect(try await client.close(graph: "0").isOpen == false)
                #expect(try await client.graph("diamond") == served.coordinator.graph("diamond"))
            }
        }
    }

    @Test func `whatever completes an operation arrives as it was sent`() async throws {
        let bytes = (0..<Limits().payloadBytes).map { UInt8(truncatingIfNeeded: $0) }
        let errors: [OperationError] = [
            .thrown(type: "T", message: "m", payload: [0, 255]), .exit(code: -3),
            .signal(name: "SIGKILL"), .timeout, .conditionFailed(name: "c"), .kindUnknown("k"),
            .versionUnsupported("2"), .undecodable("u"), .inputTooLarge(bytes: 5, limit: 4),
            .outputTooLarge(bytes: 3, limit: 2),
        ]
        let completions: [Completion] =
            [
                .succeeded(.empty), .succeeded(Payload(contentType: "image/png", bytes: bytes)),
                .succeeded(Payload(bytes: Array("[1.0,18446744073709551615]".utf8))),
                .cancelled(reason: ""), .cancelled(reason: "r"),
            ] + errors.map { .failed($0) }
        try await ServedCluster.run { (served: ServedCluster) async throws in
            for (index, completion) in completions.enumerated() {
                let selector = OperationSelector("g\(index)", "a")
                try await served.submitExternal("g\(index)")
                try await served.client { client in
                    let id = try await client.operation(selector).attempts.last?.id
                    let attempt = index % 2 == 0 ? id.flatMap { AttemptID($0) } : nil
                    let view = try await client.complete(
                        selector,
                        attempt: attempt,
                        with: completion
                    )
                    #expect(view.state == .finished)
                }
                let sent = await served.tap.completions.last
                #expect(sent?.completion == completion)
                #expect((sent?.attempt == nil) == (index % 2 > 0))
            }
        }
    }

    @Test func `operations are listed page by page, and each is shown`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            _ = try await served.coordinator.submit(Submission(graph: .diamond))
            try await served.cluster.join("worker", slots: 2)
            let top = OperationSelector("diamond", "top")
            try await served.cluster.print(top, "colour \u{1B}[31mred\u{1B}[0m")
            let output = Payload(contentType: "text/csv; header=present", bytes: [97, 44, 255, 0])
            try await served.cluster.finish(top, output: output)
            try await served.cluster.finish(OperationSelector("diamond", "left"), .exit(code: 2))
            try await served.client { client in
                var query = OperationQuery()
                query.limit = 3
                let first = try await client.operations(of: "diamond", query)
                #expect(first.operations.map(\.name) == ["top", "left", "right"])
                query.after = first.next
                let second = try await client.operations(of: "diamond", query)
                #expect(second.operations.map(\.name) == ["end"])
                #expect(second.next == nil)
                var failed = OperationQuery()
                failed.state = .finished
                failed.outcome = .failed
                failed.queue = "default"
                #expect(try await client.operations(of: "0", failed).operations.count == 1)

                let direct = served.coordinator
                for name in ["top", "left", "right", "end"] {
                    let selector = OperationSelector("diamond", name)
                    #expect(try await client.operation(selector) == direct.operation(selector))
                    #expect(try await client.explain(selector) == direct.explain(selector))
                    #expect(
                        try await client.output(of: selector) == direct.output(of: selector)
                    )
                    #expect(try await client.log(of: selector) == direct.log(of: selector))
                }
                let output = try #require(
                    await client.output(of: OperationSelector("diamond", "top"))
                )
                #expect(output.bytes == [97, 44, 255, 0])
            }
            let text = try await served.raw(
                "GET",
                "/v1/graphs/0/operations/0/log",
                ["Accept": "text/plain"]
            )
            #expect(text.text == "colour red\n")
            #expect(text.fields["content-type"] == "text/plain; charset=utf-8")
            #expect(text.fields["x-content-type-options"] == "nosniff")
            #expect(text.fields["content-security-policy"]?.contains("sandbox") == true)
        }
    }

    @Test func `commands say what they did`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            _ = try await served.coordinator.submit(Submission(graph: .diamond))
            try await served.client { client in
                var suspend = SuspendRequest()
                suspend.reason = "maintenance"
                suspend.until = TimeText(WallTime(nanosecondsSince1970: 1_800_000_000_000_000_000))
                suspend.wait = 1
                let targets: [TargetSelector] = [
                    .graph("diamond"), .queue("default"),
                    .operation(OperationSelector("diamond", "top")),
                ]
                for target in targets {
                    #expect(try await client.suspend(target, suspend).isEffective)
                }
                let queue = try await client.queue("default")
                #expect(queue.suspension?.until == suspend.until)
                #expect(queue.suspension?.reason == "maintenance")
                for target in targets { #expect(try await client.resume(target).isEffective) }
                let selector = OperationSelector("diamond", "top")
                #expect(
                    try await client.setPriority(of: selector, to: .veryHigh).priority == .veryHigh
                )

                var cancel = CancelRequest()
                cancel.reason = "wrong book"
                cancel.cascade = true
                let answer = try await client.cancel(.operation(selector), cancel)
                #expect(answer.finished == 4)
                var retry = RetryRequest()
                retry.cancelled = true
                #expect(try await client.retry(graph: "diamond", retry).affected == 4)
                #expect(try await client.cancel(.queue("default"), CancelRequest()).finished == 4)
                let end = try await client.graph("diamond")
                #expect(end.exitCode == 3)
                #expect(end == (try await served.coordinator.graph("diamond")))
                #expect(try await client.cancel(.graph("diamond"), CancelRequest()).affected == 0)

                try await served.cluster.join("worker", slots: 1)
                _ = try await client.submit(Submission(graph: .of("runs", [("a", [])])))
                try await served.cluster.wait(for: OperationSelector("runs", "a"), .executing)
                let running = try await client.cancel(.graph("runs"), CancelRequest())
                #expect(running.running == 1)
                #expect(running.named.map(\.name) == ["a"])
            }
        }
    }

    @Test func `dependencies come and go, across graphs too`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            _ = try await served.coordinator.submit(Submission(graph: .of("a", [("one", [])])))
            _ = try await served.coordinator.submit(Submission(graph: .of("b", [("two", [])])))
            try await served.client { client in
                let (two, one) = (OperationSelector("b", "two"), OperationSelector("a", "one"))
                let with = try await client.addDependency(of: two, on: one, .finished)
                #expect(with.dependencies.map(\.operation.name) == ["one"])
                #expect(with.dependencies.first?.condition == .finished)
                let without = try await client.removeDependency(of: two, on: one)
                #expect(without.dependencies.isEmpty)
                #expect(without.operation.state == .ready)
            }
        }
    }

    @Test func `queues, workers and the cluster are shown and changed`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            try await served.cluster.join("süd/1", slots: 4, queues: ["q"])
            var graph = GraphDescription.of("g", [("a", [])])
            graph.operations[0].queue = "q"
            _ = try await served.coordinator.submit(Submission(graph: graph))
            try await served.cluster.wait(for: OperationSelector("g", "a"), .executing)
            try await served.client { client in
                var change = QueueChange()
                change.maxConcurrentOperationCount = 3
                change.priority = .low
                let queue = try await client.setQueue("data/µ", change)
                #expect(queue.maxConcurrentOperationCount == 3)
                #expect(try await client.queue("data/µ") == queue)
                change = QueueChange()
                change.isUnlimited = true
                #expect(
                    try await client.setQueue("data/µ", change).maxConcurrentOperationCount == nil
                )
                change.priority = .high
                #expect(try await client.setQueue("data/µ", change).priority == .high)
                #expect(try await client.resetQueue("data/µ").priority == .normal)
                let unknown = await #expect(throws: ClientError.self) {
                    _ = try await client.resetQueue("other")
                }
                #expect(unknown?.code == .notFound)
                #expect(try await client.queues() == served.coordinator.queues())
                let workers = try await client.workers()
                #expect(try await workers == served.coordinator.workers())
                #expect(workers.first?.running?.map(\.operation.name) == ["a"])
                #expect(workers.first?.since != nil)
                #expect(try await client.drain(worker: "süd/1").status == "draining")
                #expect(try await client.status() == served.coordinator.status())
            }
        }
    }

    @Test func `the operations of a queue are listed, and its end waited for`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            for _ in 0..<2 { _ = try await served.coordinator.submit(Submission(graph: .diamond)) }
            try await served.client { client in
                var query = QueueOperationQuery()
                query.limit = 6
                let first = try await client.operations(ofQueue: "default", query)
                let direct = try await served.coordinator.operations(ofQueue: "default", query)
                #expect(first == direct)
                #expect(first.next == "1/2")
                query.after = first.next
                let second = try await client.operations(ofQueue: "default", query)
                #expect(second.operations.map(\.name) == ["right", "end"])
                #expect(second.next == nil)
                query = QueueOperationQuery()
                query.state = .finished
                query.outcome = .succeeded
                let done = try await client.operations(ofQueue: "default", query)
                #expect(done.operations.isEmpty)

                let queue = try await client.waitUntilEmpty(queue: "default", within: 0.5)
                #expect(queue.unfinished == 8)
                #expect(queue == (try await served.coordinator.queue("default")))
                let other = await #expect(throws: ClientError.self) {
                    _ = try await client.waitUntilEmpty(queue: "other", within: 1)
                }
                #expect(other?.code == .notFound)
            }
            for wait in ["soon", "-1", "nan", "inf", "3601", ""] {
                let answer = try await served.raw("GET", "/v1/queues/default?wait=\(wait)")
                #expect(answer.status == 400, "\(wait): \(answer.text)")
            }
        }
    }

    @Test func `an input is shown as it was given`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            let input = Payload(bytes: Array("{\"radius\": 2}".utf8))
            var graph = GraphDescription.of("a", [("one", []), ("two", [])])
            graph.operations[0].work = .registered(kind: "Blur", input: input)
            _ = try await served.coordinator.submit(Submission(graph: graph))
            try await served.client { client in
                let shown = try await client.input(of: OperationSelector("a", "one"))
                let none = try await client.input(of: OperationSelector("a", "two"))
                #expect(shown == input && none == nil)
            }
        }
    }

    @Test func `keys are shown with who holds them, and set`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            var graph = GraphDescription.of("a", [("one", []), ("two", [])])
            for index in 0..<2 { graph.operations[index].exclusive = ["data/µ"] }
            _ = try await served.coordinator.submit(Submission(graph: graph))
            try await served.cluster.join("worker", slots: 1)
            try await served.cluster.wait(for: OperationSelector("a", "one"), .executing)
            try await served.client { client in
                let key = try await client.setKey(KeySettings(name: "data/µ", limit: 3))
                #expect(key.limit == 3 && key.held == 1 && key.waiting == 1)
                #expect(key.holders.map(\.name) == ["one"])
                #expect(key.waiters?.map(\.name) == ["two"])
                #expect(try await client.key("data/µ") == key)
                #expect(try await client.keys() == [key])
                let low = await #expect(throws: ClientError.self) {
                    _ = try await client.setKey(KeySettings(name: "data/µ", limit: 0))
                }
                #expect(low?.code == .invalid)
                #expect(try await client.resetKey("data/µ").limit == 1)
                let other = await #expect(throws: ClientError.self) {
                    _ = try await client.key("other")
                }
                #expect(other?.code == .notFound)
            }
            for body in ["{}", #"{"limit": "2"}"#, #"{"limit": 2, "maximum": 2}"#] {
                let answer = try await served.json("PUT", "/v1/keys/data", body)
                #expect(answer.status == 400, "\(body): \(answer.text)")
            }
        }
    }

    @Test func `a copy of the store comes whole, or is known not to be`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            let bytes = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
            // A coordinator in memory has nothing to copy, and will not have it later either.
            let answer = try await served.json("POST", "/v1/backup", "")
            #expect(answer.status == 409, "\(answer.text)")
            await served.tap.answerBackup(with: bytes)
            try await served.client { client in
                let backup = try await client.backup()
                #expect(backup.byteCount == bytes.count)
                var copy: [UInt8] = []
                for try await piece in backup.pieces { copy += piece }
                #expect(copy == bytes)
                let busy = ClientError(.unavailable, "Another backup is on its way.")
                await served.tap.failNext("backup", with: busy)
                await #expect(throws: busy) { _ = try await client.backup() }
            }
        }
    }

    static let names = [
        "a/b", "/", "//", "a%2Fb", "a b", "a+b", "?x=1&y#z", "日本語", "é", "e\u{301}", "🦑", ".", "..",
        "../..", "@latest", "0", "\"quoted\\\"", "a;b", "%", "\u{202E}abc",
        String(repeating: "ü", count: 128),
    ]

    @Test(arguments: names) func `any name comes through`(name: String) async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            try await served.client { client in
                let graph = GraphDescription.of(name, [(name, []), ("next", [name])])
                _ = try await client.submit(Submission(graph: graph))
                #expect(await served.tap.submissions.first?.graph == graph)
                #expect(try await client.graph(name).name == name)
                let selector = OperationSelector(name, name)
                #expect(try await client.operation(selector).operation.name == name)
                #expect(try await client.explain(selector).operation.name == name)
                var query = GraphQuery()
                query.name = name
                #expect(try await client.graphs(query).graphs.count == 1)
                #expect(try await client.setQueue(name, QueueChange()).name == name)
                #expect(try await client.setKey(KeySettings(name: name)).name == name)
            }
        }
    }

    @Test func `an error is the same on both sides`() async throws {
        let refusals: [Refusal] = [
            .dependencyCycle(path: ["a", "b", "a"]), .unknownOperation(name: "x", namedBy: "y"),
            .duplicateOperation(name: "d"), .alreadySubmitted(name: "s"),
            .alreadyStarted(name: "st"), .alreadyFinished(name: "f"), .graphClosed(name: "g"),
            .invalid(field: "f", why: "w"),
            .limitExceeded(limit: .operationsPerGraph, value: 2, maximum: 1), .unreachable("u"),
        ]
        let codes: [ClientError.Code] = [
            .invalid, .notFound, .conflict, .tooLarge, .unauthorized, .forbidden, .unavailable,
            .unreachable, .timedOut, .internal,
        ]
        let errors =
            codes.map { ClientError($0, "sentence about “\($0)”, über alles") }
            + refusals.map { ClientError(.conflict, $0.description, refusal: $0) }
        try await ServedCluster.run { (served: ServedCluster) async throws in
            try await served.client { client in
                for error in errors {
                    await served.tap.failNext("status", with: error)
                    await #expect(throws: error) { _ = try await client.status() }
                }
            }
            let statuses = Set(codes.map(Problem.status(of:)))
            #expect(statuses.count == codes.count)
            for code in codes { #expect(Problem.code(of: Problem.status(of: code)) == code) }
        }
    }

    @Test func `a key makes a submission happen once`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            try await served.client { client in
                var submission = Submission(graph: .diamond)
                submission.idempotencyKey = "8f1c"
                let first = try await client.submit(submission)
                #expect(try await client.submit(submission) == first)
                #expect(try await client.graphs(GraphQuery()).graphs.count == 1)
                submission.graph.name = "other"
                let error = await #expect(throws: ClientError.self) {
                    _ = try await client.submit(submission)
                }
                #expect(error?.code == .conflict)
            }
        }
    }

    @Test func `a hundred thousand operations are submitted in pieces`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            try await served.client { client in
                let graph = GraphDescription.of(
                    "large",
                    (0..<100_000).map {
                        ("operation-\($0)", $0 == 0 ? [] : ["operation-\($0 - 1)"])
                    }
                )
                let view = try await client.submit(Submission(graph: graph))
                #expect(view.counts.total == 100_000)
                #expect(await served.tap.submissions.first?.graph == graph)
            }
        }
    }
}
