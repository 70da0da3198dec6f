import OperonModel

/// Messages of every kind from a seed. The edges of every field are more frequent than chance
/// would make them.
struct MessageGenerator {
    private var randomness: SeededGenerator

    init(seed: UInt64) { randomness = SeededGenerator(seed: seed) }

    mutating func message() -> Message {
        below(2) == 0 ? .coordinator(coordinator()) : .worker(worker())
    }

    /// A message with operations or events, which are written and read without generated types.
    mutating func frequent() -> Message {
        while true {
            let message = message()
            switch message {
            case .coordinator(let envelope):
                if case .dispatch = envelope.body { return message }
            case .worker(let envelope):
                if case .events = envelope.body { return message }
            }
        }
    }

    // MARK: - Envelopes

    private mutating func coordinator() -> CoordinatorEnvelope {
        let body: CoordinatorMessage
        switch below(8) {
        case 0: body = .welcome(welcome())
        case 7: body = .watch(list(1...4) { $0.watchOrder() })
        case 6: body = .chunks(list(1...4) { $0.chunk() })
        case 1: body = .control(control())
        case 2: body = .resync
        case 3: body = .refused([.newIncarnation, .nameTaken, .tooManyWorkers][below(3)])
        default:
            body = .dispatch(
                Dispatch(acknowledged: number(), operations: list(1...4) { $0.operation() })
            )
        }
        return CoordinatorEnvelope(
            reign: Reign(rawValue: positive()),
            epoch: epoch(),
            sequence: number(),
            sender: below(2) == 0 ? .none : identity(),
            body: body
        )
    }

    private mutating func worker() -> WorkerEnvelope {
        let body: WorkerMessage
        switch below(9) {
        case 0: body = .hello(hello())
        case 8: body = .watched(list(1...4) { $0.watchReport() })
        case 7:
            let text = text()
            let progress = ReportedProgress(
                fraction: Double(below(101)) / 100,
                text: text.isEmpty ? nil : text
            )
            body = .progress(ProgressReport(held: held(), progress: progress))
        case 6: body = .fetch(list(1...4) { $0.request() })
        case 5: body = .tick(Tick(number: positive(), way: below(2) == 0 ? .events : .beats))
        case 1: body = .log(log())
        case 2:
            body = .beat(
                Beat(
                    sentAt: moment(),
                    received: number(),
                    sent: number(),
                    held: list(0...5) { $0.held() },
                    isDraining: below(2) == 0,
                    requests: list(0...3) { $0.request() },
                    open: list(0...3) { $0.open() }
                )
            )
        default:
            body = .events(
                EventBatch(
                    firstNumber: max(1, number() >> 1),
                    sentAt: moment(),
                    events: list(1...5) { $0.event() }
                )
            )
        }
        let sender: WorkerIdentity
        if case .tick = body { sender = .none } else { sender = identity() }
        return WorkerEnvelope(
            reign: Reign(rawValue: number()),
            epoch: Epoch(rawValue: small()),
            sequence: number(),
            sender: sender,
            body: body
        )
    }

    private mutating func identity() -> WorkerIdentity {
        WorkerIdentity(
            name: name(),
            incarnation: Incarnation(rawValue: positive()),
            connection: max(1, small())
        )
    }

    // MARK: - Of a coordinator

    private mutating func welcome() -> Welcome {
        Welcome(
            answers: moment(),
            lease: duration(atLeast: 1),
            beat: duration(atLeast: 1),
            eventWindow: max(1, small()),
            orphanAfter: duration(),
            acknowledged: number(),
            orders: list(0...4) { $0.order() }
        )
    }

    private mutating func control() -> Control {
        Control(
            answers: below(2) == 0 ? nil : moment(),
            acknowledged: number(),
            resendFrom: below(2) == 0 ? nil : positive(),
            orders: list(0...4) { $0.order() },
            verdicts: list(0...3) { $0.verdict() }
        )
    }

    private mutating func order() -> Order {
        switch below(4) {
        case 0: .recall(held())
        case 1: .cancel(held())
        case 2: .drain
        default: .stop(held())
        }
    }

    private mutating func operation() -> DispatchedOperation {
        var operation = anyOperation()
        operation.isRepeat = below(2) == 0
        if below(2) == 0 {
            operation.resources = [.cpus(Double(1 + below(64))), .gpus(1 + below(8))]
            if case .command = operation.work { operation.isEnforced = below(2) == 0 }
        }
        return operation
    }

