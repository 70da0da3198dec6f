import OperonCore
import OperonModel
import OperonWire

extension FuzzTarget {
    /// Messages of a hostile worker, into a scheduler that has sent it operations, and has sent
    /// others to an honest worker. Between them time goes by, and the link is cut.
    ///
    /// After each event every invariant holds, and what the scheduler sends fits into messages. In
    /// the end the honest worker's operations have ended as it said.
    static let coordinator = FuzzTarget("wire-coordinator", bytesMax: 4_096) { bytes in
        var input = InputReader(bytes)
        var cluster = CoordinatorUnderFuzz.prepared
        // Each step costs a check of everything.
        for _ in 0..<24 where !input.isAtEnd {
            let step = input.byte()
            switch step & 7 {
            case 0...4:
                try cluster.hear(input.piece(), Rewriting(rawValue: input.byte()))
            case 5:
                for _ in 0...Int(input.byte() & 7) { try cluster.waitOneSecond() }
            case 6: try cluster.reconnect()
            default: try cluster.command(input.byte())
            }
        }
        try cluster.finishHonestWork()
    }
}

/// What of a hostile message is left as it is. The rest is replaced by what the coordinator knows,
/// or almost every message would be dropped as one of a stranger.
struct Rewriting: OptionSet {
    let rawValue: UInt8

    static let keepsReign = Rewriting(rawValue: 1)
    static let keepsSender = Rewriting(rawValue: 2)
    static let keepsNumbers = Rewriting(rawValue: 4)
    static let keepsAttempts = Rewriting(rawValue: 8)
}

/// A scheduler with an honest worker and a hostile one.
struct CoordinatorUnderFuzz {
    private static let reign = Reign(rawValue: 7)
    /// A sender that knows its incarnation can speak for it, so the number cannot be guessed.
    private static let honest = WorkerIdentity(
        name: "honest",
        incarnation: Incarnation(rawValue: 0x6A09_E667_F3BC_C908),
        connection: 1
    )
    private static let hostile = WorkerIdentity(
        name: "hostile",
        incarnation: Incarnation(rawValue: 2),
        connection: 1
    )

    private var scheduler: Scheduler
    private var now = Moment(
        monotonic: Timestamp(nanoseconds: 1_000_000_000_000),
        wall: WallTime(nanosecondsSince1970: 2_000_000_000_000_000_000)
    )
    private var resolver = FuzzResolver()
    private var effects = Scheduler.Effects()
    /// What each of them was sent and has not ended.
    private var honestHeld: [HeldAttempt] = []
    private var hostileHeld: [HeldAttempt] = []
    private var honestReceived: UInt64 = 0
    private var honestEvents: UInt64 = 0
    private var hostileEvents: UInt64 = 0
    private var mustGreet = false

    /// Both workers have operations that run. Made once, and copied for each input.
    static let prepared: CoordinatorUnderFuzz = {
        do {
            return try CoordinatorUnderFuzz()
        } catch {
            preconditionFailure("the cluster before the first message is broken: \(error)")
        }
    }()

    private init() throws {
        scheduler = Scheduler(
            configuration: Scheduler.Configuration(),
            reign: Self.reign,
            epoch: Epoch(rawValue: 1)
        )
        try drive(.transportUp)
        try greet(Self.honest, slots: 2, queues: ["honest"])
        try greet(Self.hostile, slots: 3, queues: ["default", "other"])
        try submit(Self.honestGraph, as: GraphID(rawValue: 0))
        try submit(Self.hostileGraph, as: GraphID(rawValue: 1))
        try require(
            honestHeld.count == 2 && hostileHeld.count >= 3,
            "\(honestHeld.count) and \(hostileHeld.count) operations were sent"
        )
        for held in honestHeld { try sayHonestly(.started(held, at: now.monotonic)) }
    }

    private mutating func submit(_ graph: GraphDescription, as id: GraphID) throws {
        resolver.note(graph.operations, from: 0, in: id)
        try drive(.graphSubmitted(try CompiledGraph.compile(graph), isOpen: true))
    }

    private static let honestGraph: GraphDescription = {
        let names = ["a", "b"]
        return GraphDescription(
            name: "honest",
            operations: names.map { name in
                var operation = OperationDescription(name: name, work: .nothing)
                operation.queue = "honest"
                return operation
            }
        )
    }()

    /// A bit of everything that a result can lead to.
    private static let hostileGraph: GraphDescription = {
        func operation(
            _ name: String,
            _ change: (inout OperationDescription) -> Void = { _ in }
        ) -> OperationDescription {
            var operation = OperationDescription(name: name, work: .nothing)
            change(&operation)
            return operation
        }
        return GraphDescription(
            name: "hostile",
            operations: [
                operation("p"),
                operation("q") { $0.retry = RetryPolicy(limit: 2) },
                operation("r") { $0.exclusive = ["key"] },
                operation("s") { $0.exclusive = ["key"] },
                operation("t") { $0.dependencies = [DependencyDescription("p")] },
                operation("u") {
                    $0.dependencies = [DependencyDescription("q", .failed)]
                    $0.queue = "other"
                },
                operation("v") {
                    $0.dependencies = [DependencyDescription("t"), DependencyDescription("r")]
                    $0.cancelSiblings = true
                },
                operation("w") { $0.work = .external(input: .empty) },
            ]
        )
    }()
}

