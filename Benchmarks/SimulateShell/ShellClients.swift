import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime

// Clients submit graphs, ask until they have an answer, and compare what they are told.
extension ShellSimulation {
    /// An answer of a coordinator that has not died; the request is made again until there is one.
    func ask<Answer: Sendable>(
        _ request: (LocalCoordinator) async throws(ClientError) -> Answer
    ) async throws(ClientError) -> Answer {
        while !isEnding {
            if let process { await process.isOpen.wait() }
            if let process, !process.isDead, let client = process.client {
                do throws(ClientError) {
                    let answer = try await request(client)
                    // Otherwise, the connection broke before it arrived.
                    if !process.isDead { return answer }
                } catch {
                    if !process.isDead, error.code != .unavailable { throw error }
                }
            }
            await pause(upTo: .milliseconds(200))
        }
        throw ClientError(.unavailable, "The seed has ended.")
    }

    func pause(upTo longest: Duration) async {
        try? await machine.sleep(for: machine.draw(upTo: longest))
    }

    func runClient(_ client: Int) async {
        for number in 0..<scenario.graphsPerClient {
            await pause(upTo: .seconds(5))
            let graph = drawGraph("c\(client)g\(number)", after: number > 0 ? "c\(client)g0" : nil)
            do throws(ClientError) {
                try await run(graph)
            } catch {
                if dependsOnDropped(graph), error.code == .invalid {
                    // It may have been accepted before that, if the answer was lost.
                    ledger.finished(graph.name)
                } else if !isEnding {
                    ledger.breaks("a client of \(graph.name) is refused: \(error)")
                }
            }
            if isEnding { return }
        }
    }

    /// Whether it depends on a graph that may have been dropped.
    private func dependsOnDropped(_ graph: GraphDescription) -> Bool {
        scenario.retention != nil
            && graph.operations.contains { $0.dependencies.contains { $0.name.contains("/") } }
    }

    /// - Parameter other: A graph on which it may depend.
    private func drawGraph(_ name: String, after other: String?) -> GraphDescription {
        var operations: [OperationDescription] = []
        for index in 0..<1 + machine.draw(below: scenario.operationsMax) {
            let name = "o\(index)"
            var operation = OperationDescription(name: name, work: Self.work(of: name))
            var names: Set<String> = []
            for _ in 0..<min(index, machine.draw(below: 4)) {
                let other = operations[machine.draw(below: index)].name
                guard names.insert(other).inserted else { continue }
                let condition: DependencyCondition =
                    machine.draw(0.8) ? .unlessFailed : machine.pick([.finished, .failed])
                operation.dependencies.append(DependencyDescription(other, condition))
            }
            if let other, machine.draw(0.15) {
                let number = machine.draw(below: ledger.operationCount(of: other))
                let name = ledger.name(of: number, in: other)
                operation.dependencies.append(DependencyDescription("\(other)/\(name)"))
            }
            if machine.draw(0.1) {
                operation.notBefore = machine.rightDate + machine.draw(upTo: .seconds(8))
            }
            if machine.draw(0.15) { operation.exclusive = ["key"] }
            if machine.draw(0.2) { operation.retry = RetryPolicy(limit: 1) }
            operations.append(operation)
        }
        return GraphDescription(name: name, operations: operations)
    }

    private func run(_ graph: GraphDescription) async throws(ClientError) {
        ledger.submits(graph)
        var submission = Submission(graph: graph)
        submission.idempotencyKey = graph.name
        submission.isOpen = machine.draw(0.2)
        let given = submission
        let id = try await submit(given)
        let name = "\(id)"
        if scenario.retention == nil, machine.draw(0.2) {
            await pause(upTo: .seconds(4))
            if try await submit(given) != id { return }
        }
        if given.isOpen { try await addAndClose(name, graph) }
        if machine.draw(0.15) { try await cancel(name, graph.name) }
        if machine.draw(0.15) { try await suspendForAWhile(name) }
        guard try await waitForEnd(of: name, graph.name) else { return }
        if machine.draw(0.3) {
            var request = RetryRequest()
            request.cancelled = true
            let all = request
            do throws(ClientError) {
                _ = try await ask { client async throws(ClientError) in
                    // Each time: if the answer is lost, there may be another round.
                    ledger.retries(graph.name)
                    return try await client.retry(graph: name, all)
                }
            } catch {
                // There is nothing to retry, or nothing is left of it.
                guard error.code == .conflict || isDropped(error) else { throw error }
            }
            guard try await waitForEnd(of: name, graph.name) else { return }
        }
        note("\(graph.name) is finished")
        ledger.finished(graph.name)
    }

    private func submit(_ submission: Submission) async throws(ClientError) -> UInt32 {
        let view = try await ask { client async throws(ClientError) in
            try await client.submit(submission)
        }
        note("\(submission.graph.name) is graph \(view.id)")
        ledger.acknowledged(submission.graph.name, as: view.id)
        return view.id
    }

