import ClusterKit
import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTestKit
import OperonWire
import Testing

/// What operations and clients are told while a store takes nothing.
@Suite(.timeLimit(.minutes(5))) struct FullDiskTests {
    private let store = InMemoryStore(reign: Reign(rawValue: 5))

    /// A coordinator with one worker, which is the test, and two operations that the worker runs.
    private func withWorker(
        isKept: Bool = true,
        isolation: isolated (any Actor)? = #isolation,
        _ body: (ManualCluster, LocalCoordinator, [HeldAttempt]) async throws -> Void
    ) async throws {
        try await ManualCluster.run(isKept ? store : nil) { cluster in
            try await cluster.join(kinds: ["K"])
            let operations = ["a", "b"].map { name in
                OperationDescription(name: name, work: .registered(kind: "K", input: .empty))
            }
            let graph = GraphDescription(name: "g", operations: operations)
            var submission = Submission(graph: graph)
            submission.isOpen = true
            _ = try await cluster.client.submit(submission)
            var held: [HeldAttempt] = []
            for name in ["a", "b"] { held.append(try await cluster.dispatched(name).held) }
            try await cluster.report(
                1,
                .started(held[0], at: .zero),
                .started(held[1], at: .zero)
            )
            try await cluster.service.kept()
            try await body(cluster, cluster.client, held)
        }
    }

    private func result(_ output: String) -> AttemptResult {
        AttemptResult(
            end: .succeeded,
            startedAt: .zero,
            endedAt: .zero,
            output: Payload(bytes: Array(output.utf8))
        )
    }

    /// From here to `heal` the disk is full.
    private func fill() async {
        await store.fail(Array(repeating: StoreError(.full, "full"), count: 100_000))
    }

    @Test func `an operation that reads is told what another left that waits for the disk`()
        async throws
    {
        try await withWorker { cluster, _, held in
            await fill()
            try await cluster.report(3, .finished(held[0], result("\"left\"")))
            try await cluster.log.wait { $0.contains("the store takes no records") }
            try await cluster.report(4, .read(held[1], ReadRequest(number: 1, name: "a")))
            await store.heal()
            let content = try await cluster.verdict(1).content
            #expect(content == .output(Payload(bytes: Array("\"left\"".utf8))))
        }
    }

    @Test(arguments: [false, true])
    func `an operation that reads is told what another left that ended just before it`(
        isKept: Bool
    ) async throws {
        try await withWorker(isKept: isKept) { cluster, _, held in
            try await cluster.report(
                3,
                .finished(held[0], result("\"left\"")),
                .read(held[1], ReadRequest(number: 1, name: "a"))
            )
            #expect(
                try await cluster.verdict(1).content
                    == .output(Payload(bytes: Array("\"left\"".utf8)))
            )
        }
    }

    @Test func `what one worker reads at once has a bound, and the rest is read later`()
        async throws
    {
        try await withWorker { cluster, client, held in
            let names = (0..<10).map { "large\($0)" }
            let operations = names.map { name in
                OperationDescription(name: name, work: .registered(kind: "K", input: .empty))
            }
            let more = GraphDescription(name: "g", operations: operations)
            _ = try await client.add(Submission(graph: more), to: "g")
            let megabyte = String(repeating: "x", count: 1 << 20)
            var event: UInt64 = 3
            for name in names {
                try await cluster.report(
                    event,
                    .finished(try await cluster.dispatched(name).held, result(megabyte))
                )
                event += 1
            }
            try await cluster.service.kept()
            let first = event
            let reads = names.indices.map { place in
                WorkerEvent.read(
                    held[1],
                    ReadRequest(number: UInt64(place + 1), name: names[place])
                )
            }
            try await cluster.say(
                .events(EventBatch(firstNumber: first, sentAt: .zero, events: reads))
            )
            let large = Verdict.Content.output(Payload(bytes: Array(megabyte.utf8)))
            for number in 1...8 as ClosedRange<UInt64> {
                #expect(try await cluster.verdict(number).content == large)
            }
            for number in 9...10 as ClosedRange<UInt64> {
                #expect(try await cluster.verdict(number).content == .again)
            }

            let rest = EventBatch(
                firstNumber: first + 10,
                sentAt: .zero,
                events: [.read(held[1], ReadRequest(number: 11, name: names[8]))]
            )
            try await cluster.say(.events(rest))
            #expect(try await cluster.verdict(11).content == large)
        }
    }

    @Test func `a date comes although the disk was full when a stranger came`() async throws {
        try await withWorker { cluster, client, held in
            var later = OperationDescription(
                name: "c",
                work: .registered(kind: "K", input: .empty)
            )
            later.notBefore = SystemClock.wall() + .milliseconds(500)
            let more = GraphDescription(name: "g", operations: [later])
            _ = try await client.add(Submission(graph: more), to: "g")
            await fill()
            try await cluster.report(3, .finished(held[0], result("1")))
            try await cluster.log.wait { $0.contains("the store takes no records") }
            let stranger = WorkerIdentity(
                name: "s",
                incarnation: Incarnation(rawValue: 10),
                connection: 1
            )
            try await cluster.join(stranger, kinds: ["K"])
            await store.heal()
            #expect(try await cluster.dispatched("c").name == "c")
        }
    }

    @Test func `what is added is given what another left that waits for the disk`() async throws {
        var added = OperationDescription(name: "c", work: .registered(kind: "K", input: .empty))
        added.dependencies = [DependencyDescription("a")]
        let graph = GraphDescription(name: "more", operations: [added])
        let body = try StoreFormat.encode(graph, failFast: false)
        try await withWorker { cluster, _, held in
            await fill()
            try await cluster.report(3, .finished(held[0], result("\"left\"")))
            try await cluster.log.wait { $0.contains("the store takes no records") }
            try await cluster.report(
                4,
                .added(held[1], AdditionRequest(number: 1, operations: body))
            )
            await store.heal()
            let inputs = try await cluster.dispatched("c").inputs
            #expect(inputs.map(\.output) == [Payload(bytes: Array("\"left\"".utf8))])
        }
    }

    @Test func `an addition whose input cannot be read from the store is refused`() async throws {
        var added = OperationDescription(name: "c", work: .registered(kind: "K", input: .empty))
        added.dependencies = [DependencyDescription("a")]
        let graph = GraphDescription(name: "more", operations: [added])
        let body = try StoreFormat.encode(graph, failFast: false)
        try await withWorker { cluster, _, held in
            try await cluster.report(3, .finished(held[0], result("\"left\"")))
            try await cluster.service.kept()
            await store.failReads(StoreError(.failed, "broken"))
            try await cluster.report(
                4,
                .added(held[1], AdditionRequest(number: 1, operations: body))
            )
            let content = try await cluster.verdict(1).content
            guard case .refused(.unreachable) = content else {
                Issue.record("\(content)")
                return
            }
        }
    }

    @Test func `of the answers to beats that wait for the disk the last one is sent`() async throws
    {
        try await withWorker { cluster, _, held in
            await fill()
            try await cluster.report(3, .finished(held[0], result("1")))
            try await cluster.log.wait { $0.contains("the store takes no records") }
            let before = cluster.transport.sent.count
            for number in 1...1_000 as ClosedRange<Int64> {
                let beat = Beat(
                    sentAt: Timestamp(nanoseconds: number),
                    received: 100,
                    sent: 3,
                    held: [held[1]],
                    isDraining: false
                )
                try await cluster.say(.beat(beat))
            }
            await store.heal()
            let last = Timestamp(nanoseconds: 1_000)
            _ = try await cluster.transport.find { envelope -> Bool? in
                guard case .control(let control) = envelope.body else { return nil }
                return control.answers == last ? true : nil
            }
            #expect(cluster.transport.sent.count - before <= 3)
        }
    }

    @Test func `while the disk is full nobody new is welcomed`() async throws {
        try await withWorker { cluster, _, held in
            await fill()
            try await cluster.report(3, .finished(held[0], result("1")))
            try await cluster.log.wait { $0.contains("the store takes no records") }
            let strangers = (100..<1_100).map { number in
                WorkerIdentity(
                    name: "s\(number)",
                    incarnation: Incarnation(rawValue: number),
                    connection: 1
                )
            }
            for stranger in strangers {
                try await cluster.join(stranger, kinds: ["K"])
            }
            let known = await cluster.service.query { scheduler in
                strangers.count { scheduler.knows($0.incarnation) }
            }
            #expect(known == 0)
            await store.heal()
            try await cluster.log.wait { $0.contains("the store takes records again") }
            try await cluster.join(strangers[0], kinds: ["K"])
            #expect(await cluster.service.query { $0.knows(strangers[0].incarnation) })
        }
    }

    // MARK: - Retries

    @Test func `two retries of one operation at once are both answered`() async throws {
        try await withWorker { cluster, client, held in
            try await cluster.report(3, .finished(held[0], result("\"left\"")))
            var added = OperationDescription(name: "c", work: .registered(kind: "K", input: .empty))
            added.dependencies = [DependencyDescription("a")]
            let more = Submission(graph: GraphDescription(name: "g", operations: [added]))
            _ = try await client.add(more, to: "g")
            let c = try await cluster.dispatched("c").held
            var failed = result("")
            failed.end = .failed(.thrown(type: "Test", message: "", payload: []))
            try await cluster.report(4, .started(c, at: .zero), .finished(c, failed))
            try await cluster.service.kept()

            // What `a` left is in the store alone: both ask for it, and the first reopens `c`.
            var request = RetryRequest()
            request.operations = ["c"]
            let again = request
            let answers = await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<2 {
                    group.addTask {
                        do {
                            _ = try await client.retry(graph: "g", again)
                            return true
                        } catch {
                            return false
                        }
                    }
                }
                return await group.reduce(into: [Bool]()) { $0.append($1) }
            }
            #expect(answers.count == 2 && answers.contains(true))
        }
    }

    // MARK: - Readers of logs

    private func chunk(_ held: HeldAttempt, _ number: Int) -> LogChunk {
        let bytes = Array(repeating: UInt8(ascii: "x"), count: 64 << 10)
        return LogChunk(
            held: held,
            stream: .output,
            offset: UInt64(number * bytes.count),
            bytes: bytes
        )
    }

    @Test func `a slow reader of a log misses what it does not read, and is told how much`()
        async throws
    {
        try await withWorker { cluster, client, held in
            let selector = LogSelector.operation(OperationSelector(graph: "g", operation: "a"))
            let total = 256 * (64 << 10)
            for number in 0..<256 {
                try await cluster.say(.log(chunk(held[0], number)))
            }
            let limit = Limits().logBytes * CoordinatorService.liveLogFactor
            #expect(await cluster.service.liveLogBytes <= limit)
            // What was printed so far, of a run that goes on.
            let soFar = try await client.log(of: selector, LogQuery())
                .reduce(into: [LogView]()) { $0.append($1) }
            let bytes = soFar.reduce(0) { $0 + $1.bytes.count }
            let missed = soFar.reduce(0) { $0 + Int($1.missedBytes) }
            #expect(bytes <= limit && bytes >= limit - (256 << 10))
            #expect(bytes + missed == total)
            #expect(soFar.filter { $0.missedBytes > 0 }.count == 1)
            #expect(soFar.first?.offset == 0)

            let stream = try await client.log(of: selector, LogQuery(follow: true))
            var last = result("1")
            last.log = KeptLog(
                head: Array(repeating: UInt8(ascii: "x"), count: 100),
                missing: UInt64(total - 200),
                tail: Array(repeating: UInt8(ascii: "x"), count: 100)
            )
            try await cluster.report(3, .finished(held[0], last))
            try await cluster.service.kept()
            var told: [LogView] = []
            for try await log in stream { told.append(log) }
            #expect(told.map(\.bytes.count) == [100, 100])
            #expect(told.map(\.missedBytes) == [0, UInt64(total - 200)])
            #expect(await cluster.service.liveLogBytes == 0)
        }
    }

    @Test func `pieces of one byte do not fill the memory, and empty ones are none`() async throws {
        try await withWorker { cluster, client, held in
            let selector = LogSelector.operation(OperationSelector(graph: "g", operation: "a"))
            let stream = try await client.log(of: selector, LogQuery(follow: true))
            let count = 20_000
            for number in 0..<count {
                for bytes in [[], [UInt8(ascii: "x")]] as [[UInt8]] {
                    let piece = LogChunk(
                        held: held[0],
                        stream: .output,
                        offset: UInt64(number),
                        bytes: bytes
                    )
                    try await cluster.say(.log(piece))
                }
            }
            #expect(await cluster.service.liveLogBytes < count * 2)
            var iterator = stream.makeAsyncIterator()
            var read = 0
            while read < count, let log = try await iterator.next() { read += log.bytes.count }
            #expect(read == count)
            // The attempt ends without a log: nothing is missing that was read before.
            try await cluster.report(3, .finished(held[0], result("1")))
            #expect(try await iterator.next() == nil)
        }
    }

    @Test func `the log of an attempt that left none is told as a gap`() async throws {
        try await withWorker { cluster, client, held in
            let selector = LogSelector.operation(OperationSelector(graph: "g", operation: "a"))
            let stream = try await client.log(of: selector, LogQuery(follow: true))
            var iterator = stream.makeAsyncIterator()
            try await cluster.say(.log(chunk(held[0], 0)))
            #expect(try await iterator.next()?.bytes.count == 64 << 10)
            try await cluster.say(.log(chunk(held[0], 1)))
            try await cluster.report(3, .finished(held[0], result("1")))
            try await cluster.service.kept()
            let gap = try await iterator.next()
            #expect(gap?.bytes.isEmpty == true && gap?.missedBytes == 64 << 10)
            #expect(try await iterator.next() == nil)
        }
    }

    @Test func `who follows a log no more is not listened for`() async throws {
        try await withWorker { cluster, client, held in
            let a = OperationSelector(graph: "g", operation: "a")
            do {
                let stream = try await client.log(of: .operation(a), LogQuery(follow: true))
                #expect(await cluster.service.logListenerCount == 1)
                _ = stream
            }
            while await cluster.service.logListenerCount > 0 { await Task.yield() }
            let following = Task {
                for try await _ in try await client.log(of: .operation(a), LogQuery(follow: true)) {
                }
            }
            while await cluster.service.logListenerCount == 0 { await Task.yield() }
            following.cancel()
            try await following.value
            while await cluster.service.logListenerCount > 0 { await Task.yield() }
            try await cluster.report(3, .finished(held[0], result("1")))
        }
    }
}