    private mutating func anyOperation() -> DispatchedOperation {
        DispatchedOperation(
            held: held(),
            ordinal: max(1, small()),
            graphName: text(),
            name: name(),
            queue: name(),
            work: work(),
            priority: pick(QueuePriority.allCases),
            rank: number(),
            timeout: below(2) == 0 ? nil : duration(),
            qualityOfService: pick(QualityOfService.allCases),
            inputs: list(0...3) { generator in
                generator.input()
            },
            isIsolated: below(2) == 0,
            announcesStart: below(2) == 0,
            exclusiveLease: below(2) == 0 ? nil : duration(atLeast: 1),
            traceParent: text()
        )
    }

    private mutating func input() -> NamedInput {
        switch below(4) {
        case 0: return NamedInput(name: name(), output: nil)
        case 1: return NamedInput(name: name(), output: payload())
        case 2:
            var dropped = NamedInput(name: name(), output: nil)
            dropped.isDropped = true
            return dropped
        default:
            return NamedInput(
                name: name(),
                output: nil,
                reference: OutputReference(
                    operation: held().operation,
                    byteCount: Int(max(1, number() >> 1)),
                    hash: hash(),
                    contentType: below(2) == 0 ? Payload.json : text()
                )
            )
        }
    }

    private mutating func hash() -> ContentHash {
        ContentHash(bytes: (0..<32).map { _ in UInt8(truncatingIfNeeded: randomness.next()) })!
    }

    private mutating func chunk() -> OutputChunk {
        let content: OutputChunk.Content =
            switch below(5) {
            case 0: .gone
            case 1: .missing
            case 2: .sent
            default: .bytes([1] + bytes())
            }
        return OutputChunk(number: positive(), content: content)
    }

    private mutating func request() -> OutputRequest {
        OutputRequest(
            number: positive(),
            held: held(),
            operation: held().operation,
            offset: Int(number() >> 1),
            length: Int(max(1, small()))
        )
    }

    private mutating func work() -> Work {
        switch below(4) {
        case 0: return .nothing
        case 1: return .wait(duration())
        case 2: return .registered(kind: name(), input: payload())
        default:
            var environment: [String: String] = [:]
            for _ in 0..<below(5) { environment[text()] = text() }
            var command =
                CommandDescription(
                    arguments: list(1...4) { $0.text() },
                    environment: environment,
                    inheritEnvironment: list(0...3) { $0.text() },
                    directory: below(2) == 0 ? nil : text(),
                    grace: duration(),
                    memory: below(2) == 0 ? nil : Int(max(1, number() >> 1)),
                    cpuTime: below(2) == 0 ? nil : duration(atLeast: 1),
                    produces: list(0...2) { $0.pick(["a", "/b c/", "ä\n"]) },
                    consumes: list(0...2) { $0.pick(["x.c", "../y"]) },
                    skipsIfUpToDate: below(2) == 0
                )
            if below(3) == 0 {
                for _ in 0...below(3) { command.secrets["S\(below(9))"] = pick(["db", "a.b_C-1"]) }
                for name in command.secrets.keys { command.environment[name] = nil }
            }
            return .command(command)
        }
    }

    // MARK: - Of a worker

    private mutating func hello() -> Hello {
        let last = number() >> 1
        let first = below(2) == 0 ? last + 1 : max(1, min(last + 1, number()))
        var hello = Hello(
            sentAt: moment(),
            host: text(),
            processID: Int32(truncatingIfNeeded: number() & 0x7FFF_FFFF),
            slots: pick([1, 2, 4_095, 4_096]),
            queues: list(0...3) { $0.name() },
            kinds: list(0...3) { $0.name() },
            held: list(0...4) { $0.held() },
            firstEvent: first,
            lastEvent: last,
            isDraining: below(2) == 0,
            worker: text(),
            predecessor: below(2) == 0 ? nil : Incarnation(rawValue: positive())
        )
        hello.runsAnyKind = below(2) == 0
        if below(2) == 0 {
            hello.offer = WorkerOffer(
                resources: [.cpus(Double(1 + below(64))), .gpus(1 + below(8))],
                labels: [WorkerLabel("region", "eu"), WorkerLabel("zone", "\(below(9))")],
                enforces: below(2) == 0
            )
            hello.offer.secrets = below(2) == 0
        }
        return hello
    }

    private mutating func log() -> LogChunk {
        LogChunk(
            held: held(),
            stream: below(2) == 0 ? .output : .error,
            offset: number(),
            position: below(2) == 0 ? nil : number(),
            bytes: bytes()
        )
    }

    private mutating func event() -> WorkerEvent {
        switch below(7) {
        case 6: .read(held(), ReadRequest(number: positive(), name: text()))
        case 5: .yielded(held(), WaitRequest(number: positive(), names: [text(), text()]))
        case 0: .started(held(), at: moment())
        case 1: .returned(held())
        case 2: .added(held(), AdditionRequest(number: positive(), operations: bytes()))
        default: .finished(held(), result())
        }
    }

