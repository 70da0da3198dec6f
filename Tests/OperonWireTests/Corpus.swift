import OperonModel
import Testing

/// A message that was sent once by a released program, and must be read for ever. `name` is that of
/// its file in Corpus/v1.
struct CorpusCase: Sendable, CustomTestStringConvertible {
    let name: String
    let message: Message

    var testDescription: String { name }

    init(_ name: String, coordinator body: CoordinatorMessage) {
        self.name = name
        message = .from(coordinator: body)
    }

    init(_ name: String, worker body: WorkerMessage) {
        self.name = name
        message = .from(worker: body)
    }

    init(_ name: String, _ message: Message) {
        self.name = name
        self.message = message
    }
}

/// Every kind of message and every case in it. Never change one: a new field or case is a new line,
/// and scripts/bless-wire-corpus writes its file.
enum Corpus {
    static let cases: [CorpusCase] = coordinator + worker + errors

    private static let coordinator = [
        CorpusCase("dispatch-nothing", coordinator: Samples.dispatch(.nothing)),
        CorpusCase(
            "dispatch-repeat",
            coordinator: Samples.dispatch(.nothing) {
                $0.ordinal = 2
                $0.isRepeat = true
            }
        ),
        CorpusCase(
            "dispatch-resources",
            coordinator: Samples.dispatch(.nothing) {
                let licences = ResourceAmount(name: "licences", amount: 7)
                $0.resources = [.cpus(0.5), .memory(bytes: 1 << 30), .gpus(1), licences]
            }
        ),
        CorpusCase("dispatch-wait", coordinator: Samples.dispatch(.wait(.milliseconds(250)))),
        CorpusCase(
            "dispatch-command",
            coordinator: Samples.dispatch(.command(Samples.command))
        ),
        CorpusCase(
            "dispatch-command-least",
            coordinator: Samples.dispatch(
                .command(
                    CommandDescription(
                        arguments: ["true"],
                        inheritEnvironment: [],
                        grace: .zero
                    )
                )
            )
        ),
        CorpusCase(
            "dispatch-registered",
            coordinator: Samples.dispatch(
                .registered(
                    kind: "MergeCounts",
                    input: Payload(bytes: Array("{\"top\":20}".utf8))
                )
            )
        ),
        CorpusCase(
            "dispatch-registered-no-input",
            coordinator: Samples.dispatch(.registered(kind: "MergeCounts", input: .empty))
        ),
        CorpusCase("dispatch-full", coordinator: Samples.fullDispatch),
        CorpusCase(
            "dispatch-references",
            coordinator: .dispatch(
                Dispatch(
                    acknowledged: 41,
                    operations: [
                        {
                            var operation = Samples.operation
                            operation.inputs = Samples.inputs
                            return operation
                        }()
                    ]
                )
            )
        ),
        CorpusCase(
            "dispatch-dropped-input",
            coordinator: .dispatch(
                Dispatch(
                    acknowledged: 41,
                    operations: [
                        {
                            var operation = Samples.operation
                            operation.inputs = [Samples.droppedInput]
                            return operation
                        }()
                    ]
                )
            )
        ),
        CorpusCase(
            "dispatch-command-limits",
            coordinator: Samples.dispatch(.command(Samples.limitedCommand))
        ),
        CorpusCase(
            "dispatch-command-enforced",
            coordinator: .dispatch(
                Dispatch(
                    acknowledged: 41,
                    operations: [
                        {
                            var operation = Samples.operation
                            operation.work = .command(Samples.limitedCommand)
                            operation.resources = [.cpus(0.5), .memory(bytes: 1 << 30)]
                            operation.isEnforced = true
                            return operation
                        }()
                    ]
                )
            )
        ),
        CorpusCase(
            "dispatch-command-files",
            coordinator: Samples.dispatch(.command(Samples.makingCommand))
        ),
        CorpusCase(
            "chunks",
            .from(
                coordinator: .chunks([
                    OutputChunk(number: 7, content: .bytes([0, 255, 10])),
                    OutputChunk(number: 8, content: .gone),
                    OutputChunk(number: 9, content: .missing),
                    OutputChunk(number: .max, content: .sent),
                ]),
                sequence: 0
            )
        ),
        CorpusCase(
            "watch",
            .from(coordinator: .watch(Samples.watchOrders), sequence: 0)
        ),
        CorpusCase(
            "control-acknowledgement",
            coordinator: .control(Control(acknowledged: 5))
        ),
        CorpusCase(
            "control-answer",
            coordinator: .control(
                Control(answers: Samples.moment, acknowledged: 5, resendFrom: 6)
            )
        ),
        CorpusCase(
            "control-orders",
            coordinator: .control(
                Control(
                    acknowledged: 0,
                    orders: [
                        .recall(Samples.held), .cancel(Samples.held), .stop(Samples.other),
                    ]
                )
            )
        ),
        CorpusCase(
            "control-verdicts",
            coordinator: .control(
                Control(acknowledged: 9, verdicts: Samples.verdicts)
            )
        ),
        CorpusCase(
            "control-ended",
            coordinator: .control(
                Control(
                    acknowledged: 9,
                    verdicts: [
                        Verdict(number: 4, event: 12, content: .ended(OutcomeKind.allCases))
                    ]
                )
            )
        ),
        CorpusCase(
            "control-output",
            coordinator: .control(
                Control(
                    acknowledged: 9,
                    verdicts: [
                        Verdict(
                            number: 4,
                            event: 12,
                            content: .output(Payload(contentType: "text/plain", bytes: [65, 66]))
                        ),
                        Verdict(number: 5, event: 13, content: .output(nil)),
                    ]
                )
            )
        ),
        CorpusCase("control-recall", coordinator: Samples.control(.recall(Samples.held))),
        CorpusCase("control-cancel", coordinator: Samples.control(.cancel(Samples.held))),
        CorpusCase("control-stop", coordinator: Samples.control(.stop(Samples.held))),
        CorpusCase("control-drain", coordinator: Samples.control(.drain)),
        CorpusCase("welcome", coordinator: .welcome(Samples.welcome)),
        CorpusCase(
            "welcome-orders",
            coordinator: .welcome(
                {
                    var welcome = Samples.welcome
                    welcome.orders = [
                        .stop(Samples.other), .recall(Samples.held), .cancel(Samples.held),
                    ]
                    return welcome
                }()
            )
        ),
        CorpusCase(
            "dispatch-isolated",
            coordinator: .dispatch(
                Dispatch(
                    acknowledged: 41,
                    operations: [
                        {
                            var operation = Samples.operation
                            operation.isIsolated = true
                            operation.announcesStart = true
                            operation.exclusiveLease = .seconds(60)
                            return operation
                        }()
                    ]
                )
            )
        ),
        CorpusCase("resync", .from(coordinator: .resync, sequence: 0)),
        CorpusCase("refused-new-incarnation", coordinator: .refused(.newIncarnation)),
        CorpusCase("refused-name-taken", coordinator: .refused(.nameTaken)),
        CorpusCase("refused-too-many-workers", coordinator: .refused(.tooManyWorkers)),
    ]

