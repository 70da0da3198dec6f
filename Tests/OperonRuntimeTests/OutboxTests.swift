import OperonCore
import OperonModel
import OperonPorts
import OperonWire
import Testing

@testable import OperonRuntime

/// What waits for the transport together travels together, and arrives as if it had not.
@Suite struct OutboxTests {
    // MARK: - The coordinator's

    @Test func `operations that wait for one worker travel in one message`() {
        var outbox = CoordinatorOutbox(operationsPerMessage: 64)
        outbox.dispatch([1], to: a, sequence: 1, acknowledged: 5)
        outbox.dispatch([2, 3], to: a, sequence: 2, acknowledged: 7)
        let items = outbox.take()
        #expect(items.map(\.numbers) == [[1, 2, 3]])
        #expect(items.map(\.envelope.sequence) == [2])
        #expect(items.map(\.acknowledged) == [7])
        #expect(outbox.isEmpty)
    }

    @Test func `operations of other workers between them change nothing`() {
        var outbox = CoordinatorOutbox(operationsPerMessage: 64)
        outbox.dispatch([1], to: a, sequence: 1)
        outbox.dispatch([2], to: b, sequence: 1)
        outbox.dispatch([3], to: a, sequence: 2)
        #expect(outbox.take().map(\.numbers) == [[1, 3], [2]])
    }

    @Test func `an order to the worker is not overtaken`() {
        var outbox = CoordinatorOutbox(operationsPerMessage: 64)
        outbox.dispatch([1], to: a, sequence: 1)
        outbox.append(
            envelope(.control(Control(acknowledged: 9)), sequence: 2),
            to: .worker(a),
            priority: 4
        )
        outbox.dispatch([2], to: a, sequence: 3)
        let items = outbox.take()
        #expect(items.map(\.numbers) == [[1], [], [2]])
        #expect(items.map(\.envelope.sequence) == [1, 2, 3])
    }

    @Test func `a word to every worker is not overtaken`() {
        var outbox = CoordinatorOutbox(operationsPerMessage: 64)
        outbox.dispatch([1], to: a, sequence: 1)
        outbox.append(envelope(.resync, sequence: 0), to: .everyWorker, priority: 4)
        outbox.dispatch([2], to: a, sequence: 2)
        #expect(outbox.take().map(\.numbers) == [[1], [], [2]])
    }

    @Test func `a message has no more operations than it may`() {
        var outbox = CoordinatorOutbox(operationsPerMessage: 2)
        for number: UInt64 in 1...5 { outbox.dispatch([number], to: a, sequence: number) }
        #expect(outbox.take().map(\.numbers) == [[1, 2], [3, 4], [5]])
    }

    @Test func `large inputs travel apart`() {
        var outbox = CoordinatorOutbox(operationsPerMessage: 64)
        let half = CoordinatorOutbox.joinedBytesMax / 2
        outbox.dispatch([1], to: a, sequence: 1, inputBytes: half)
        outbox.dispatch([2], to: a, sequence: 2, inputBytes: half)
        outbox.dispatch([3], to: a, sequence: 3)
        #expect(outbox.take().map(\.numbers) == [[1], [2, 3]])
    }

    @Test func `operations of another priority travel apart`() {
        var outbox = CoordinatorOutbox(operationsPerMessage: 64)
        outbox.dispatch([1], to: a, sequence: 1, priority: 2)
        outbox.dispatch([2], to: a, sequence: 2, priority: 4)
        #expect(outbox.take().map(\.numbers) == [[1], [2]])
    }

    @Test func `nothing joins what was taken`() {
        var outbox = CoordinatorOutbox(operationsPerMessage: 64)
        outbox.dispatch([1], to: a, sequence: 1)
        #expect(outbox.take().map(\.numbers) == [[1]])
        outbox.dispatch([2], to: a, sequence: 2)
        #expect(outbox.take().map(\.numbers) == [[2]])
    }

    @Test func `of answers to beats that wait for one worker the last one is sent`() {
        var outbox = CoordinatorOutbox(operationsPerMessage: 64)
        for beat in 1...1_000 as ClosedRange<UInt64> {
            for address in [a, b] {
                let control = Control(answers: Timestamp(nanoseconds: 1), acknowledged: 0)
                let answer = envelope(CoordinatorMessage.control(control), sequence: beat)
                outbox.append(answer, to: .worker(address), priority: 4)
            }
        }
        outbox.append(
            envelope(.control(Control(acknowledged: 9)), sequence: 1_001),
            to: .worker(a),
            priority: 4
        )
        #expect(outbox.take().map(\.envelope.sequence) == [1_000, 1_000, 1_001])
        #expect(outbox.isEmpty)
    }

    // MARK: - What is too large

