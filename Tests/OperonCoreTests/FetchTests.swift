import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// Attempts whose inputs are fetched before they start, at the worker and at the coordinator.
@Suite struct FetchTests {
    private static let hash = ContentHash(bytes: [UInt8](repeating: 1, count: 32))!
    private static let reference = OutputReference(
        operation: OperationID(graph: GraphID(rawValue: 0), index: 70),
        byteCount: 5,
        hash: hash
    )

    private func held(_ number: UInt64) -> HeldAttempt { WorkerBench.held(number) }

    private func bench(slots: Int = 1) -> WorkerBench {
        var bench = WorkerBench(slots: slots)
        bench.join()
        bench.dispatch([1]) {
            $0.inputs = [NamedInput(name: "a", output: nil, reference: Self.reference)]
        }
        return bench
    }

    private func request(_ number: UInt64, for attempt: UInt64) -> OutputRequest {
        OutputRequest(
            number: number,
            held: held(attempt),
            operation: Self.reference.operation,
            offset: 0,
            length: 5
        )
    }

    private func chunk(_ number: UInt64, _ content: OutputChunk.Content) -> CoordinatorMessage {
        .chunks([OutputChunk(number: number, content: content)])
    }

    private let bytes = OutputChunk.Content.bytes([1, 2, 3, 4, 5])

    /// The shell does what it is asked to.
    private func store(_ bench: inout WorkerBench) {
        for step in bench.drain().inputSteps {
            switch step {
            case .begin, .abandon: continue
            case .check(let hash, _): bench.drive(.inputs(.checked(hash, isRight: true)))
            case .give(let attempt, let job, _): bench.drive(.inputs(.stored(attempt, job: job)))
            }
        }
    }

    // MARK: The worker

    @Test func `an attempt starts when its inputs are stored, and holds its slot meanwhile`() {
        var bench = bench()
        bench.dispatch([2])
        let effects = bench.drain()
        #expect(effects.starts.isEmpty)
        #expect(effects.requests == [request(1, for: 1)])

        bench.say(chunk(1, bytes), sequence: 0)
        #expect(bench.effects.starts.isEmpty)
        store(&bench)
        #expect(bench.effects.starts.isEmpty)
        store(&bench)

        #expect(bench.drain().started == [1])
        bench.end(1)
        #expect(bench.drain().started == [2])
    }

    @Test func `what fetches its inputs is held and has not started`() {
        var bench = bench()
        bench.advance(by: .seconds(2))

        #expect(bench.effects.beats.last?.held == [held(1)])
        #expect(bench.effects.beats.last?.requests == [request(1, for: 1)])
        #expect(bench.effects.events.isEmpty)
    }

    @Test func `a recall gives it back, and what was stored is forgotten`() {
        var bench = bench()
        bench.drain()

        bench.order(.recall(held(1)))

        let effects = bench.drain()
        #expect(effects.events == [.returned(held(1))])
        #expect(effects.inputSteps == [.abandon(held(1).attempt, job: 1)])
        bench.say(chunk(1, bytes), sequence: 0)
        #expect(bench.drain().isEmpty)
    }

    @Test func `a drain gives it back`() {
        var bench = bench()
        bench.drain()

        bench.drive(.drainRequested(deadline: .distantFuture))

        #expect(bench.drain().events == [.returned(held(1))])
    }

    @Test func `gone: it is dropped without a word, and the slot is free`() {
        var bench = bench()
        bench.dispatch([2])
        bench.drain()

        bench.say(chunk(1, .gone), sequence: 0)

        let effects = bench.drain()
        #expect(effects.events.isEmpty)
        #expect(effects.started == [2])
        bench.advance(by: .seconds(2))
        #expect(bench.effects.beats.last?.held == [held(2)])
    }

    @Test func `an output that is missing fails the attempt`() {
        var bench = bench()
        bench.drain()

        bench.say(chunk(1, .missing), sequence: 0)

        guard case .finished(held(1), let result)? = bench.drain().events.first,
            case .failed(.undecodable(let why)) = result.end
        else {
            Issue.record("it did not fail")
            return
        }
        #expect(why.contains("not there any more"))
    }