    private static let worker = [
        CorpusCase("hello", worker: .hello(Samples.hello)),
        CorpusCase(
            "hello-first",
            .worker(
                WorkerEnvelope(
                    reign: Reign(rawValue: 0),
                    epoch: Epoch(rawValue: 0),
                    sequence: 1,
                    sender: WorkerIdentity(
                        name: "rack-1",
                        incarnation: Incarnation(rawValue: 1),
                        connection: 1
                    ),
                    body: .hello(Samples.firstHello)
                )
            )
        ),
        CorpusCase(
            "events-started",
            worker: Samples.events(.started(Samples.held, at: Samples.moment))
        ),
        CorpusCase(
            "events-succeeded",
            worker: Samples.events(.finished(Samples.held, Samples.result(.succeeded)))
        ),
        CorpusCase(
            "events-up-to-date",
            worker: Samples.events(
                .finished(
                    Samples.held,
                    {
                        var result = Samples.result(.succeeded)
                        result.isUpToDate = true
                        return result
                    }()
                )
            )
        ),
        CorpusCase(
            "events-cancelled",
            worker: Samples.events(.finished(Samples.held, Samples.result(.cancelled)))
        ),
        CorpusCase(
            "events-crashed",
            worker: Samples.events(.finished(Samples.held, Samples.result(.crashed)))
        ),
        CorpusCase(
            "events-not-yet",
            worker: Samples.events(
                .finished(Samples.held, Samples.result(.notYet(after: .seconds(30))))
            )
        ),
        CorpusCase(
            "tick-events",
            .worker(Samples.tick(Tick(number: 1, way: .events)))
        ),
        CorpusCase(
            "tick-beats",
            .worker(Samples.tick(Tick(number: .max, way: .beats)))
        ),
        CorpusCase(
            "hello-predecessor",
            worker: .hello(
                {
                    var hello = Samples.hello
                    hello.worker = "5f0e6c9a7b1d2c34"
                    hello.predecessor = Incarnation(rawValue: 9)
                    return hello
                }()
            )
        ),
        CorpusCase(
            "progress",
            worker: .progress(
                ProgressReport(
                    held: Samples.held,
                    progress: ReportedProgress(fraction: 0.25, text: "reading")
                )
            )
        ),
        CorpusCase("watched", worker: .watched(Samples.watchReports)),
        CorpusCase(
            "hello-watches",
            worker: .hello(
                {
                    var hello = Samples.hello
                    hello.offer.watches = true
                    return hello
                }()
            )
        ),
        CorpusCase(
            "hello-any-kind",
            worker: .hello(
                {
                    var hello = Samples.hello
                    hello.runsAnyKind = true
                    return hello
                }()
            )
        ),
        CorpusCase(
            "hello-resources",
            worker: .hello(
                {
                    var hello = Samples.hello
                    hello.offer = WorkerOffer(
                        resources: [.cpus(3.5), .memory(bytes: 8 << 30), .gpus(2)],
                        labels: [WorkerLabel("arch", "x86_64"), WorkerLabel("region", "eu")]
                    )
                    return hello
                }()
            )
        ),
        CorpusCase(
            "hello-enforces",
            worker: .hello(
                {
                    var hello = Samples.hello
                    hello.offer = WorkerOffer(resources: [.cpus(2)], enforces: true)
                    return hello
                }()
            )
        ),
        CorpusCase(
            "hello-secrets",
            worker: .hello(
                {
                    var hello = Samples.hello
                    hello.offer.secrets = true
                    return hello
                }()
            )
        ),
        CorpusCase(
            "dispatch-command-secrets",
            coordinator: Samples.dispatch(.command(Samples.secretCommand))
        ),
        CorpusCase("events-returned", worker: Samples.events(.returned(Samples.held))),
        CorpusCase(
            "events-mixed",
            worker: Samples.events(
                .started(Samples.held, at: Samples.moment),
                .finished(
                    Samples.held,
                    AttemptResult(
                        end: .succeeded,
                        startedAt: Samples.moment,
                        endedAt: Samples.moment
                    )
                ),
                .returned(Samples.other)
            )
        ),
        CorpusCase(
            "beat",
            worker: .beat(
                Beat(
                    sentAt: Samples.moment,
                    received: 12,
                    sent: 17,
                    held: [Samples.held, Samples.other],
                    isDraining: true
                )
            )
        ),
        CorpusCase(
            "beat-requests",
            worker: .beat(
                Beat(
                    sentAt: Samples.moment,
                    received: 12,
                    sent: 17,
                    held: [Samples.held],
                    isDraining: false,
                    requests: [Samples.firstRequest, Samples.request]
                )
            )
        ),
        CorpusCase(
            "beat-open",
            worker: .beat(
                Beat(
                    sentAt: Samples.moment,
                    received: 12,
                    sent: 17,
                    held: [Samples.held],
                    isDraining: false,
                    open: [OpenRequest(number: 4, held: Samples.held, event: 17)]
                )
            )
        ),
        CorpusCase(
            "events-added",
            worker: Samples.events(
                .added(
                    Samples.held,
                    AdditionRequest(number: 4, operations: [2, 0, 0, 0, 0, 0, 0, 0, 10, 0])
                )
            )
        ),
        CorpusCase(
            "yielded",
            worker: Samples.events(
                .yielded(Samples.held, WaitRequest(number: 4, names: ["b", "other/c"]))
            )
        ),
        CorpusCase(
            "events-read",
            worker: Samples.events(
                .read(Samples.held, ReadRequest(number: 4, name: "other/c"))
            )
        ),
        CorpusCase("fetch", worker: .fetch([Samples.firstRequest, Samples.request])),
        CorpusCase(
            "log-output",
            worker: .log(
                LogChunk(
                    held: Samples.held,
                    stream: .output,
                    offset: 4_096,
                    bytes: [0, 255, 10]
                )
            )
        ),
        CorpusCase(
            "log-error",
            worker: .log(
                LogChunk(held: Samples.held, stream: .error, offset: 0, bytes: [33, 10])
            )
        ),
    ]