    private func addAndClose(_ id: String, _ graph: GraphDescription) async throws(ClientError) {
        for number in 0..<1 + machine.draw(below: 3) {
            await pause(upTo: .seconds(3))
            let name = "x\(number)"
            var operation = OperationDescription(name: name, work: Self.work(of: name))
            let other = graph.operations[machine.draw(below: graph.operations.count)].name
            operation.dependencies = [DependencyDescription(other)]
            let addition = GraphDescription(name: graph.name, operations: [operation])
            ledger.adds(addition, to: graph.name)
            var submission = Submission(graph: addition)
            submission.idempotencyKey = name
            let given = submission
            _ = try await ask { client async throws(ClientError) in
                try await client.add(given, to: id)
            }
            ledger.added(addition, to: graph.name)
        }
        do throws(ClientError) {
            _ = try await ask { client async throws(ClientError) in
                try await client.close(graph: id)
            }
        } catch {
            // It was closed before, but the answer was lost.
            guard error.code == .conflict || isDropped(error) else { throw error }
        }
    }

    private static func work(of name: String) -> Work {
        .registered(kind: kind, input: Payload(bytes: Array("\"\(name)\"".utf8)))
    }

    private func cancel(_ id: String, _ name: String) async throws(ClientError) {
        await pause(upTo: .seconds(2))
        ledger.cancels(name)
        note("\(name) is cancelled")
        var request = CancelRequest()
        if machine.draw(0.5) { request.wait = 5 }
        let given = request
        do throws(ClientError) {
            let view = try await ask { client async throws(ClientError) in
                try await client.cancel(.graph(id), given)
            }
            guard view.isEffective, given.wait != nil else { return }
            for operation in try await operations(of: id) where operation.outcome == nil {
                ledger.breaks("\(name)/\(operation.name) goes on after a cancel has taken effect")
            }
        } catch {
            guard [.conflict, .timedOut].contains(error.code) || isDropped(error) else {
                throw error
            }
        }
    }

    private func suspendForAWhile(_ id: String) async throws(ClientError) {
        do throws(ClientError) {
            _ = try await ask { client async throws(ClientError) in
                try await client.suspend(.graph(id), SuspendRequest())
            }
            await pause(upTo: .seconds(5))
            _ = try await ask { client async throws(ClientError) in
                try await client.resume(.graph(id))
            }
        } catch {
            guard error.code == .conflict || isDropped(error) else { throw error }
        }
    }

    private func isDropped(_ error: ClientError) -> Bool {
        scenario.retention != nil && error.code == .notFound
    }

    /// Returns whether all of it is known: it may be dropped after its end.
    private func waitForEnd(of id: String, _ name: String) async throws(ClientError) -> Bool {
        do throws(ClientError) {
            while !isEnding {
                let view = try await ask { client async throws(ClientError) in
                    try await client.graph(id)
                }
                let page = try await operations(of: id)
                ledger.told(page, of: name)
                if view.status.isFinished {
                    try await compareOutputs(page, of: id, name)
                    return true
                }
                if machine.draw(0.5), let process, let service = process.service {
                    // As a program does that has its coordinator within itself.
                    note("a client waits for \(name) with coordinator \(process.number)")
                    await service.waitUntilFinished(GraphID(rawValue: view.id))
                    note("it has waited for \(name)")
                } else {
                    await pause(upTo: .seconds(1))
                }
            }
            return false
        } catch {
            guard isDropped(error) else { throw error }
            ledger.finished(name)
            return false
        }
    }

    private func operations(of id: String) async throws(ClientError) -> [OperationView] {
        try await ask { client async throws(ClientError) in
            try await client.operations(of: id, OperationQuery())
        }.operations
    }

    private func compareOutputs(
        _ views: [OperationView],
        of id: String,
        _ name: String
    ) async throws(ClientError) {
        var outputs: [String: String] = [:]
        for view in views where view.outcome == .succeeded {
            let selector = OperationSelector(graph: id, operation: view.name)
            let output = try await ask { client async throws(ClientError) in
                try await client.output(of: selector)
            }
            outputs[view.name] = output.map { String(decoding: $0.bytes, as: UTF8.self) }
            try await compareLog(of: selector, "\(name)/\(view.name)")
        }
        ledger.told(outputs, views, of: name)
    }

    private func compareLog(
        of operation: OperationSelector,
        _ key: String
    ) async throws(ClientError) {
        guard machine.draw(0.2) else { return }
        let log = try await ask { client async throws(ClientError) in
            let parts = try await client.log(of: .operation(operation), LogQuery())
            var log: [LogView] = []
            do {
                for try await part in parts { log.append(part) }
            } catch let error as ClientError {
                throw error
            } catch {
                throw ClientError(.unavailable, "\(error)")
            }
            return log
        }
        ledger.told(log, of: key)
    }

    // MARK: - Events

    /// Follows all events, from one coordinator to the next, until nobody does anything any more.
    func followEvents() async {
        while !isEnding {
            let query = EventQuery(after: ledger.lastEvent)
            do {
                let events = try await ask { client async throws(ClientError) in
                    try await client.events(query)
                }
                try await follow(events)
            } catch {
                note("events end: \(error)")
            }
            await pause(upTo: .milliseconds(300))
        }
    }

    private func follow(_ events: EventBatches) async throws {
        let process = process
        for try await batch in events {
            // What a dead process has said arrives nowhere.
            if process?.isDead != false || process !== self.process { return }
            for item in batch {
                switch item {
                case .event(let event): ledger.saw(event.view)
                case .gap(let first, let last): ledger.breaks("events \(first) to \(last) are lost")
                case .position: continue
                }
            }
        }
    }
}
