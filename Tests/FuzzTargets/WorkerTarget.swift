import OperonCore
import OperonModel
import OperonWire

extension FuzzTarget {
    /// Messages of a broken coordinator, into a worker's agent that runs some operations and holds
    /// others. Between them operations end and ask for more, time goes by, and the link is cut.
    ///
    /// No attempt starts twice or without a dispatch, no more run than there are slots, and what
    /// the agent sends fits into messages and can be read.
    static let worker = FuzzTarget("wire-worker", bytesMax: 4_096) { bytes in
        var input = InputReader(bytes)
        var worker = WorkerUnderFuzz.prepared
        for _ in 0..<40 where !input.isAtEnd {
            let step = input.byte()
            switch step & 7 {
            case 0...3: try worker.hear(input.piece(), keeping: input.byte())
            case 4: try worker.end(input.byte(), input.byte())
            case 5: try worker.wait(milliseconds: Int(input.byte()) * 40)
            case 6: try worker.ask(input.byte(), input.piece())
            default: try worker.steer(input.byte())
            }
        }
    }
}

/// A worker's agent, and what its shell knows.
struct WorkerUnderFuzz {
    private static let slots = 2

    private var agent: WorkerAgent
    private var now = Timestamp(nanoseconds: 1_000_000_000_000)
    private var effects = WorkerAgent.Effects()
    private var reign = Reign(rawValue: 7)
    private var epoch = Epoch(rawValue: 2)
    private var sequence: UInt64 = 0
    private var connection: UInt32 = 1
    private var requests: UInt64 = 0
    /// In the order of their starts.
    private var running: [AttemptID] = []
    /// Running attempts that gave up their slots.
    private var yielded: Set<AttemptID> = []
    private var dispatched: Set<AttemptID> = []

    /// Welcomed, with two operations that run and one that waits. Made once, and copied for each
    /// input.
    static let prepared: WorkerUnderFuzz = {
        do {
            return try WorkerUnderFuzz()
        } catch {
            preconditionFailure("the worker before the first message is broken: \(error)")
        }
    }()

    private init() throws {
        var configuration = WorkerAgent.Configuration(
            name: "w",
            incarnation: Incarnation(rawValue: 1),
            host: "host",
            processID: 1,
            slots: Self.slots,
            kinds: Work.builtInKinds
        )
        // Small, so that an input can reach them.
        configuration.limits.cachedBytes = 4_096
        configuration.limits.retainedBytes = 64 << 10
        agent = WorkerAgent(configuration: configuration)
        try drive(.linkUp(connection: connection))
        try say(
            .welcome(
                Welcome(
                    answers: now,
                    lease: .seconds(6),
                    beat: .seconds(2),
                    eventWindow: 1 << 20,
                    orphanAfter: .seconds(60),
                    acknowledged: 0
                )
            )
        )
        let operations = (1...3).map { Self.operation($0) }
        try say(.dispatch(Dispatch(acknowledged: 0, operations: operations)))
        try require(running.count == Self.slots, "\(running.count) operations run")
    }

    private static func operation(_ number: UInt64) -> DispatchedOperation {
        DispatchedOperation(
            held: HeldAttempt(
                attempt: AttemptID(epoch: Epoch(rawValue: 2), number: number),
                operation: OperationID(graph: GraphID(rawValue: 0), index: UInt32(number))
            ),
            ordinal: 1,
            graphName: "g",
            name: "o\(number)",
            queue: QueueSettings.defaultName,
            work: .nothing,
            priority: .normal,
            rank: 0,
            timeout: nil,
            qualityOfService: .default,
            inputs: []
        )
    }
}

// MARK: - Steps

extension WorkerUnderFuzz {
    /// A message of a coordinator, if the bytes are one. Unless bits of `kept` say otherwise, it
    /// comes from the coordinator that the worker follows, after those before it.
    mutating func hear(_ bytes: [UInt8], keeping kept: UInt8) throws {
        guard var envelope = try? Wire.decodeCoordinator(bytes) else { return }
        if kept & 1 == 0 { envelope.reign = reign }
        if kept & 2 == 0 { envelope.epoch = epoch }
        if kept & 4 == 0 { envelope.sequence = sequence + 1 }
        (reign, epoch) = (envelope.reign, envelope.epoch)
        // The numbers of one connection do not come to their end.
        sequence = min(envelope.sequence, UInt64.max / 2)
        try deliver(envelope)
    }