// MARK: - Steps

extension CoordinatorUnderFuzz {
    /// A message of the hostile worker, if the bytes are one.
    mutating func hear(_ bytes: [UInt8], _ rewriting: Rewriting) throws {
        guard var envelope = try? Wire.decodeWorker(bytes) else { return }
        if !rewriting.contains(.keepsReign) {
            envelope.reign = scheduler.reign
            envelope.epoch = scheduler.epoch
        }
        if !rewriting.contains(.keepsSender) { envelope.sender = Self.hostile }
        rewrite(&envelope.body, rewriting)
        guard !speaksForHonest(envelope) else { return }
        let answered = try drive(.workerMessage(envelope))
        try require(
            answered <= 64 * (bytes.count + 4_096),
            "\(bytes.count) bytes are answered by \(answered)"
        )
    }

    private func speaksForHonest(_ envelope: WorkerEnvelope) -> Bool {
        if envelope.sender.incarnation == Self.honest.incarnation { return true }
        guard case .hello(let hello) = envelope.body else { return false }
        return hello.predecessor == Self.honest.incarnation
    }

    private mutating func rewrite(_ body: inout WorkerMessage, _ rewriting: Rewriting) {
        let held = hostileHeld
        func replaced(_ place: HeldAttempt) -> HeldAttempt {
            guard !rewriting.contains(.keepsAttempts), !held.isEmpty else { return place }
            return held[Int(truncatingIfNeeded: place.attempt.number % UInt64(held.count))]
        }
        switch body {
        case .events(var batch):
            if !rewriting.contains(.keepsNumbers) { batch.firstNumber = hostileEvents + 1 }
            batch.events = batch.events.map { event in
                switch event {
                case .started(let held, let at): .started(replaced(held), at: at)
                case .finished(let held, let result): .finished(replaced(held), result)
                case .returned(let held): .returned(replaced(held))
                case .added(let held, let request): .added(replaced(held), request)
                case .yielded(let held, let request): .yielded(replaced(held), request)
                case .read(let held, let request): .read(replaced(held), request)
                }
            }
            hostileEvents = batch.firstNumber &+ UInt64(batch.events.count) &- 1
            body = .events(batch)
        case .beat(var beat):
            if !rewriting.contains(.keepsNumbers) { beat.sent = hostileEvents }
            beat.held = beat.held.map(replaced)
            body = .beat(beat)
        case .log(var chunk):
            chunk.held = replaced(chunk.held)
            body = .log(chunk)
        case .progress(var report):
            report.held = replaced(report.held)
            body = .progress(report)
        case .fetch(var requests):
            for index in requests.indices { requests[index].held = replaced(requests[index].held) }
            body = .fetch(requests)
        case .hello, .tick, .watched: return
        }
    }

    /// The honest worker sends a beat every second, and a lease has more.
    mutating func waitOneSecond() throws {
        now.monotonic = now.monotonic + .seconds(1)
        now.wall = now.wall + .seconds(1)
        try beatHonestly()
        try drive(.timeReached)
    }

    mutating func reconnect() throws {
        try drive(.transportDown)
        try drive(.transportUp)
    }

    /// A client steers the graph of the hostile worker.
    mutating func command(_ choice: UInt8) throws {
        let operation = OperationID(graph: GraphID(rawValue: 1), index: UInt32(choice >> 4 & 7))
        let target = Scheduler.Target.operation(operation)
        switch choice & 7 {
        case 0: try drive(.cancelRequested(target, reason: "r", cascade: choice & 8 != 0))
        case 1: try drive(.suspensionRequested(target, Suspension()))
        case 2: try drive(.suspensionRequested(target, nil))
        case 3: try drive(.priorityRequested(operation, choice & 8 == 0 ? .high : .low))
        case 4: try drive(.retryRequested(operation.graph, operations: [], cancelled: true))
        case 5: try drive(.drainRequested(Self.hostile.incarnation))
        case 6:
            try drive(
                .addressReturned(
                    WorkerAddress(incarnation: Self.hostile.incarnation, connection: 1)
                )
            )
        default: try drive(.completionRequested(operation, attempt: nil, .succeeded(.empty)))
        }
    }

    /// The operations that the honest worker was given first are still its own.
    mutating func finishHonestWork() throws {
        try beatHonestly()
        let held = honestHeld
        try require(held.count == 2, "the honest worker has \(held.count) of 2 operations")
        for held in held {
            let result = AttemptResult(
                end: .succeeded,
                startedAt: now.monotonic,
                endedAt: now.monotonic
            )
            try sayHonestly(.finished(held, result))
            try require(
                scheduler.outcome(of: held.operation) == .succeeded,
                "\(held.operation) succeeded, and is \(scheduler.state(of: held.operation))"
            )
        }
    }
}