    private static let errors = [
        CorpusCase("error-kind-unknown", worker: Samples.failed(.kindUnknown("MergeCounts"))),
        CorpusCase(
            "error-thrown",
            worker: Samples.failed(
                .thrown(type: "ParseError", message: "line 3: no number", payload: [1, 2])
            )
        ),
        CorpusCase("error-exit", worker: Samples.failed(.exit(code: 3))),
        CorpusCase("error-signal", worker: Samples.failed(.signal(name: "SIGSEGV"))),
        CorpusCase("error-timeout", worker: Samples.failed(.timeout)),
        CorpusCase("error-deadline", worker: Samples.failed(.deadline)),
        CorpusCase("error-worker-lost", worker: Samples.failed(.workerLost)),
        CorpusCase(
            "error-input-too-large",
            worker: Samples.failed(.inputTooLarge(bytes: 1_048_577, limit: 1_048_576))
        ),
        CorpusCase(
            "error-output-too-large",
            worker: Samples.failed(.outputTooLarge(bytes: 1_048_577, limit: 1_048_576))
        ),
        CorpusCase("error-undecodable", worker: Samples.failed(.undecodable("no “top”"))),
        CorpusCase(
            "error-version-unsupported",
            worker: Samples.failed(.versionUnsupported("2"))
        ),
        CorpusCase(
            "error-condition-failed",
            worker: Samples.failed(.conditionFailed(name: "disk"))
        ),
    ]
}
