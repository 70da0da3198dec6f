import OperonCore
import OperonModel
import Testing

/// What a worker does with an operation that it was given and cannot read.
@Suite struct UnreadableOperationTests {
    @Test func `it ends as undecodable, for the reason that the reader gave`() {
        var worker = WelcomedWorker()

        let effects = worker.receive(unreadable: [worker.unreadable(1)])

        #expect(effects.starts.isEmpty)
        #expect(effects.stops.isEmpty)
        #expect(effects.notices.isEmpty)
        #expect(
            batches(effects) == [
                EventBatch(
                    firstNumber: 1,
                    sentAt: worker.now,
                    events: [worker.undecodable(1)]
                )
            ]
        )
    }

    @Test func `its readable neighbours start`() {
        var worker = WelcomedWorker()

        let effects = worker.receive(
            operations: [worker.operation(1), worker.operation(3)],
            unreadable: [worker.unreadable(2)]
        )

        #expect(effects.starts.map(\.held) == [worker.held(1), worker.held(3)])
        #expect(batches(effects).flatMap(\.events) == [worker.undecodable(2)])
    }

    @Test func `it takes no slot`() {
        var worker = WelcomedWorker(slots: 1)
        worker.receive(unreadable: [worker.unreadable(1), worker.unreadable(2)])

        let effects = worker.receive(operations: [worker.operation(3)])

        #expect(effects.starts.map(\.held) == [worker.held(3)])
    }

    @Test func `a copy of it is ignored until its end is acknowledged`() {
        var worker = WelcomedWorker()
        worker.receive(unreadable: [worker.unreadable(1)])

        let copy = worker.receive(unreadable: [worker.unreadable(1)])

        #expect(copy.notices == [.dispatchIgnored(worker.held(1).attempt)])
        #expect(batches(copy).isEmpty)
    }

    @Test func `two of it in one dispatch end once`() {
        var worker = WelcomedWorker()

        let effects = worker.receive(unreadable: [worker.unreadable(1), worker.unreadable(1)])

        #expect(effects.notices == [.dispatchIgnored(worker.held(1).attempt)])
        #expect(batches(effects).flatMap(\.events) == [worker.undecodable(1)])
    }

    @Test func `an unreadable copy of what runs does not end it`() {
        var worker = WelcomedWorker()
        worker.receive(operations: [worker.operation(1)])
        let result = AttemptResult(end: .succeeded, startedAt: worker.now, endedAt: worker.now)

        let copy = worker.receive(unreadable: [worker.unreadable(1)])
        let end = worker.handle(.ended(worker.held(1).attempt, result))

        #expect(copy.notices == [.dispatchIgnored(worker.held(1).attempt)])
        #expect(batches(copy).isEmpty)
        #expect(batches(end).flatMap(\.events) == [.finished(worker.held(1), result)])
    }

    @Test func `its end is sent again after a new connection until it is acknowledged`() {
        var worker = WelcomedWorker()
        let failed = worker.receive(unreadable: [worker.unreadable(1)])
        let event = batches(failed).flatMap(\.events)

        let again = worker.reconnect(acknowledged: 0)
        let afterwards = worker.reconnect(acknowledged: 1)

        #expect(event == [worker.undecodable(1)])
        #expect(batches(again).flatMap(\.events) == event)
        #expect(batches(afterwards).isEmpty)
    }

    @Test func `the next beat counts its end as sent and does not list it`() {
        var worker = WelcomedWorker()
        worker.receive(
            operations: [worker.operation(1)],
            unreadable: [worker.unreadable(2)]
        )

        worker.now = worker.now + .seconds(2)
        let beats = worker.handle(.timeReached).messages.compactMap { message -> Beat? in
            guard case .beat(let beat) = message.envelope.body else { return nil }
            return beat
        }

        #expect(beats.map(\.sent) == [1])
        #expect(beats.map(\.held) == [[worker.held(1)]])
    }

    @Test func `before a welcome it is dropped without a word, as everything else is`() {
        var worker = WelcomedWorker()
        worker.handle(.linkDown)
        worker.handle(.linkUp(connection: 2))

        let early = worker.receive(unreadable: [worker.unreadable(1)])
        let welcomed = worker.welcome(acknowledged: 0)

        #expect(batches(early).isEmpty)
        #expect(batches(welcomed).isEmpty)
    }

    @Test func `a recall of it adds nothing to its end`() {
        var worker = WelcomedWorker()
        worker.receive(unreadable: [worker.unreadable(1)])

        let effects = worker.receive(
            .control(Control(acknowledged: 0, orders: [.recall(worker.held(1))]))
        )

        #expect(batches(effects).isEmpty)
    }
}

