import OperonCore
import OperonModel
import Testing

/// Which effect waits for what: the order that makes a crash safe.
@Suite struct EffectGateTests {
    private let worker = WorkerAddress(
        incarnation: Incarnation(rawValue: 7),
        connection: 1
    )
    private let other = WorkerAddress(incarnation: Incarnation(rawValue: 8), connection: 1)
    private let operation = OperationID(graph: GraphID(rawValue: 0), index: 0)

    private func batch() -> StoreBatch {
        StoreBatch(wall: WallTime(nanosecondsSince1970: 1), records: [.graphAdded(operation.graph)])
    }

    private func effects(_ messages: Scheduler.Message...) -> Scheduler.Effects {
        var effects = Scheduler.Effects()
        effects.messages = messages
        return effects
    }

    private func dispatch(
        _ acknowledged: UInt64,
        to address: WorkerAddress,
        sequence: UInt64,
        exclusive: Bool = false
    ) -> Scheduler.Message {
        let held = HeldAttempt(
            attempt: AttemptID(epoch: Epoch(rawValue: 1), number: sequence),
            operation: operation
        )
        var grant = Scheduler.Grant(held: held, ordinal: 1, priority: .normal, rank: 0)
        if exclusive { grant.exclusiveLease = .seconds(60) }
        return Scheduler.Message(
            destination: .worker(address),
            sequence: sequence,
            body: .dispatch(acknowledged: acknowledged, [grant])
        )
    }

    private func answer(
        _ acknowledged: UInt64,
        to address: WorkerAddress,
        sequence: UInt64
    ) -> Scheduler.Message {
        Scheduler.Message(
            destination: .worker(address),
            sequence: sequence,
            body: .plain(.control(Control(acknowledged: acknowledged)))
        )
    }

    private func lowered(_ message: Scheduler.Message, to number: UInt64) -> Scheduler.Message {
        guard case .dispatch(_, let grants) = message.body else { return message }
        var message = message
        message.body = .dispatch(acknowledged: number, grants)
        return message
    }

    @Test func `what was acknowledged to a worker is forgotten when it is lost`() {
        let identity = WorkerIdentity(name: "w", incarnation: worker.incarnation, connection: 1)
        let none = StoreBatch(wall: WallTime(nanosecondsSince1970: 1))
        var lost = Scheduler.Effects()
        lost.notices = [.workerLost(identity)]
        // At once, and behind an answer that waits for its records.
        var gate = EffectGate()
        _ = gate.append(effects(answer(3, to: worker, sequence: 1)), none)
        #expect(gate.workerCount == 1)
        _ = gate.append(lost, none)
        #expect(gate.workerCount == 0)

        _ = gate.append(effects(answer(4, to: worker, sequence: 2)), batch())
        _ = gate.append(lost, batch())
        _ = gate.nextBatch()
        _ = gate.didCommit()
        _ = gate.didSync(upTo: gate.committed)
        #expect(gate.workerCount == 0)
    }

    @Test func `nothing is done before its records are committed`() {
        var gate = EffectGate()
        let message = dispatch(0, to: worker, sequence: 1)

        let taken1 = gate.append(effects(message), batch())
        #expect(taken1 == nil)
        let taken = gate.nextBatch()
        #expect(taken?.records == batch().records)
        #expect(gate.committed == 0)

        let taken2 = gate.didCommit()
        #expect(taken2.map(\.messages) == [[message]])
        #expect(gate.committed == 1)
        #expect(gate.wantsSync)
    }

    @Test func `what keeps nothing is done at once, unless something before it waits`() {
        var gate = EffectGate()
        let message = answer(3, to: worker, sequence: 1)
        let none = StoreBatch(wall: WallTime(nanosecondsSince1970: 1))

        let taken3 = gate.append(effects(message), none)
        #expect(taken3?.messages == [message])
        #expect(!gate.hasWaiting && !gate.wantsSync)

        let taken4 = gate.append(effects(), batch())
        #expect(taken4 == nil)
        let later = answer(3, to: worker, sequence: 2)
        let taken5 = gate.append(effects(later), none)
        #expect(taken5 == nil)
    }