    private func dispatch(_ works: [Work]) -> CoordinatorEnvelope {
        let operations = works.enumerated().map { number, work in
            var operation = DispatchedOperation(
                held: held(UInt64(number) + 1),
                ordinal: 1,
                graphName: "graph",
                name: "operation",
                queue: "default",
                work: work,
                priority: .normal,
                rank: 0,
                timeout: nil,
                qualityOfService: .default,
                inputs: []
            )
            operation.traceParent = ""
            return operation
        }
        return envelope(.dispatch(Dispatch(acknowledged: 0, operations: operations)), sequence: 7)
    }

    @Test func `an operation that no message can carry fails alone`() {
        let long = String(repeating: "d", count: 9 << 20)
        let message = dispatch([
            .command(CommandDescription(arguments: ["true"])),
            .command(CommandDescription(arguments: ["true"], directory: long)),
            .command(CommandDescription(arguments: ["true"])),
        ])
        let parts = message.parts(within: Limits())
        #expect(parts.tooLarge.map { $0.held } == [held(2)])
        #expect(parts.tooLarge.allSatisfy { $0.bytes > 9 << 20 && $0.bytes < (9 << 20) + 1_000 })
        guard case .dispatch(let rest)? = parts.fitting?.body else {
            Issue.record("nothing is left")
            return
        }
        #expect(rest.operations.map(\.held) == [held(1), held(3)])
        #expect(parts.fitting?.sequence == 7)
    }

    @Test func `operations that are too large together are sent as far as they fit`() {
        let input = Payload(bytes: Array(repeating: 0, count: 1 << 20))
        let works = Array(repeating: Work.registered(kind: "kind", input: input), count: 20)
        let parts = dispatch(works).parts(within: Limits())
        #expect(parts.tooLarge.isEmpty)
        guard case .dispatch(let rest)? = parts.fitting?.body else {
            Issue.record("nothing is left")
            return
        }
        #expect(rest.operations.map(\.held) == (1...7).map { held($0) })
    }

    @Test func `verdicts that are too large together are sent as far as they fit`() throws {
        let output = Payload(bytes: Array(repeating: 0, count: 1 << 20))
        let verdicts = (1...20 as ClosedRange<UInt64>).map {
            Verdict(number: $0, event: $0, content: .output(output))
        }
        let control = Control(
            answers: .zero,
            acknowledged: 3,
            orders: [.drain],
            verdicts: verdicts
        )
        let parts = envelope(CoordinatorMessage.control(control)).parts(within: Limits())
        guard case .control(let rest)? = parts.fitting?.body else {
            Issue.record("nothing is left")
            return
        }
        #expect(rest.verdicts.map(\.number) == Array(1...7))
        #expect(rest.orders == [.drain] && rest.acknowledged == 3)
    }

    @Test func `what takes bytes in a message is counted before it is encoded`() throws {
        let text = String(repeating: "t", count: 10_000)
        let works: [Work] = [
            .command(CommandDescription(arguments: [text])),
            .command(CommandDescription(arguments: ["a"], environment: ["A": text])),
            .command(CommandDescription(arguments: ["a"], inheritEnvironment: [text])),
            .command(
                CommandDescription(
                    arguments: ["a"],
                    inheritEnvironment: Array(repeating: "A", count: 10_000)
                )
            ),
            .command(CommandDescription(arguments: ["a"], directory: text)),
            .registered(kind: text, input: .empty),
            .registered(kind: "K", input: Payload(contentType: text, bytes: [1])),
        ]
        for work in works {
            let message = dispatch([work])
            guard case .dispatch(let dispatch) = message.body else { continue }
            let counted = dispatch.operations[0].approximateBytes
            #expect(try counted >= Wire.encode(message).count, "\(work.kind)")
        }
    }

    // MARK: - The worker's

    @Test func `events that wait travel in one message as old as the last`() {
        var outbox = WorkerOutbox(configuration())
        outbox.report([1, 2], from: 1, at: 10)
        outbox.report([3], from: 3, at: 20)
        let batches = outbox.take().compactMap(\.batch)
        #expect(batches.map(\.numbers) == [[1, 2, 3]])
        #expect(batches.map(\.firstNumber) == [1])
        #expect(batches.map(\.sentAt) == [Timestamp(nanoseconds: 20)])
        #expect(outbox.isEmpty)
    }

    @Test func `events do not overtake a beat`() {
        var outbox = WorkerOutbox(configuration())
        outbox.report([1], from: 1, at: 10)
        let beat = Beat(sentAt: .zero, received: 0, sent: 1, held: [], isDraining: false)
        outbox.append(.message(.beats, envelope(.beat(beat))))
        outbox.report([2], from: 2, at: 20)
        #expect(outbox.take().map { $0.batch?.numbers } == [[1], nil, [2]])
    }

    @Test func `events that are sent again travel apart from what went before`() {
        var outbox = WorkerOutbox(configuration())
        outbox.report([1, 2], from: 1, at: 10)
        outbox.report([2, 3], from: 2, at: 20)
        #expect(outbox.take().map { $0.batch?.numbers } == [[1, 2], [2, 3]])
    }