// MARK: -

private func batches(_ effects: WorkerAgent.Effects) -> [EventBatch] {
    effects.messages.compactMap { message in
        guard case .events(let batch) = message.envelope.body else { return nil }
        return batch
    }
}

/// A worker with a coordinator that has welcomed it, at a moment that the test moves.
private struct WelcomedWorker {
    private var agent: WorkerAgent
    private var sequence: UInt64 = 0
    private var connection: UInt32 = 1
    var now = Timestamp(nanoseconds: 1_000_000_000_000)

    init(slots: Int = 4) {
        agent = WorkerAgent(
            configuration: WorkerAgent.Configuration(
                name: "w",
                incarnation: Incarnation(rawValue: 7),
                host: "h",
                processID: 1,
                slots: slots,
                kinds: Work.builtInKinds
            )
        )
        handle(.linkUp(connection: connection))
        welcome(acknowledged: 0)
    }

    @discardableResult
    mutating func handle(_ event: WorkerAgent.Event) -> WorkerAgent.Effects {
        var effects = WorkerAgent.Effects()
        agent.handle(event, at: now, into: &effects)
        return effects
    }

    @discardableResult
    mutating func receive(_ body: CoordinatorMessage) -> WorkerAgent.Effects {
        sequence += 1
        return handle(
            .message(
                CoordinatorEnvelope(
                    reign: Reign(rawValue: 9),
                    epoch: Epoch(rawValue: 1),
                    sequence: sequence,
                    sender: .none,
                    body: body
                )
            )
        )
    }

    @discardableResult
    mutating func receive(
        operations: [DispatchedOperation] = [],
        unreadable: [UnreadableOperation] = []
    ) -> WorkerAgent.Effects {
        receive(
            .dispatch(
                Dispatch(acknowledged: 0, operations: operations, unreadable: unreadable)
            )
        )
    }

    @discardableResult
    mutating func welcome(acknowledged: UInt64) -> WorkerAgent.Effects {
        receive(
            .welcome(
                Welcome(
                    answers: now,
                    lease: .seconds(6),
                    beat: .seconds(2),
                    eventWindow: 1 << 20,
                    orphanAfter: .seconds(60),
                    acknowledged: acknowledged
                )
            )
        )
    }

    /// What follows from the welcome on another connection.
    mutating func reconnect(acknowledged: UInt64) -> WorkerAgent.Effects {
        handle(.linkDown)
        connection += 1
        sequence = 0
        handle(.linkUp(connection: connection))
        return welcome(acknowledged: acknowledged)
    }

    // MARK: - What it is given

    func held(_ number: UInt64) -> HeldAttempt {
        HeldAttempt(
            attempt: AttemptID(epoch: Epoch(rawValue: 1), number: number),
            operation: OperationID(graph: GraphID(rawValue: 1), index: UInt32(number))
        )
    }

    func unreadable(_ number: UInt64) -> UnreadableOperation {
        UnreadableOperation(held: held(number), why: "there is no work in number \(number)")
    }

    func undecodable(_ number: UInt64) -> WorkerEvent {
        .finished(
            held(number),
            AttemptResult(
                end: .failed(.undecodable("there is no work in number \(number)")),
                startedAt: now,
                endedAt: now
            )
        )
    }

    func operation(_ number: UInt64) -> DispatchedOperation {
        DispatchedOperation(
            held: held(number),
            ordinal: 1,
            graphName: "g",
            name: "n\(number)",
            queue: "default",
            work: .nothing,
            priority: .normal,
            rank: 0,
            timeout: nil,
            qualityOfService: .default,
            inputs: []
        )
    }
}
