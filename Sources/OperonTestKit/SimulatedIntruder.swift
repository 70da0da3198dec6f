import OperonCore
package import OperonModel

/// A worker that is let in and then sends what it likes: well-formed messages with any numbers,
/// names, times and epochs, about attempts that are not its own.
///
/// It serves a queue in which nothing is, so it is never given an operation. It sees which attempts
/// others are given. It does not know their incarnations, which are random.
package struct SimulatedIntruder {
    package static let queue = "intruder"

    private var chance: SeededGenerator
    private(set) var incarnation: Incarnation
    private var connection: UInt32 = 1
    private var lastEvent: UInt64 = 0
    private var request: UInt64 = 0
    /// The last attempt of each operation.
    private var overheard: [HeldAttempt] = []

    private static let overheardMax = 64
    /// Edges of the integers in messages.
    private static let edges: [UInt64] = [
        0, 1, 2, 255, 65_536, UInt64(UInt32.max) - 1, UInt64(UInt32.max), 1 << 32, 1 << 62,
        UInt64(Int64.max), .max - 1, .max,
    ]

    package init(seed: UInt64) {
        chance = SeededGenerator(seed: seed)
        incarnation = Incarnation(rawValue: 1 << 63 | chance.next())
    }

    package mutating func overhear(_ held: HeldAttempt) {
        overheard.removeAll { $0.operation == held.operation }
        overheard.append(held)
        if overheard.count > Self.overheardMax { overheard.removeFirst() }
    }

    /// Until its next message.
    package mutating func pause() -> Duration { .milliseconds(10 + Int64(chance.next() % 300)) }

    mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int(chance.next() % UInt64(elements.count))]
    }

    // MARK: - Messages

    /// - Parameters:
    ///   - addition: Operations that some attempt could add, in their stored form.
    ///   - now: On its own clock.
    package mutating func message(
        _ reign: Reign,
        _ epoch: Epoch,
        addition: [UInt8],
        at now: Timestamp
    ) -> WorkerEnvelope {
        if chance.next() % 20 == 0 { reappear() }
        let isOdd = chance.next() % 8 == 0
        let body = body(addition, now)
        return WorkerEnvelope(
            reign: isOdd ? Reign(rawValue: number(reign.rawValue)) : reign,
            epoch: isOdd ? Epoch(rawValue: small(epoch.rawValue)) : epoch,
            sequence: number(0),
            sender: WorkerIdentity(
                name: "intruder",
                incarnation: incarnation,
                connection: isOdd ? small(connection) : connection
            ),
            body: body
        )
    }

    /// On another connection, or as another worker.
    private mutating func reappear() {
        if chance.next() % 2 == 0 {
            connection &+= 1
        } else {
            incarnation = Incarnation(rawValue: 1 << 63 | chance.next())
            connection = 1
            lastEvent = 0
        }
    }

    private mutating func body(_ addition: [UInt8], _ now: Timestamp) -> WorkerMessage {
        switch chance.next() % 20 {
        case 0...2: return .hello(hello(now))
        case 3...11: return .events(events(addition, now))
        case 12...14: return .beat(beat(now))
        case 15:
            let chunk = LogChunk(
                held: held(),
                stream: .output,
                offset: number(0),
                position: number(0),
                bytes: [0x1B, 0xFF]
            )
            return .log(chunk)
        case 16:
            let fraction = pick([0, 1, -1, .infinity, -.infinity, .nan, 1e308])
            return .progress(
                ProgressReport(
                    held: held(),
                    progress: ReportedProgress(fraction: fraction, text: "\u{1B}[31m")
                )
            )
        case 17: return .tick(Tick(number: number(1), way: pick([.events, .beats])))
        case 18: return .fetch([fetch(), fetch()])
        default: return .watched([.holds([])])
        }
    }

    private mutating func hello(_ now: Timestamp) -> Hello {
        Hello(
            sentAt: moment(now),
            host: "intruder",
            processID: Int32(truncatingIfNeeded: number(1)),
            slots: small(1),
            queues: [Self.queue],
            kinds: SimulatorScenario.kinds,
            held: heldOfOthers(),
            firstEvent: number(lastEvent &+ 1),
            lastEvent: number(lastEvent),
            isDraining: chance.next() % 4 == 0,
            worker: pick(["", "state0", "state1", "intruder"]),
            predecessor: chance.next() % 2 == 0 ? Incarnation(rawValue: chance.next()) : nil
        )
    }

    private mutating func events(_ addition: [UInt8], _ now: Timestamp) -> EventBatch {
        let first = number(lastEvent &+ 1)
        let events = (0..<1 + chance.next() % 3).map { _ in event(addition, now) }
        if first == lastEvent &+ 1 { lastEvent &+= UInt64(events.count) }
        return EventBatch(firstNumber: first, sentAt: moment(now), events: events)
    }

    private mutating func event(_ addition: [UInt8], _ now: Timestamp) -> WorkerEvent {
        let held = held()
        request &+= 1
        switch chance.next() % 8 {
        case 0: return .started(held, at: moment(now))
        case 1...3: return .finished(held, result(now))
        case 4: return .returned(held)
        case 5:
            let operations = chance.next() % 4 == 0 ? [0xFF, 0xFF, 0xFF] : addition
            return .added(held, AdditionRequest(number: number(request), operations: operations))
        case 6:
            let names = pick([["0"], ["0", "0"], ["4294967295/0"], ["nosuch"]])
            return .yielded(held, WaitRequest(number: number(request), names: names))
        default: return .read(held, ReadRequest(number: number(request), name: pick(["0", "/"])))
        }
    }

    private mutating func result(_ now: Timestamp) -> AttemptResult {
        let end: AttemptEnd = pick([
            .succeeded, .failed(.exit(code: .min)), .cancelled, .crashed,
            .notYet(after: .nanoseconds(Int64.max)), .notYet(after: .zero),
        ])
        return AttemptResult(end: end, startedAt: moment(now), endedAt: moment(now))
    }

    private mutating func beat(_ now: Timestamp) -> Beat {
        let open = OpenRequest(number: number(request), held: held(), event: number(lastEvent))
        return Beat(
            sentAt: moment(now),
            received: number(0),
            sent: number(lastEvent),
            held: heldOfOthers(),
            isDraining: chance.next() % 8 == 0,
            requests: [fetch()],
            open: [open, open]
        )
    }

    private mutating func fetch() -> OutputRequest {
        let held = held()
        // As many bytes as the decoder lets a message name.
        let bytes = pick([0, 1, 64, Int.max - 1, Int.max])
        return OutputRequest(
            number: number(request),
            held: held,
            operation: pick([held.operation, self.held().operation]),
            offset: bytes,
            length: pick([1, 64, Int.max])
        )
    }

    // MARK: - Parts of them

    private mutating func heldOfOthers() -> [HeldAttempt] {
        (0..<chance.next() % 4).map { _ in held() }
    }

    /// One that somebody was given, or one with a wrong number in it.
    private mutating func held() -> HeldAttempt {
        let none = HeldAttempt(
            attempt: AttemptID(epoch: Epoch(rawValue: 2), number: 1),
            operation: OperationID(graph: GraphID(rawValue: 0), index: 0)
        )
        var held = overheard.isEmpty ? none : pick(overheard)
        switch chance.next() % 12 {
        case 0: held.attempt = AttemptID(epoch: held.attempt.epoch, number: number(1))
        case 1:
            let epoch = Epoch(rawValue: small(held.attempt.epoch.rawValue))
            held.attempt = AttemptID(epoch: epoch, number: held.attempt.number)
        case 2:
            let graph = GraphID(rawValue: small(held.operation.graph.rawValue))
            held.operation = OperationID(graph: graph, index: held.operation.index)
        case 3:
            let index = small(held.operation.index)
            held.operation = OperationID(graph: held.operation.graph, index: index)
        default: break
        }
        return held
    }

    /// The right one mostly.
    private mutating func number(_ right: UInt64) -> UInt64 {
        guard chance.next() % 4 == 0 else { return right }
        return pick([right &+ 1, right &- 1, pick(Self.edges)])
    }

    private mutating func small(_ right: UInt32) -> UInt32 {
        UInt32(truncatingIfNeeded: number(UInt64(right)))
    }

    /// No clock is below zero: the decoder refuses such times.
    private mutating func moment(_ now: Timestamp) -> Timestamp {
        guard chance.next() % 4 == 0 else { return now }
        return pick([.zero, .distantFuture, now + .seconds(1), now - .seconds(1)])
    }
}