    @Test func `events of another connection travel apart`() {
        var outbox = WorkerOutbox(configuration())
        outbox.report([1], from: 1, at: 10, connection: 1)
        outbox.report([2], from: 2, at: 20, connection: 2)
        #expect(outbox.take().map { $0.batch?.numbers } == [[1], [2]])
    }

    @Test func `a message has no more events than it may`() {
        var configuration = configuration()
        configuration.eventsPerMessage = 2
        var outbox = WorkerOutbox(configuration)
        for number: UInt64 in 1...5 { outbox.report([number], from: number, at: 10) }
        #expect(outbox.take().map { $0.batch?.numbers } == [[1, 2], [3, 4], [5]])
    }

    @Test func `a message has no more bytes of events than it may`() {
        var configuration = configuration()
        configuration.eventBytesPerMessage = 10_000
        var outbox = WorkerOutbox(configuration)
        for number: UInt64 in 1...4 {
            outbox.report([number], from: number, at: 10, outputBytes: 4_000)
        }
        #expect(outbox.take().map { $0.batch?.numbers } == [[1, 2], [3, 4]])
    }

    // MARK: - Support

    private let a = WorkerAddress(incarnation: Incarnation(rawValue: 1), connection: 1)
    private let b = WorkerAddress(incarnation: Incarnation(rawValue: 2), connection: 1)

    private func configuration() -> WorkerAgent.Configuration {
        WorkerAgent.Configuration(
            name: "worker",
            incarnation: Incarnation(rawValue: 1),
            host: "host",
            processID: 1,
            slots: 1,
            kinds: []
        )
    }
}

private func envelope<Body>(
    _ body: Body,
    sequence: UInt64 = 0,
    connection: UInt32 = 1
) -> Envelope<Body> {
    Envelope(
        reign: Reign(rawValue: 1),
        epoch: Epoch(rawValue: 1),
        sequence: sequence,
        sender: WorkerIdentity(
            name: "worker",
            incarnation: Incarnation(rawValue: 1),
            connection: connection
        ),
        body: body
    )
}

private func held(_ number: UInt64) -> HeldAttempt {
    HeldAttempt(
        attempt: AttemptID(epoch: Epoch(rawValue: 1), number: number),
        operation: OperationID(graph: GraphID(rawValue: 0), index: UInt32(number))
    )
}

extension CoordinatorOutbox {
    fileprivate mutating func dispatch(
        _ numbers: [UInt64],
        to worker: WorkerAddress,
        sequence: UInt64,
        acknowledged: UInt64 = 0,
        priority: UInt8 = 2,
        inputBytes: Int = 0
    ) {
        let operations = numbers.map { number in
            DispatchedOperation(
                held: held(number),
                ordinal: 1,
                graphName: "graph",
                name: "operation",
                queue: "default",
                work: .registered(
                    kind: "kind",
                    input: Payload(bytes: Array(repeating: 0, count: inputBytes))
                ),
                priority: .normal,
                rank: 0,
                timeout: nil,
                qualityOfService: .default,
                inputs: []
            )
        }
        let dispatch = Dispatch(acknowledged: acknowledged, operations: operations)
        append(
            envelope(.dispatch(dispatch), sequence: sequence),
            to: .worker(worker),
            priority: priority
        )
    }
}

extension CoordinatorOutbox.Item {
    /// Of the attempts that it dispatches.
    fileprivate var numbers: [UInt64] {
        guard case .dispatch(let dispatch) = envelope.body else { return [] }
        return dispatch.operations.map(\.held.attempt.number)
    }

    fileprivate var acknowledged: UInt64? {
        guard case .dispatch(let dispatch) = envelope.body else { return nil }
        return dispatch.acknowledged
    }
}

extension WorkerOutbox {
    fileprivate mutating func report(
        _ numbers: [UInt64],
        from firstNumber: UInt64,
        at nanoseconds: Int64,
        connection: UInt32 = 1,
        outputBytes: Int = 0
    ) {
        let events = numbers.map { number in
            WorkerEvent.finished(
                held(number),
                AttemptResult(
                    end: .succeeded,
                    startedAt: .zero,
                    endedAt: .zero,
                    output: Payload(bytes: Array(repeating: 0, count: outputBytes))
                )
            )
        }
        let batch = EventBatch(
            firstNumber: firstNumber,
            sentAt: Timestamp(nanoseconds: nanoseconds),
            events: events
        )
        append(.message(.events, envelope(.events(batch), connection: connection)))
    }
}

extension WorkerOutbox.Item {
    fileprivate var batch: EventBatch? {
        guard case .message(.events, let envelope) = self,
            case .events(let batch) = envelope.body
        else { return nil }
        return batch
    }
}

extension EventBatch {
    fileprivate var numbers: [UInt64] { events.map(\.held.attempt.number) }
}