    @Test func `what waits is committed together, in order`() {
        var gate = EffectGate()
        for _ in 0..<3 { #expect(gate.append(effects(), batch()) == nil) }

        let taken6 = gate.nextBatch()
        #expect(taken6?.records.count == 3)
        // One transaction at a time.
        let taken7 = gate.append(effects(), batch())
        #expect(taken7 == nil)
        let taken8 = gate.nextBatch()
        #expect(taken8 == nil)
        let taken9 = gate.didCommit()
        #expect(taken9.count == 3)
        #expect(gate.committed == 3)
        let taken10 = gate.nextBatch()
        #expect(taken10?.records.count == 1)
    }

    @Test func `a dispatch goes before the sync, with what is on the disk acknowledged`() {
        var gate = EffectGate()
        let first = dispatch(5, to: worker, sequence: 1)
        _ = gate.append(effects(first), batch())
        _ = gate.nextBatch()

        let taken11 = gate.didCommit()
        #expect(taken11.flatMap(\.messages) == [lowered(first, to: 0)])
        let taken12 = gate.didSync(upTo: 1)
        #expect(taken12 == [])
        #expect(!gate.wantsSync)

        let second = dispatch(9, to: worker, sequence: 2)
        _ = gate.append(effects(second), batch())
        _ = gate.nextBatch()
        let taken13 = gate.didCommit()
        #expect(taken13.flatMap(\.messages) == [lowered(second, to: 5)])
    }

    @Test func `an answer with a new acknowledgement waits for the sync, and all behind it`() {
        var gate = EffectGate()
        let first = answer(5, to: worker, sequence: 1)
        let second = dispatch(5, to: worker, sequence: 2)
        let elsewhere = dispatch(0, to: other, sequence: 1)
        _ = gate.append(effects(first, second, elsewhere), batch())
        _ = gate.nextBatch()

        let taken14 = gate.didCommit()
        #expect(taken14.flatMap(\.messages) == [elsewhere])
        #expect(gate.isSyncUrgent)
        let taken15 = gate.didSync(upTo: 1)
        #expect(taken15 == [first, second])
        #expect(!gate.isSyncUrgent)
    }

    @Test func `an answer with what is on the disk already waits for nothing`() {
        var gate = EffectGate()
        _ = gate.append(effects(answer(5, to: worker, sequence: 1)), batch())
        _ = gate.nextBatch()
        _ = gate.didCommit()
        _ = gate.didSync(upTo: 1)

        let next = answer(5, to: worker, sequence: 2)
        _ = gate.append(effects(next), batch())
        _ = gate.nextBatch()
        let taken16 = gate.didCommit()
        #expect(taken16.flatMap(\.messages) == [next])
    }

    @Test func `a grant of keys waits for the sync`() {
        var gate = EffectGate()
        let message = dispatch(0, to: worker, sequence: 1, exclusive: true)
        _ = gate.append(effects(message), batch())
        _ = gate.nextBatch()

        let taken17 = gate.didCommit()
        #expect(taken17.flatMap(\.messages).isEmpty)
        let taken18 = gate.didSync(upTo: 1)
        #expect(taken18 == [message])
    }

    @Test func `an order that cancels what runs waits for the sync`() {
        var gate = EffectGate()
        let held = HeldAttempt(
            attempt: AttemptID(epoch: Epoch(rawValue: 1), number: 1),
            operation: operation
        )
        func message(_ order: Order, sequence: UInt64) -> Scheduler.Message {
            Scheduler.Message(
                destination: .worker(worker),
                sequence: sequence,
                body: .plain(.control(Control(acknowledged: 0, orders: [order])))
            )
        }
        // What is recalled before it starts may run again.
        let recall = message(.recall(held), sequence: 1)
        _ = gate.append(effects(recall), batch())
        _ = gate.nextBatch()
        #expect(gate.didCommit().flatMap(\.messages) == [recall])

        let cancel = message(.cancel(held), sequence: 2)
        _ = gate.append(effects(cancel), batch())
        _ = gate.nextBatch()
        #expect(gate.didCommit().flatMap(\.messages).isEmpty)
        #expect(gate.isSyncUrgent)
        #expect(gate.didSync(upTo: 2) == [cancel])
    }

    @Test func `what a running operation is told of the end of another waits for the sync`() {
        var gate = EffectGate()
        var told = answer(0, to: worker, sequence: 1)
        told.verdicts = [Scheduler.Verdict(number: 1, event: 1, content: .ended([.succeeded]))]
        _ = gate.append(effects(told), batch())
        _ = gate.nextBatch()
        #expect(gate.didCommit().flatMap(\.messages).isEmpty)
        #expect(gate.didSync(upTo: 1) == [told])
    }

    @Test func `a sync covers no more than was committed when it began`() {
        var gate = EffectGate()
        let first = answer(1, to: worker, sequence: 1)
        let second = answer(2, to: worker, sequence: 2)
        for message in [first, second] {
            _ = gate.append(effects(message), batch())
            _ = gate.nextBatch()
            _ = gate.didCommit()
        }

        let taken19 = gate.didSync(upTo: 1)
        #expect(taken19 == [first])
        #expect(gate.wantsSync && gate.isSyncUrgent)
        let taken20 = gate.didSync(upTo: 2)
        #expect(taken20 == [second])
    }

    @Test func `a worker that counts anew is not acknowledged what it reported before`() {
        var gate = EffectGate()
        _ = gate.append(effects(answer(9, to: worker, sequence: 1)), batch())
        _ = gate.nextBatch()
        _ = gate.didCommit()
        _ = gate.didSync(upTo: 1)

        let welcome = Welcome(
            answers: .zero,
            lease: .seconds(6),
            beat: .seconds(2),
            eventWindow: 1,
            orphanAfter: .seconds(60),
            acknowledged: 0,
            orders: []
        )
        let greeting = Scheduler.Message(
            destination: .worker(worker),
            sequence: 1,
            body: .plain(.welcome(welcome))
        )
        let next = dispatch(4, to: worker, sequence: 2)
        _ = gate.append(effects(greeting, next), batch())
        _ = gate.nextBatch()
        let taken21 = gate.didCommit()
        #expect(taken21.flatMap(\.messages) == [greeting, lowered(next, to: 0)])
    }

    // MARK: - A store that takes nothing

    private func beatAnswer(
        to address: WorkerAddress,
        sequence: UInt64,
        acknowledged: UInt64 = 0
    ) -> Scheduler.Message {
        let control = Control(
            answers: Timestamp(nanoseconds: Int64(sequence)),
            acknowledged: acknowledged
        )
        return Scheduler.Message(
            destination: .worker(address),
            sequence: sequence,
            body: .plain(.control(control))
        )
    }

    private func welcome(to address: WorkerAddress, sequence: UInt64) -> Scheduler.Message {
        let welcome = Welcome(
            answers: .zero,
            lease: .seconds(6),
            beat: .seconds(2),
            eventWindow: 1,
            orphanAfter: .seconds(60),
            acknowledged: 0,
            orders: []
        )
        return Scheduler.Message(
            destination: .worker(address),
            sequence: sequence,
            body: .plain(.welcome(welcome))
        )
    }

    /// Everything that waits, as it leaves.
    private func flush(_ gate: inout EffectGate) -> [Scheduler.Message] {
        var messages = gate.didCommit().flatMap(\.messages)
        while gate.nextBatch() != nil { messages += gate.didCommit().flatMap(\.messages) }
        return messages + gate.didSync(upTo: gate.committed)
    }

    private let none = StoreBatch(wall: WallTime(nanosecondsSince1970: 1))

    @Test func `while a transaction lasts, the last answer to a beat replaces those before it`() {
        var gate = EffectGate()
        _ = gate.append(effects(), batch())
        _ = gate.nextBatch()
        var last: [Scheduler.Message] = []
        for beat in 1...1_000 as ClosedRange<UInt64> {
            last = [beatAnswer(to: worker, sequence: beat), beatAnswer(to: other, sequence: beat)]
            for message in last { #expect(gate.append(effects(message), none) == nil) }
        }
        // One step for all of them, and one message for each worker.
        #expect(gate.last == 2)
        #expect(flush(&gate) == last)
    }

    @Test func `answers are replaced across steps that have records, and nothing else is`() {
        var gate = EffectGate()
        _ = gate.append(effects(), batch())
        _ = gate.nextBatch()
        let order = answer(0, to: worker, sequence: 2)
        _ = gate.append(effects(beatAnswer(to: worker, sequence: 1), order), batch())
        let grant = dispatch(0, to: worker, sequence: 3)
        _ = gate.append(effects(grant), batch())
        let last = beatAnswer(to: worker, sequence: 4)
        _ = gate.append(effects(last), none)
        #expect(flush(&gate) == [order, grant, last])
    }

    @Test func `a welcome replaces what was meant for the worker's connections before it`() {
        var gate = EffectGate()
        _ = gate.append(effects(), batch())
        _ = gate.nextBatch()
        let grant = dispatch(0, to: other, sequence: 1)
        _ = gate.append(effects(dispatch(0, to: worker, sequence: 1), grant), batch())
        var last = welcome(to: worker, sequence: 1)
        for connection in 2...100 as ClosedRange<UInt32> {
            let address = WorkerAddress(incarnation: worker.incarnation, connection: connection)
            last = welcome(to: address, sequence: 1)
            let again = dispatch(0, to: address, sequence: 2)
            _ = gate.append(effects(last, again), batch())
        }
        let messages = flush(&gate)
        #expect(messages.first == grant)
        #expect(messages.count == 3)
        #expect(messages[1] == last)
    }

    @Test func `a sync that lasts is behind the first answer and the last`() {
        var gate = EffectGate()
        let answers = (1...100 as ClosedRange<UInt64>).map {
            beatAnswer(to: worker, sequence: $0, acknowledged: $0)
        }
        for answer in answers {
            _ = gate.append(effects(answer), batch())
            _ = gate.nextBatch()
            _ = gate.didCommit()
        }
        // The first must not be put off by those after it.
        #expect(gate.didSync(upTo: 1) == [answers[0]])
        #expect(gate.didSync(upTo: 100) == [answers[99]])
    }

    @Test func `logs and outputs that are fetched wait for no record`() {
        var gate = EffectGate()
        _ = gate.append(effects(), batch())
        let held = HeldAttempt(
            attempt: AttemptID(epoch: Epoch(rawValue: 1), number: 1),
            operation: operation
        )
        let chunk = LogChunk(held: held, stream: .output, offset: 0, bytes: [1])
        var effects = effects(dispatch(0, to: worker, sequence: 1))
        effects.notices = [.ready(operation), .log(chunk)]
        effects.fetches = [
            Scheduler.FetchOrder(
                address: worker,
                request: OutputRequest(
                    number: 1,
                    held: held,
                    operation: operation,
                    offset: 0,
                    length: 1
                ),
                isOwned: true,
                isRepeated: false
            )
        ]
        let free = gate.append(effects, none)
        #expect(free?.notices == [.log(chunk)])
        #expect(free?.fetches == effects.fetches)
        #expect(free?.messages == [])
        _ = gate.nextBatch()
        #expect(gate.didCommit().flatMap(\.notices) == [.ready(operation)])
    }

    @Test func `what an operation left is known until its transaction is over`() {
        var gate = EffectGate()
        var left = batch()
        left.results = [
            StoredResult(
                operation: operation,
                attempt: AttemptID(epoch: Epoch(rawValue: 1), number: 1),
                output: Payload(bytes: [7]),
                log: .empty,
                startedAt: nil,
                endedAt: WallTime(nanosecondsSince1970: 1)
            )
        ]
        #expect(gate.waitingOutput(of: operation) == nil)
        _ = gate.append(effects(), left)
        #expect(gate.waitingOutput(of: operation)?.bytes == [7])
        #expect(gate.waitingResultCount == 1)
        _ = gate.nextBatch()
        #expect(gate.waitingOutput(of: operation)?.bytes == [7])
        // Another round of it, whose result comes while the first is being committed.
        left.results[0].output = .empty
        _ = gate.append(effects(), left)
        _ = gate.didCommit()
        #expect(gate.waitingOutput(of: operation) == .empty)
        _ = gate.nextBatch()
        _ = gate.didCommit()
        #expect(gate.waitingOutput(of: operation) == nil)
    }
}
