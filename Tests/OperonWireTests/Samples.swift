import OperonModel

/// The parts that the corpus and the tests put together. The corpus depends on them: never change
/// one, add another.
enum Samples {
    static let held = HeldAttempt(
        attempt: AttemptID(epoch: Epoch(rawValue: 3), number: 300),
        operation: OperationID(graph: GraphID(rawValue: 12), index: 70_000)
    )

    static let other = HeldAttempt(
        attempt: AttemptID(epoch: Epoch(rawValue: 2), number: 1),
        operation: OperationID(graph: GraphID(rawValue: 1), index: 0)
    )

    static let moment = Timestamp(nanoseconds: 86_400_000_000_001)

    static let operation = DispatchedOperation(
        held: held,
        ordinal: 1,
        graphName: "wordcount",
        name: "count-a",
        queue: "default",
        work: .nothing,
        priority: .normal,
        rank: 9,
        timeout: nil,
        qualityOfService: .default,
        inputs: []
    )

    static func dispatch(
        _ work: Work,
        _ change: (inout DispatchedOperation) -> Void = { _ in }
    ) -> CoordinatorMessage {
        var operation = operation
        operation.work = work
        change(&operation)
        return .dispatch(Dispatch(acknowledged: 41, operations: [operation]))
    }

    static func result(_ end: AttemptEnd) -> AttemptResult {
        AttemptResult(
            end: end,
            startedAt: moment,
            endedAt: moment + .milliseconds(1_500),
            output: Payload(bytes: Array("{\"count\":3}".utf8)),
            log: KeptLog(missing: 1_000, tail: Array("done\n".utf8))
        )
    }

    static func events(_ events: WorkerEvent...) -> WorkerMessage {
        .events(
            EventBatch(firstNumber: 17, sentAt: moment + .seconds(2), events: events)
        )
    }

    static func failed(_ error: OperationError) -> WorkerMessage {
        events(.finished(held, result(.failed(error))))
    }

    /// One operation for every priority and quality of service, with all that is optional.
    static let fullDispatch: CoordinatorMessage = {
        let operations = zip(QueuePriority.allCases, QualityOfService.allCases).map {
            priority,
            quality in
            DispatchedOperation(
                held: held,
                ordinal: 4,
                graphName: "größe",
                name: "mērge",
                queue: "fast",
                work: .wait(.zero),
                priority: priority,
                rank: .max,
                timeout: .seconds(300),
                qualityOfService: quality,
                inputs: [
                    NamedInput(name: "none", output: nil),
                    NamedInput(name: "empty", output: .empty),
                    NamedInput(
                        name: "text",
                        output: Payload(contentType: "text/plain", bytes: [104, 105])
                    ),
                ]
            )
        }
        return .dispatch(Dispatch(acknowledged: .max, operations: operations))
    }()

    static let command = CommandDescription(
        arguments: ["/bin/sh", "-c", "exit 3"],
        environment: ["B": "2", "A": "1", "Ä": "ü", "EMPTY": ""],
        inheritEnvironment: ["PATH", "HOME"],
        directory: "/srv/data",
        grace: .seconds(3)
    )

    /// One of each, with every refusal.
    static let verdicts: [Verdict] = {
        let refusals: [Refusal] = [
            .dependencyCycle(path: ["a", "b", "a"]),
            .unknownOperation(name: "b", namedBy: "a"), .duplicateOperation(name: "a"),
            .alreadySubmitted(name: "a"), .alreadyStarted(name: "a"),
            .alreadyFinished(name: "a"), .graphClosed(name: "wordcount"),
            .invalid(field: "priority of “a”", why: "there is no such priority"),
            .limitExceeded(limit: .operationsPerGraph, value: 1_000_001, maximum: 1_000_000),
            .unreachable("nobody answers"),
        ]
        let contents: [Verdict.Content] = [.added(3), .again] + refusals.map { .refused($0) }
        return contents.enumerated().map { place, content in
            Verdict(number: UInt64(place + 1), event: 17, content: content)
        }
    }()

    /// An input of every sort.
    static let inputs = [
        NamedInput(name: "here", output: Payload(bytes: [55])),
        NamedInput(name: "large", output: nil, reference: reference),
        NamedInput(
            name: "text",
            output: nil,
            reference: OutputReference(
                operation: OperationID(graph: GraphID(rawValue: 0), index: 0),
                byteCount: 1,
                hash: ContentHash(bytes: [UInt8](repeating: 0, count: 32))!,
                contentType: "text/plain"
            )
        ),
        NamedInput(name: "none", output: nil),
    ]

    /// One whose output is not kept any more.
    static let droppedInput = {
        var input = NamedInput(name: "long-ago", output: nil)
        input.isDropped = true
        return input
    }()

    static let reference = OutputReference(
        operation: OperationID(graph: GraphID(rawValue: 12), index: 69_999),
        byteCount: 1 << 20,
        hash: ContentHash(bytes: 0..<32)!
    )

    static let request = OutputRequest(
        number: 7,
        held: held,
        operation: reference.operation,
        offset: 262_144,
        length: 262_144
    )

    static let firstRequest = OutputRequest(
        number: 1,
        held: other,
        operation: other.operation,
        offset: 0,
        length: 1
    )

    static let limitedCommand: CommandDescription = {
        var command = Samples.command
        command.memory = 512 << 20
        command.cpuTime = .seconds(600)
        return command
    }()

    static let makingCommand: CommandDescription = {
        var command = Samples.command
        command.produces = ["out/page.html", "/srv/index"]
        command.consumes = ["page.md"]
        command.skipsIfUpToDate = true
        return command
    }()

    static let secretCommand: CommandDescription = {
        var command = Samples.command
        command.secrets = ["PASSWORD": "db", "Z": "a.b_c-1"]
        return command
    }()

    static let welcome = Welcome(
        answers: moment,
        lease: .seconds(6),
        beat: .seconds(2),
        eventWindow: 1 << 20,
        orphanAfter: .seconds(86_400),
        acknowledged: 17
    )

    /// A control of one order.
    static func control(_ order: Order) -> CoordinatorMessage {
        .control(Control(acknowledged: 41, orders: [order]))
    }

    static let hello = Hello(
        sentAt: moment,
        host: "rack-1.example",
        processID: 4_711,
        slots: 8,
        queues: ["default", "fast"],
        kinds: ["command", "nothing", "wait"],
        held: [held, other],
        firstEvent: 18,
        lastEvent: 20,
        isDraining: true
    )

    static let firstHello = Hello(
        sentAt: Timestamp(nanoseconds: 1),
        host: "rack-1.example",
        processID: 4_711,
        slots: 1,
        queues: [],
        kinds: [Work.commandKind, Work.nothingKind, Work.waitKind],
        held: [],
        firstEvent: 1,
        lastEvent: 0,
        isDraining: false
    )

    /// What a coordinator says to itself has no sender.
    static func tick(_ tick: Tick) -> WorkerEnvelope {
        WorkerEnvelope(
            reign: Reign(rawValue: 5),
            epoch: Epoch(rawValue: 3),
            sequence: 0,
            sender: .none,
            body: .tick(tick)
        )
    }
}
