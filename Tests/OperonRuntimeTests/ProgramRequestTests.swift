import OperonModel
import OperonPorts
import OperonRuntime
import Testing

/// What programs ask of their coordinator beside submitting and watching.
@Suite(.timeLimit(.minutes(5))) struct ProgramRequestTests {
    private let program = EmbeddedProgram()

    private func code(_ body: () async throws -> Void) async throws -> ClientError.Code? {
        do {
            try await body()
        } catch let error as ClientError {
            return error.code
        }
        return nil
    }

    // MARK: - Additions

    @Test func `an addition says where it landed, and is done once for one key`() async throws {
        let store = MemoryStore(reign: EmbeddedProgram.reign)
        var graph: UInt32 = 0
        let one = program.submission(program.registered("b", kind: "Blur"), key: "k1")
        let two = program.submission(
            program.registered("c", kind: "Blur"),
            program.registered("d", kind: "Blur", after: ["b"]),
            key: "k2"
        )
        try await program.serve(program.open(store)) { client in
            let first = program.submission(program.registered("a", kind: "Blur"), open: true)
            graph = try await client.submit(first).id
            #expect(try await client.add(one, to: "\(graph)").firstAdded == 1)
            #expect(try await client.add(two, to: "\(graph)").firstAdded == 2)
            #expect(try await client.add(one, to: "\(graph)").firstAdded == 1)
            #expect(try await client.graph("\(graph)").counts.total == 4)
            #expect(try await client.graph("\(graph)").firstAdded == nil)
            let other = program.submission(program.registered("e", kind: "Blur"), key: "k1")
            let refused = try await code { _ = try await client.add(other, to: "\(graph)") }
            #expect(refused == .conflict)
        }
        // The next coordinator knows the keys as well, and a graph that is closed the answer.
        try await program.serve(program.open(store)) { client in
            _ = try await client.close(graph: "\(graph)")
            #expect(try await client.add(two, to: "\(graph)").firstAdded == 2)
            #expect(try await client.graph("\(graph)").counts.total == 4)
            let late = program.submission(program.registered("e", kind: "Blur"), key: "k3")
            let refused = try await code { _ = try await client.add(late, to: "\(graph)") }
            #expect(refused == .conflict)
            // What was refused used no key.
            let open = try await client.submit(
                program.submission(program.registered("x", kind: "Blur"), open: true)
            )
            #expect(try await client.add(one, to: "\(open.id)").firstAdded == 1)
        }
    }

    @Test func `the same key at the same time adds once`() async throws {
        try await program.serve(program.open()) { client in
            let first = program.submission(program.registered("a", kind: "Blur"), open: true)
            let graph = try await client.submit(first).id
            let more = program.submission(program.registered("b", kind: "Blur"), key: "k")
            let answers = try await withThrowingTaskGroup(of: UInt32?.self) { group in
                for _ in 0..<20 {
                    group.addTask { try await client.add(more, to: "\(graph)").firstAdded }
                }
                return try await group.reduce(into: [UInt32?]()) { $0.append($1) }
            }
            #expect(answers == Array(repeating: 1, count: 20))
            #expect(try await client.graph("\(graph)").counts.total == 2)
        }
    }

    @Test func `the keys of the last additions are remembered`() async throws {
        var limits = Limits()
        limits.additionKeys = 2
        try await program.serve(program.open(limits: limits)) { client in
            let first = program.submission(program.registered("a", kind: "Blur"), open: true)
            let graph = try await client.submit(first).id
            func add(_ number: Int) async throws -> UInt32? {
                let more = program.registered("b\(number)", kind: "Blur")
                let addition = program.submission(more, key: "k\(number)")
                return try await client.add(addition, to: "\(graph)").firstAdded
            }
            for number in 1...3 { #expect(try await add(number) == UInt32(number)) }
            #expect(try await add(3) == 3)
            #expect(try await add(2) == 2)
            // The first is forgotten: it is another of the same name now.
            #expect(try await code { _ = try await add(1) } == .invalid)
        }
    }

    // MARK: - Queues

    @Test func `a queue tells what it has of all graphs, page by page`() async throws {
        program.add("Blur") { _ in .returned(.empty) }
        try await program.serve(program.open()) { client in
            var change = QueueChange()
            change.maxConcurrentOperationCount = 1
            _ = try await client.setQueue("images", change)
            let hold = try await client.suspend(.queue("images"), SuspendRequest())
            #expect(hold.isEffective)
            func operation(_ name: String, queue: String) -> OperationDescription {
                var operation = program.registered(name, kind: "Blur")
                operation.queue = queue
                return operation
            }
            for _ in 0..<2 {
                _ = try await client.submit(
                    program.submission(
                        operation("a", queue: "images"),
                        operation("other", queue: "sounds"),
                        operation("b", queue: "images")
                    )
                )
            }
            #expect(try await client.queue("images").unfinished == 4)
            var query = QueueOperationQuery()
            query.limit = 3
            let page = try await client.operations(ofQueue: "images", query)
            #expect(page.operations.map(\.name) == ["a", "b", "a"])
            query.after = page.next
            let rest = try await client.operations(ofQueue: "images", query)
            #expect(rest.operations.map { "\($0.graph)/\($0.index)" } == ["1/2"])
            #expect(rest.next == nil)
            // The answer to a wait that was in vain says so.
            let waited = try await client.waitUntilEmpty(queue: "images", within: 0.01)
            #expect(waited.unfinished == 4)

            async let empty = client.waitUntilEmpty(queue: "images", within: 3_600)
            _ = try await client.resume(.queue("images"))
            #expect(try await empty.unfinished == 0)
            let none = try await client.operations(ofQueue: "images", QueueOperationQuery())
            #expect(none.operations.isEmpty)
            query = QueueOperationQuery()
            query.outcome = .succeeded
            let done = try await client.operations(ofQueue: "images", query)
            #expect(done.operations.map(\.name) == ["a", "b", "a", "b"])
            query.after = "3"
            let wrong = try await code {
                _ = try await client.operations(ofQueue: "images", query)
            }
            #expect(wrong == .invalid)
            let missing = try await code {
                _ = try await client.waitUntilEmpty(queue: "films", within: 1)
            }
            #expect(missing == .notFound)
        }
    }

    // MARK: - Operations

    @Test func `an operation shows its input and how it is run`() async throws {
        try await program.serve(program.open()) { client in
            var operation = program.registered("a", kind: "Blur", input: "{\"radius\":2}")
            operation.timeout = .milliseconds(1_500)
            operation.qualityOfService = .utility
            let plain = OperationDescription(name: "b", work: .wait(.seconds(60)))
            let given = Payload(bytes: Array("[1]".utf8))
            let outside = OperationDescription(name: "d", work: .external(input: given))
            let graph = try await client.submit(
                program.submission(operation, plain, program.registered("c", kind: "Blur"), outside)
            )
            func selector(_ name: String) -> OperationSelector {
                OperationSelector(graph: "\(graph.id)", operation: name)
            }
            #expect(
                try await client.input(of: selector("a"))?.bytes == Array("{\"radius\":2}".utf8)
            )
            #expect(try await client.input(of: selector("b")) == nil)
            #expect(try await client.input(of: selector("c")) == nil)
            #expect(try await client.input(of: selector("d")) == given)
            let detail = try await client.operation(selector("a"))
            #expect(detail.timeout == 1.5 && detail.qualityOfService == "utility")
            #expect(try await client.operation(selector("b")).qualityOfService == nil)
        }
    }

    @Test func `what runs shows how far it is, until it ends`() async throws {
        let go = Latch()
        program.add("Slow") { invocation in
            invocation.report(ReportedProgress(fraction: 0.25, text: "reading"))
            // Of these the last one counts.
            for step in 50...75 {
                invocation.report(ReportedProgress(fraction: Double(step) / 100, text: nil))
            }
            await go.wait()
            return .returned(.empty)
        }
        try await program.serve(program.open()) { client in
            let submission = program.submission(program.registered("a", kind: "Slow"))
            let graph = try await client.submit(submission)
            let selector = OperationSelector(graph: "\(graph.id)", operation: "a")
            var seen: [ReportedProgress] = []
            while seen.last?.fraction != 0.75 {
                let view = try await client.operation(selector).operation
                if let progress = view.progress, progress != seen.last { seen.append(progress) }
            }
            #expect(seen.count <= 2)
            #expect(seen.last == ReportedProgress(fraction: 0.75, text: nil))
            go.open()
            _ = try await program.events(of: graph.id, through: .graphFinished, client)
            let ended = try await client.operation(selector).operation
            #expect(ended.progress == nil && ended.outcome == .succeeded)
        }
    }

    @Test func `what was thrown comes back as it was, and pages stay small`() async throws {
        let thrown = OperationError.thrown(
            type: "DiskError",
            message: "no space",
            payload: Array("\"\(String(repeating: "x", count: 1_000_000))\"".utf8)
        )
        program.add("Fail") { _ in .failed(thrown) }
        try await program.serve(program.open()) { client in
            let count = 12
            let operations = (0..<count).map { program.registered("o\($0)", kind: "Fail") }
            let graph = try await client.submit(
                Submission(graph: GraphDescription(name: "fails", operations: operations))
            )
            let events = try await program.events(of: graph.id, through: .graphFinished, client)
            let errors = events.filter { $0.kind.known == .finished }.compactMap(\.error)
            #expect(errors.map { OperationError($0) } == Array(repeating: thrown, count: count))
            var query = OperationQuery()
            var sizes: [Int] = []
            repeat {
                let page = try await client.operations(of: "\(graph.id)", query)
                sizes.append(page.operations.count)
                query.after = page.next
                let shown = page.operations.compactMap(\.error)
                #expect(shown.allSatisfy { OperationError($0) == thrown })
            } while query.after != nil
            #expect(sizes == [9, 3])
        }
    }
}