    private mutating func open() -> OpenRequest {
        OpenRequest(number: positive(), held: held(), event: positive())
    }

    private mutating func verdict() -> Verdict {
        let content: Verdict.Content =
            switch below(5) {
            case 3: .output(below(2) == 0 ? nil : Payload(contentType: text(), bytes: bytes()))
            case 0: .added(small())
            case 1: .again
            case 2: .ended(list(0...3) { $0.pick(OutcomeKind.allCases) })
            default: .refused(refusal())
            }
        return Verdict(number: positive(), event: positive(), content: content)
    }

    private mutating func refusal() -> Refusal {
        switch below(10) {
        case 0: .dependencyCycle(path: list(0...3) { $0.name() })
        case 1: .unknownOperation(name: name(), namedBy: text())
        case 2: .duplicateOperation(name: name())
        case 3: .alreadySubmitted(name: name())
        case 4: .alreadyStarted(name: name())
        case 5: .alreadyFinished(name: name())
        case 6: .graphClosed(name: text())
        case 7: .invalid(field: text(), why: text())
        case 8:
            .limitExceeded(
                limit: pick(LimitName.allCases),
                value: Int(number() >> 1),
                maximum: Int(number() >> 1)
            )
        default: .unreachable(text())
        }
    }

    private mutating func result() -> AttemptResult {
        let end: AttemptEnd
        switch below(5) {
        case 0: end = .succeeded
        case 1: end = .cancelled
        case 2: end = .crashed
        case 3: end = .notYet(after: duration())
        default: end = .failed(error())
        }
        var result = AttemptResult(
            end: end,
            startedAt: moment(),
            endedAt: moment(),
            output: payload(),
            log: KeptLog(head: bytes(), missing: number(), tail: bytes())
        )
        result.isUpToDate = end == .succeeded && below(2) == 0
        return result
    }

    private mutating func error() -> OperationError {
        switch below(12) {
        case 0: .kindUnknown(text())
        case 1: .thrown(type: text(), message: text(), payload: bytes())
        case 2: .exit(code: pick([1, 2, 127, 255, .min, .max, -1, 0]))
        case 3: .signal(name: text())
        case 4: .timeout
        case 5: .deadline
        case 6: .workerLost
        case 7: .inputTooLarge(bytes: Int(number() >> 1), limit: Int(number() >> 1))
        case 8: .outputTooLarge(bytes: Int(number() >> 1), limit: Int(number() >> 1))
        case 9: .undecodable(text())
        case 10: .versionUnsupported(text())
        default: .conditionFailed(name: text())
        }
    }

    // MARK: - Parts

    private mutating func held() -> HeldAttempt {
        HeldAttempt(
            attempt: AttemptID(epoch: epoch(), number: positive()),
            operation: OperationID(graph: GraphID(rawValue: small()), index: small())
        )
    }

    private mutating func epoch() -> Epoch { Epoch(rawValue: max(1, small())) }

    private mutating func payload() -> Payload {
        switch below(4) {
        case 0: .empty
        case 1: Payload(contentType: "", bytes: bytes())
        case 2: Payload(bytes: bytes())
        default: Payload(contentType: text(), bytes: bytes())
        }
    }

    private mutating func moment() -> Timestamp {
        Timestamp(nanoseconds: Int64(bitPattern: number() >> 1))
    }

    private mutating func duration(atLeast least: Int64 = 0) -> Duration {
        .nanoseconds(max(least, Int64(bitPattern: number() >> 1)))
    }

    private mutating func bytes() -> [UInt8] {
        let count = pick([0, 0, 1, 127, 128, 300])
        return (0..<count).map { _ in UInt8(truncatingIfNeeded: randomness.next()) }
    }

    /// With both ends of the length that names may have.
    mutating func name() -> String {
        pick(["a", "default", "größe-→-🧵", String(repeating: "n", count: 256), "x\u{0}y", "\n"])
    }

    mutating func text() -> String {
        below(3) == 0 ? "" : name()
    }

    mutating func small() -> UInt32 {
        pick([0, 1, 127, 128, 65_535, .max, UInt32(truncatingIfNeeded: randomness.next())])
    }

    mutating func number() -> UInt64 {
        pick([0, 1, 127, 128, 1 << 32, 1 << 63, .max, randomness.next(), randomness.next() >> 40])
    }

    mutating func positive() -> UInt64 { max(1, number()) }

    mutating func list<Element>(
        _ counts: ClosedRange<Int>,
        _ make: (inout MessageGenerator) -> Element
    ) -> [Element] {
        let count = counts.lowerBound + below(counts.count)
        return (0..<count).map { _ in make(&self) }
    }

    private mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[below(elements.count)]
    }

    mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &randomness) }
}