    @Test func `what cannot be stored fails the attempt with the reason`() {
        var bench = bench()
        bench.say(chunk(1, bytes), sequence: 0)
        bench.drive(.inputs(.checked(Self.hash, isRight: true)))
        bench.drain()
        let error = OperationError.thrown(type: "spawn", message: "no space", payload: [])

        bench.drive(.inputs(.failed(held(1).attempt, job: 1, .failed(error))))

        #expect(
            bench.drain().events == [.finished(held(1), bench.result(.failed(error)))]
        )
    }

    @Test func `what the worker has no room to store for now is given back for a while`() {
        var bench = bench()
        bench.say(chunk(1, bytes), sequence: 0)
        bench.drive(.inputs(.checked(Self.hash, isRight: true)))
        bench.drain()

        bench.drive(.inputs(.failed(held(1).attempt, job: 1, .postponed(by: .seconds(4)))))

        let result = bench.result(.notYet(after: .seconds(4)))
        #expect(bench.drain().events == [.finished(held(1), result)])
    }

    @Test func `more inputs than may be given fail it at once, and none is fetched`() {
        func fetched(_ bytes: Int) -> WorkerAgent.Effects {
            var bench = WorkerBench { $0.limits.inputsBytes = 10 }
            bench.join()
            bench.dispatch([1]) {
                var reference = Self.reference
                reference.byteCount = bytes
                $0.inputs = [
                    NamedInput(name: "a", output: Payload(bytes: [1, 2])),
                    NamedInput(name: "b", output: nil, reference: reference),
                ]
            }
            return bench.drain()
        }

        #expect(fetched(8).requests.map(\.length) == [8])
        #expect(fetched(9).requests.isEmpty)
        guard case .finished(_, let result)? = fetched(9).events.first else {
            Issue.record("it did not fail")
            return
        }
        #expect(result.end == .failed(.inputTooLarge(bytes: 11, limit: 10)))
    }

    @Test func `after a new connection what is open is asked for again, behind the welcome`() {
        var bench = bench()
        bench.drain()
        bench.drive(.linkDown)
        bench.drive(.linkUp(connection: 2))
        #expect(bench.drain().requests.isEmpty)

        bench.welcome()

        #expect(bench.drain().requests == [request(1, for: 1)])
    }

    @Test func `answers of another epoch say nothing`() {
        var bench = bench()
        bench.drain()
        bench.epoch = Epoch(rawValue: 1)

        bench.say(chunk(1, .gone), sequence: 0)

        bench.epoch = Epoch(rawValue: 2)
        bench.say(chunk(1, bytes), sequence: 0)
        #expect(bench.drain().inputSteps == [.check(Self.hash, [1, 2, 3, 4, 5])])
    }

    @Test func `with its inputs and without a lease it is let go of`() {
        var bench = bench()
        bench.say(chunk(1, bytes), sequence: 0)
        store(&bench)
        bench.now = bench.now + .seconds(6)
        store(&bench)

        #expect(bench.effects.starts.isEmpty)
        #expect(bench.effects.notices.contains(.leaseExpired(dropped: 1)))
        #expect(bench.effects.inputSteps == [.abandon(held(1).attempt, job: 1)])
    }

    // MARK: The coordinator's side

    private func order(
        _ number: UInt64,
        connection: UInt32 = 1,
        worker: UInt64 = 1,
        isOwned: Bool = true,
        isRepeated: Bool = false,
        length: Int = 10
    ) -> Scheduler.FetchOrder {
        var request = request(number, for: 1)
        request.length = length
        return Scheduler.FetchOrder(
            address: WorkerAddress(
                incarnation: Incarnation(rawValue: worker),
                connection: connection
            ),
            request: request,
            isOwned: isOwned,
            isRepeated: isRepeated
        )
    }

    private func outputServer(chunkBytes: Int = 10) -> OutputServer {
        var limits = Limits()
        limits.chunkBytes = chunkBytes
        return OutputServer(limits: limits)
    }

    private func numbers(_ answers: [OutputServer.Answer]?) -> [UInt64] {
        (answers ?? []).map { answer in
            switch answer {
            case .piece(let request): request.number
            case .gone(let number), .sent(let number): number
            }
        }
    }

    @Test func `small answers travel together, up to a piece, and workers take turns`() {
        var outputServer = outputServer()
        for number: UInt64 in 1...3 { outputServer.take(order(number, length: 5)) }
        outputServer.take(order(1, worker: 2))

        #expect(numbers(outputServer.next()?.1) == [1, 2])
        #expect(outputServer.next()?.0.incarnation == Incarnation(rawValue: 2))
        #expect(numbers(outputServer.next()?.1) == [3])
        #expect(outputServer.next() == nil)
        #expect(outputServer.isEmpty)
    }

    @Test func `what waits is not asked for twice`() {
        var outputServer = outputServer()
        outputServer.take(order(1))
        outputServer.take(order(1))
        outputServer.take(order(1, isRepeated: true))

        #expect(numbers(outputServer.next()?.1) == [1])
        #expect(outputServer.next() == nil)
    }

    @Test func `a beat that lists what was sent is answered behind it, and what was not is sent`() {
        var outputServer = outputServer()
        outputServer.take(order(1))
        _ = outputServer.next()

        outputServer.take(order(1, isRepeated: true))
        outputServer.take(order(2, isRepeated: true))

        #expect(outputServer.next()?.1 == [.sent(1), .piece(order(2).request)])
        // Asked for by itself: it did not come.
        outputServer.take(order(1))
        #expect(outputServer.next()?.1 == [.piece(order(1).request)])
    }

    @Test func `a new connection begins anew`() {
        var outputServer = outputServer()
        outputServer.take(order(1))
        outputServer.take(order(2))
        _ = outputServer.next()

        outputServer.take(order(1, connection: 2, isRepeated: true))

        let next = outputServer.next()
        #expect(next?.0.connection == 2)
        #expect(next?.1 == [.piece(order(1).request)])
        #expect(outputServer.next() == nil)
    }

    @Test func `an attempt that is not the sender's is gone`() {
        var outputServer = outputServer()
        outputServer.take(order(1, isOwned: false))

        #expect(outputServer.next()?.1 == [.gone(1)])
    }

    @Test func `of a worker that is gone nothing is left`() {
        var outputServer = outputServer()
        outputServer.take(order(1))
        outputServer.forget(Incarnation(rawValue: 1))

        #expect(outputServer.isEmpty)
        #expect(outputServer.next() == nil)
    }

    @Test func `what one worker may have waiting is bounded`() {
        var outputServer = outputServer()
        for number: UInt64 in 1...257 { outputServer.take(order(number)) }

        var answered = 0
        while let (_, answers) = outputServer.next() { answered += answers.count }

        #expect(answered == 256)
    }
}

extension WorkerAgent.Effects {
    fileprivate var requests: [OutputRequest] {
        messages.flatMap { message -> [OutputRequest] in
            if case .fetch(let requests) = message.envelope.body { requests } else { [] }
        }
    }
}