// MARK: - The honest worker

extension CoordinatorUnderFuzz {
    private mutating func greet(
        _ worker: WorkerIdentity,
        slots: UInt32,
        queues: [String]
    ) throws {
        let isHonest = worker == Self.honest
        let events = isHonest ? honestEvents : 0
        let hello = Hello(
            sentAt: now.monotonic,
            host: "host",
            processID: 1,
            slots: slots,
            queues: queues,
            kinds: Work.builtInKinds,
            held: isHonest ? honestHeld : [],
            firstEvent: events + 1,
            lastEvent: events,
            isDraining: false
        )
        try send(.hello(hello), from: worker)
        let received = isHonest ? honestReceived : 1
        try send(
            .beat(
                Beat(
                    sentAt: now.monotonic,
                    received: received,
                    sent: events,
                    held: hello.held,
                    isDraining: false
                )
            ),
            from: worker
        )
    }

    private mutating func beatHonestly() throws {
        let beat = Beat(
            sentAt: now.monotonic,
            received: honestReceived,
            sent: honestEvents,
            held: honestHeld,
            isDraining: false
        )
        try send(.beat(beat), from: Self.honest)
    }

    private mutating func sayHonestly(_ event: WorkerEvent) throws {
        honestEvents += 1
        if case .finished(let held, _) = event { honestHeld.removeAll { $0 == held } }
        let batch = EventBatch(
            firstNumber: honestEvents,
            sentAt: now.monotonic,
            events: [event]
        )
        try send(.events(batch), from: Self.honest)
    }

    private mutating func send(_ body: WorkerMessage, from sender: WorkerIdentity) throws {
        let envelope = WorkerEnvelope(
            reign: scheduler.reign,
            epoch: scheduler.epoch,
            sequence: 0,
            sender: sender,
            body: body
        )
        try drive(.workerMessage(envelope))
    }
}

// MARK: - The scheduler

extension CoordinatorUnderFuzz {
    /// Handles an event and all that follows from it.
    ///
    /// - Returns: The bytes that it sent.
    @discardableResult
    private mutating func drive(_ event: Scheduler.Event) throws -> Int {
        scheduler.handle(event, at: now, resolving: &resolver, into: &effects)
        if let broken = scheduler.violatedInvariant() { throw BrokenRule(broken) }
        let (messages, ticks, notices) = (effects.messages, effects.ticks, effects.notices)
        effects.removeAll()
        var sent = 0
        for message in messages { sent += try deliver(message) }
        for notice in notices {
            if case .superseded = notice { throw BrokenRule("a hostile worker ends a coordinator") }
        }
        for number in ticks {
            for way in [Tick.Way.events, .beats] {
                try send(.tick(Tick(number: number, way: way)), from: .none)
            }
        }
        if mustGreet {
            mustGreet = false
            try greet(Self.honest, slots: 2, queues: ["honest"])
        }
        return sent
    }

    /// - Returns: The bytes of the message.
    private mutating func deliver(_ message: Scheduler.Message) throws -> Int {
        let isToAll = message.destination == .everyWorker
        let address = isToAll ? nil : message.destination
        let isToHonest = isToAll || address == Self.address(of: Self.honest)
        let isToHostile = address == Self.address(of: Self.hostile)
        if isToHonest { honestReceived = max(honestReceived, message.sequence) }
        switch message.body {
        case .dispatch(_, let grants):
            if isToHonest { honestHeld += grants.map(\.held).filter { !honestHeld.contains($0) } }
            if isToHostile { hostileHeld += grants.map(\.held) }
            return 0
        case .plain(let body):
            let envelope = CoordinatorEnvelope(
                reign: scheduler.reign,
                epoch: scheduler.epoch,
                sequence: message.sequence,
                sender: .none,
                body: body
            )
            if isToHonest { try hearHonestly(body) }
            do {
                return try Wire.encode(envelope).count
            } catch {
                throw BrokenRule("a message cannot be sent: \(error)")
            }
        }
    }

    private static func address(of worker: WorkerIdentity) -> Scheduler.Destination {
        .worker(WorkerAddress(incarnation: worker.incarnation, connection: worker.connection))
    }

    /// Nothing that another worker says takes its operations away.
    private mutating func hearHonestly(_ body: CoordinatorMessage) throws {
        switch body {
        case .resync: mustGreet = true
        case .refused(let reason): throw BrokenRule("the honest worker is refused: \(reason)")
        case .control(let control):
            try require(control.orders.isEmpty, "the honest worker gets \(control.orders)")
        case .welcome(let welcome):
            try require(welcome.orders.isEmpty, "the honest worker gets \(welcome.orders)")
        case .dispatch, .chunks, .watch: return
        }
    }
}
