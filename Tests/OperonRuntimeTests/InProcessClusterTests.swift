import NIOConcurrencyHelpers
import OperonModel
import OperonPorts
import OperonRuntime
import Testing

@Suite(.timeLimit(.minutes(5))) struct InProcessClusterTests {
    private let program = EmbeddedProgram()

    @Test func `everything a client asks is answered without a disk`() async throws {
        program.add("Shout") { invocation in
            invocation.log("shouting")
            let text = String(decoding: invocation.input.bytes, as: UTF8.self)
            return .returned(Payload(bytes: Array(text.uppercased().utf8)))
        }
        try await program.serve(program.open(MemoryStore(reign: EmbeddedProgram.reign))) { client in
            let graph = try await client.submit(
                program.submission(
                    program.registered("one", kind: "Shout", input: "hey"),
                    program.registered("two", kind: "Later", after: ["one"]),
                    open: true
                )
            )
            // Its kind was not heard of before, and is nobody's yet.
            let events = try await program.events(of: graph.id, through: .finished, client)
            #expect(events.count { $0.kind.known == .finished } == 1)
            #expect(events.last?.outcome == .succeeded)
            let one = OperationSelector(graph: "\(graph.id)", operation: "one")
            #expect(try await client.output(of: one)?.bytes == Array("HEY".utf8))
            #expect(try await client.log(of: one).map(\.text) == ["shouting\n"])
            #expect(try await client.operation(one).attempts.map(\.ending) == ["succeeded"])
            let workers = try await client.workers()
            #expect(workers.map(\.runsAnyKind) == [true])
            #expect(workers.map(\.name) == ["local"])
        }
    }

    @Test func `code that ignores its end does not hold on the program`() async throws {
        let (begun, end) = (Latch(), Latch())
        program.add("Stays") { _ in
            begun.open()
            // Not by its task, which is cancelled.
            await Task.detached { await end.wait() }.value
            return .returned(.empty)
        }
        defer { end.open() }
        // Its cluster is asked to end when the body is over.
        try await program.serve(program.open(overtime: .zero)) { client in
            let stays = program.registered("stays", kind: "Stays")
            _ = try await client.submit(program.submission(stays))
            await begun.wait()
        }
        #expect(!end.isOpen)
    }

    @Test func `what says “not yet” waits without a failure, and a cancel ends that`()
        async throws
    {
        program.add("Later") { _ in .notYet(after: .seconds(3_600)) }
        program.add("Fails") { _ in .failed(.conditionFailed(name: "free space")) }
        try await program.serve(program.open()) { client in
            let graph = try await client.submit(
                program.submission(program.registered("a", kind: "Later"))
            )
            let paused = try await program.events(of: graph.id, through: .attemptEnded, client)
            #expect(paused.allSatisfy { $0.error == nil && $0.kind.known != .retry })
            let a = OperationSelector(graph: "\(graph.id)", operation: "a")
            let explanation = try await client.explain(a)
            #expect(explanation.operation.state == .ready)
            #expect(explanation.operation.attempts == 1)
            let reason = try #require(explanation.reasons.first)
            #expect(reason.code == "notYet")
            #expect(reason.text.hasPrefix("Its last attempt said “not yet”; the next is due at "))
            #expect(reason.until != nil)
            _ = try await client.cancel(.operation(a), CancelRequest())
            let ended = try await program.events(of: graph.id, through: .finished, client)
            #expect(ended.last?.outcome == .cancelled)

            let failing = try await client.submit(
                program.submission(program.registered("b", kind: "Fails"))
            )
            let failed = try await program.events(of: failing.id, through: .finished, client)
            #expect(failed.last?.error?.code == "conditionFailed")
            #expect(failed.last?.error?.message.contains("free space") == true)
        }
    }

    @Test func `a worker whose cluster is cancelled starts nothing more`() async throws {
        let threads = try OperationThreads(limit: 1)
        defer { threads.stop() }
        let started = Latch()
        let ended = Latch()
        let ran = NIOLockedValueBox<[String]>([])
        program.add("Block") { invocation in
            ran.withLockedValue { $0.append(invocation.operation.name) }
            started.open()
            // Until it is cancelled.
            await Latch().wait()
            ended.open()
            return .stopped
        }
        let cluster = try await program.open(slots: 1, threads: threads)
        let running = Task { try await cluster.runAndClose() }
        // Short ones: both are given to the worker at once.
        let (a, b) = (short("a"), short("b"))
        _ = try await program.client(of: cluster).submit(program.submission(a, b))
        await started.wait()
        running.cancel()
        _ = await running.result
        await ended.wait()
        // Behind the end of what ran, and then behind whatever that has started.
        for _ in 0..<2 { await Task(executorPreference: threads) {}.value }
        #expect(ran.withLockedValue { $0 } == ["a"])
    }

    private func short(_ name: String) -> OperationDescription {
        var operation = program.registered(name, kind: "Block")
        operation.expectedDuration = .microseconds(50)
        return operation
    }

    @Test func `a kind is known from the moment it is made known`() async throws {
        try await program.serve(program.open(MemoryStore(reign: EmbeddedProgram.reign))) { client in
            let unknown = try await client.submit(
                program.submission(program.registered("a", kind: "Late"))
            )
            let failed = try await program.events(of: unknown.id, through: .graphFinished, client)
            #expect(failed.compactMap(\.error?.code) == ["kindUnknown"])

            program.add("Late") { _ in .returned(.empty) }
            let known = try await client.submit(
                program.submission(program.registered("a", kind: "Late"))
            )
            let done = try await program.events(of: known.id, through: .graphFinished, client)
            #expect(done.compactMap(\.outcome) == [.succeeded])
        }
    }

    @Test func `the next life on the same store goes on with what was not done`() async throws {
        let store = MemoryStore(reign: EmbeddedProgram.reign)
        let started = Latch()
        program.add("Long") { invocation in
            started.open()
            while !invocation.isCancelled() {
                do { try await Task.sleep(for: .milliseconds(5)) } catch {}
            }
            return .stopped
        }
        let first = try await program.open(store)
        let running = Task { try await first.runAndClose() }
        let graph = try await program.client(of: first).submit(
            program.submission(program.registered("a", kind: "Long"))
        )
        await started.wait()
        await first.stop(.now)
        try await running.value

        program.add("Long") { _ in .returned(Payload(bytes: Array("1".utf8))) }
        try await program.serve(program.open(store)) { client in
            let events = try await program.events(of: graph.id, through: .graphFinished, client)
            #expect(events.last?.kind.known == .graphFinished)
            let view = try await client.graph("\(graph.id)")
            #expect(view.counts.succeeded == 1)
            let status = try await client.status()
            #expect(status.epoch == 2)
        }
    }

    @Test func `what cannot be opened leaves the store to others`() async throws {
        let store = MemoryStore(reign: EmbeddedProgram.reign)
        let cluster = try await program.open(store)
        await #expect(throws: StoreError.self) { try await program.open(store) }
        await cluster.close()

        let again = try await program.open(store)
        await again.close()
    }

    @Test func `of events the last ones are kept`() async throws {
        var limits = Limits()
        limits.storedEvents = 100
        let store = MemoryStore(reign: EmbeddedProgram.reign, limits: limits)
        _ = try await store.open()
        for number in 1...1_000 as ClosedRange<UInt64> {
            var batch = StoreBatch(wall: WallTime(nanosecondsSince1970: 1))
            batch.events = [StoredEvent(sequence: number, body: [1])]
            try await store.commit(batch, by: Epoch(rawValue: 1))
        }
        let kept = try await store.events(after: 0, limit: .max)
        #expect(kept.last?.sequence == 1_000)
        #expect((100...111).contains(kept.count))
        let page = try await store.events(after: 995, limit: 3)
        #expect(page.map(\.sequence) == [996, 997, 998])
        #expect(try await store.events(after: 1_000, limit: 3).isEmpty)
    }
}