    private mutating func say(_ body: CoordinatorMessage) throws {
        sequence += 1
        try deliver(
            CoordinatorEnvelope(
                reign: reign,
                epoch: epoch,
                sequence: sequence,
                sender: .none,
                body: body
            )
        )
    }

    private mutating func deliver(_ envelope: CoordinatorEnvelope) throws {
        if case .dispatch(let dispatch) = envelope.body {
            for operation in dispatch.operations { dispatched.insert(operation.held.attempt) }
        }
        try drive(.message(envelope))
    }

    /// A running attempt ends.
    mutating func end(_ choice: UInt8, _ ending: UInt8) throws {
        guard !running.isEmpty else { return }
        let attempt = running.remove(at: Int(choice) % running.count)
        yielded.remove(attempt)
        let ends: [AttemptEnd] = [
            .succeeded, .failed(.timeout), .cancelled, .crashed, .notYet(after: .seconds(1)),
        ]
        let result = AttemptResult(
            end: ends[Int(ending) % ends.count],
            startedAt: now,
            endedAt: now,
            output: Payload(bytes: Array(repeating: 1, count: Int(ending) * 64))
        )
        try drive(.ended(attempt, result))
    }

    mutating func wait(milliseconds: Int) throws {
        now = now + .milliseconds(milliseconds)
        try drive(.timeReached)
    }

    /// A running operation makes a request.
    mutating func ask(_ choice: UInt8, _ bytes: [UInt8]) throws {
        guard !running.isEmpty else { return }
        let attempt = running[Int(choice >> 2) % running.count]
        requests += 1
        let name = String(decoding: bytes, as: UTF8.self)
        switch choice & 3 {
        case 0: try drive(.asked(requests, attempt, .add(bytes)))
        case 1:
            yielded.insert(attempt)
            try drive(.asked(requests, attempt, .wait([name])))
        case 2: try drive(.asked(requests, attempt, .read(name)))
        default: try drive(.withdrawn(UInt64(choice)))
        }
    }

    /// The link, and the end of the worker.
    mutating func steer(_ choice: UInt8) throws {
        switch choice & 7 {
        case 0...3:
            try drive(.linkDown)
            connection += 1
            sequence = 0
            try drive(.linkUp(connection: connection))
        case 4, 5: try drive(.returned)
        case 6: try drive(.drainRequested(deadline: now + .seconds(Int(choice >> 3))))
        default: try drive(.stopRequested)
        }
    }
}

// MARK: - The agent

extension WorkerUnderFuzz {
    private mutating func drive(_ event: WorkerAgent.Event) throws {
        agent.handle(event, at: now, into: &effects)
        let done = effects
        effects.removeAll()
        for (_, envelope) in done.messages { try check(envelope) }
        for operation in done.starts {
            let attempt = operation.held.attempt
            try require(dispatched.contains(attempt), "\(attempt) starts, and nobody sent it")
            try require(!running.contains(attempt), "\(attempt) starts while it runs")
            running.append(attempt)
        }
        try require(
            running.count - yielded.count <= Self.slots,
            "\(running.count) operations run in \(Self.slots) slots, \(yielded.count) of them wait"
        )
        for stop in done.stops {
            // Its shell ends it, and says so.
            guard case .kill(let attempt) = stop, let place = running.firstIndex(of: attempt)
            else { continue }
            running.remove(at: place)
            yielded.remove(attempt)
            let result = AttemptResult(end: .cancelled, startedAt: now, endedAt: now)
            try drive(.ended(attempt, result))
        }
        for step in done.inputSteps { try follow(step) }
    }

    /// The inputs of an operation arrive and are stored.
    private mutating func follow(_ step: OutputFetcher.Step) throws {
        switch step {
        case .check(let hash, let bytes):
            try drive(.inputs(.checked(hash, isRight: bytes.count % 5 != 0)))
        case .give(let attempt, let job, _): try drive(.inputs(.stored(attempt, job: job)))
        case .begin, .abandon: return
        }
    }

    /// A coordinator reads what it is sent as it was meant.
    private func check(_ envelope: WorkerEnvelope) throws {
        let read: WorkerEnvelope
        do {
            read = try Wire.decodeWorker(try Wire.encode(envelope))
        } catch {
            throw BrokenRule("a message cannot be sent: \(error)")
        }
        try require(read == envelope, "a message is read as another one: \(envelope)")
    }
}
