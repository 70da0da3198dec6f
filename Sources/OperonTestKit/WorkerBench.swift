package import OperonCore
package import OperonModel

/// A worker's agent on a test bench, with a coordinator that says what the test wants.
package struct WorkerBench {
    package var agent: WorkerAgent
    package var now = Timestamp(nanoseconds: 1_000_000_000_000)
    /// Since the last `drain`.
    package var effects = WorkerAgent.Effects()
    /// What the coordinator's messages carry.
    package var reign = Reign(rawValue: 7)
    package var epoch = Epoch(rawValue: 2)
    package var sequence: UInt64 = 0

    package init(
        slots: Int = 2,
        _ change: (inout WorkerAgent.Configuration) -> Void = { _ in }
    ) {
        var configuration = WorkerAgent.Configuration(
            name: "w",
            incarnation: Incarnation(rawValue: 1),
            host: "bench",
            processID: 1,
            slots: slots,
            kinds: Work.builtInKinds
        )
        change(&configuration)
        agent = WorkerAgent(configuration: configuration)
    }

    package mutating func drive(_ event: WorkerAgent.Event) {
        agent.handle(event, at: now, into: &effects)
    }

    package mutating func advance(by duration: Duration) {
        now = now + duration
        drive(.timeReached)
    }

    /// Connected and welcomed; nothing of that is left to look at.
    package mutating func join() {
        drive(.linkUp(connection: 1))
        welcome()
        drain()
    }

    // MARK: The coordinator

    package mutating func say(_ body: CoordinatorMessage, sequence number: UInt64? = nil) {
        sequence = number ?? sequence + 1
        drive(
            .message(
                CoordinatorEnvelope(
                    reign: reign,
                    epoch: epoch,
                    sequence: sequence,
                    sender: .none,
                    body: body
                )
            )
        )
    }

    package mutating func welcome(
        acknowledged: UInt64 = 0,
        window: UInt32 = 1 << 20,
        orders: [Order] = []
    ) {
        say(
            .welcome(
                Welcome(
                    answers: now,
                    lease: .seconds(6),
                    beat: .seconds(2),
                    eventWindow: window,
                    orphanAfter: .seconds(60),
                    acknowledged: acknowledged,
                    orders: orders
                )
            )
        )
    }

    package mutating func dispatch(
        _ numbers: [UInt64],
        acknowledged: UInt64 = 0,
        _ change: (inout DispatchedOperation) -> Void = { _ in }
    ) {
        let operations = numbers.map { number in
            var operation = Self.operation(number)
            change(&operation)
            return operation
        }
        say(.dispatch(Dispatch(acknowledged: acknowledged, operations: operations)))
    }

    /// The answer to the beat that was sent now.
    package mutating func answer(acknowledged: UInt64 = 0, orders: [Order] = []) {
        say(.control(Control(answers: now, acknowledged: acknowledged, orders: orders)))
    }

    package mutating func order(_ orders: Order...) {
        say(.control(Control(acknowledged: 0, orders: orders)))
    }

    // MARK: Its operations

    /// Attempt and operation have the same number.
    package static func held(_ number: UInt64) -> HeldAttempt {
        HeldAttempt(
            attempt: AttemptID(epoch: Epoch(rawValue: 2), number: number),
            operation: OperationID(graph: GraphID(rawValue: 0), index: UInt32(number))
        )
    }

    package static func operation(_ number: UInt64) -> DispatchedOperation {
        DispatchedOperation(
            held: held(number),
            ordinal: 1,
            graphName: "graph",
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

    package mutating func end(_ number: UInt64, _ end: AttemptEnd = .succeeded, output: Int = 0) {
        drive(.ended(Self.held(number).attempt, result(end, output: output)))
    }

    package func result(_ end: AttemptEnd = .succeeded, output: Int = 0) -> AttemptResult {
        AttemptResult(
            end: end,
            startedAt: now,
            endedAt: now,
            output: Payload(bytes: Array(repeating: 0, count: output))
        )
    }

    // MARK: What came of it

    @discardableResult
    package mutating func drain() -> WorkerAgent.Effects {
        let taken = effects
        effects.removeAll()
        return taken
    }
}

extension WorkerAgent.Effects {
    /// Numbers of the operations that are to be started, in order.
    package var started: [UInt64] { starts.map(\.held.attempt.number) }

    package var hellos: [Hello] {
        messages.compactMap { if case .hello(let hello) = $0.envelope.body { hello } else { nil } }
    }

    package var beats: [Beat] {
        messages.compactMap { if case .beat(let beat) = $0.envelope.body { beat } else { nil } }
    }

    package var batches: [EventBatch] {
        messages.compactMap {
            if case .events(let batch) = $0.envelope.body { batch } else { nil }
        }
    }

    package var events: [WorkerEvent] { batches.flatMap(\.events) }

    /// Whether nothing at all is asked for, but perhaps a wake-up.
    package var isEmpty: Bool {
        messages.isEmpty && inputSteps.isEmpty && starts.isEmpty && stops.isEmpty && notices.isEmpty
            && !wantsReconnect
            && !wantsExit
    }
}
