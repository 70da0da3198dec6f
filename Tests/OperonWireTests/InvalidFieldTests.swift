import OperonFaultKit
import OperonModel
import OperonWire
import Testing

/// A message that breaks what operon.proto says of one field, and the field that is then named.
struct BrokenMessage: Sendable, CustomTestStringConvertible {
    let field: String
    let bytes: [UInt8]
    var isFromWorker = false

    var testDescription: String { field }

    static func coordinator(
        _ field: String,
        _ body: (inout RawMessage) -> Void
    ) -> BrokenMessage {
        BrokenMessage(field: field, bytes: RawMessage.coordinator(body))
    }

    static func worker(_ field: String, _ body: (inout RawMessage) -> Void) -> BrokenMessage {
        BrokenMessage(field: field, bytes: RawMessage.worker(body), isFromWorker: true)
    }

    /// An event of a batch that is otherwise right.
    static func event(_ field: String, _ body: (inout RawMessage) -> Void) -> BrokenMessage {
        .worker(field) { envelope in
            envelope.message(9) { batch in
                batch.integer(1, 1)
                batch.message(3, body)
            }
        }
    }

    /// A request of a fetch that is otherwise right.
    static func request(_ field: String, _ body: (inout RawMessage) -> Void) -> BrokenMessage {
        .worker(field) { envelope in
            envelope.message(33) { $0.message(1, body) }
        }
    }

    /// A report of a watch that is otherwise right.
    static func report(_ field: String, _ body: (inout RawMessage) -> Void) -> BrokenMessage {
        .worker(field) { envelope in
            envelope.message(37) {
                $0.message(1) { report in
                    report.fixed(1, 1)
                    body(&report)
                }
            }
        }
    }

    /// A report of an occurrence that is otherwise right.
    static func occurrence(_ field: String, _ body: (inout RawMessage) -> Void) -> BrokenMessage {
        .report(field) { $0.message(5, body) }
    }

    /// A result in an event that is otherwise right.
    static func result(_ field: String, _ body: (inout RawMessage) -> Void) -> BrokenMessage {
        .event(field) { event in
            event.held()
            event.message(3, body)
        }
    }
}

@Suite struct InvalidFieldTests {
    static let envelopes: [BrokenMessage] = [
        .coordinator("reign") {
            $0.fixed(3, 0); $0.message(14)
        },
        .coordinator("epoch") {
            $0.integer(4, 0); $0.message(14)
        },
        .coordinator("refused") { $0.integer(15, 0) },
        .coordinator("refused") { $0.integer(15, 4) },
        .coordinator("refused") { $0.integer(15, signed: -1) },
        BrokenMessage(
            field: "sender",
            bytes: RawMessage.coordinator { $0.message(10) },
            isFromWorker: true
        ),
        .worker("sender.name") {
            $0.message(6) { $0.string(1, "") }; $0.message(10)
        },
        .worker("sender.name") {
            $0.message(6) { $0.string(1, String(repeating: "n", count: 257)) }
            $0.message(10)
        },
        .worker("sender.incarnation") {
            $0.message(6) { $0.fixed(2, 0) }; $0.message(10)
        },
        .worker("sender.connection") {
            $0.message(6) { $0.integer(3, 0) }; $0.message(10)
        },
    ]

    static let coordinators: [BrokenMessage] = [
        .coordinator("welcome.answers") { $0.message(12) { welcome(&$0, answers: -1) } },
        .coordinator("welcome.lease") { $0.message(12) { welcome(&$0, lease: 0) } },
        .coordinator("welcome.lease") { $0.message(12) { welcome(&$0, lease: -1) } },
        .coordinator("welcome.beat") { $0.message(12) { welcome(&$0, beat: 0) } },
        .coordinator("welcome.event_window") { $0.message(12) { welcome(&$0, window: 0) } },
        .coordinator("welcome.orphan_after") { $0.message(12) { welcome(&$0, orphan: -1) } },
        .coordinator("order") {
            $0.message(12) {
                welcome(&$0); $0.message(7)
            }
        },
        .coordinator("order.stop") {
            $0.message(12) {
                welcome(&$0); $0.message(7) { $0.message(3) }
            }
        },
        .coordinator("control.answers") { $0.message(8) { $0.integer(1, signed: -1) } },
        .coordinator("control.resend_from") { $0.message(8) { $0.integer(3, 0) } },
        .coordinator("order") { $0.message(8) { $0.message(4) } },
        .coordinator("order.recall") { $0.message(8) { $0.message(4) { $0.message(1) } } },
        .coordinator("order.cancel") { $0.message(8) { $0.message(4) { $0.message(2) } } },
        .coordinator("order.stop") {
            $0.message(8) { $0.message(4) { $0.message(3) { $0.integer(1, 1) } } }
        },
        .coordinator("chunks.chunks") { $0.message(34) },
        .coordinator("chunk.number") { $0.message(34) { $0.message(1) } },
        .coordinator("chunk.what") { $0.message(34) { $0.message(1) { $0.integer(1, 1) } } },
        .coordinator("chunk.value") {
            $0.message(34) {
                $0.message(1) { chunk in
                    chunk.integer(1, 1)
                    chunk.data(2, [])
                }
            }
        },
        .coordinator("watch.orders") { $0.message(36) },
        .coordinator("watch.what") { $0.message(36) { $0.message(1) } },
        .coordinator("begin.watch") { $0.message(36) { $0.message(1) { $0.message(1) } } },
        .coordinator("end") { $0.message(36) { $0.message(1) { $0.fixed(2, 0) } } },
        .coordinator("taken.identity") {
            $0.message(36) {
                $0.message(1) {
                    $0.message(3) {
                        $0.fixed(1, 1); $0.string(2, "a b")
                    }
                }
            }
        },
        .coordinator("identify.process") {
            $0.message(36) { $0.message(1) { $0.message(5) { $0.integer(1, 1) } } }
        },
        .coordinator("dispatch.operations") { $0.message(7) },
        .coordinator("operation.held") { $0.message(7) { $0.message(2) } },
        .coordinator("operation.held") { $0.message(7) { $0.message(2) { $0.message(1) } } },
    ]

    static let workers: [BrokenMessage] = [
        .worker("hello.process_id") { $0.message(13) { $0.integer(2, signed: -1) } },
        .worker("hello.host") {
            $0.message(13) { hello in
                hello.string(1, String(repeating: "h", count: 257))
                hello.integer(3, 1)
                hello.integer(7, 1)
            }
        },
        .worker("hello.first_event") { $0.message(13) { $0.integer(3, 1) } },
        .worker("hello.first_event") {
            $0.message(13) {
                $0.integer(3, 1); $0.integer(7, 9); $0.integer(8, 7)
            }
        },
        .worker("hello.kinds") {
            $0.message(13) {
                $0.integer(3, 1); $0.integer(7, 1); $0.string(5, "")
            }
        },
        .worker("hello.held") {
            $0.message(13) {
                $0.integer(3, 1); $0.integer(7, 1); $0.message(6)
            }
        },
        .worker("hello.sent_at") {
            $0.message(13) {
                $0.integer(3, 1); $0.integer(7, 1); $0.integer(13, signed: -1)
            }
        },
        .worker("beat.sent_at") { $0.message(10) { $0.integer(1, signed: .min) } },
        .worker("beat.held") { $0.message(10) { $0.message(4) { $0.integer(1, 1) } } },
        .worker("request.held") { $0.message(10) { $0.message(6) { $0.integer(1, 1) } } },
        .worker("fetch.requests") { $0.message(33) },
        .request("request.held") { $0.integer(1, 1) },
        .request("request.held") {
            $0.integer(1, 1); $0.message(2)
        },
        .request("request.number") {
            $0.held(2); $0.integer(6, 1)
        },
        .request("request.offset") {
            $0.integer(1, 1); $0.held(2)
            $0.integer(5, 1 << 63); $0.integer(6, 1)
        },
        .request("request.length") {
            $0.integer(1, 1); $0.held(2)
        },
        .worker("log.held") { $0.message(11) },
        .worker("log.stream") { $0.message(11) { $0.held() } },
        .worker("log.stream") {
            $0.message(11) {
                $0.held(); $0.integer(2, 3)
            }
        },
        .worker("progress.held") { $0.message(35) },
        .worker("progress.fraction") {
            $0.message(35) {
                $0.held(); $0.fixed(2, (1.5).bitPattern)
            }
        },
        .worker("progress.fraction") {
            $0.message(35) {
                $0.held(); $0.fixed(2, Double.nan.bitPattern)
            }
        },
        .worker("progress.text") {
            $0.message(35) {
                $0.held(); $0.string(3, String(repeating: "t", count: 257))
            }
        },
        .worker("watched.reports") { $0.message(37) },
        .worker("watched.what") { $0.message(37) { $0.message(1) } },
        .worker("watched.watch") { $0.message(37) { $0.message(1) { $0.message(3) } } },
        .report("watched.state") { $0.message(3) },
        .report("refused.count") { $0.message(4) },
        .report("problem.message") {
            $0.message(3) {
                $0.integer(1, 3)
                $0.message(2) { $0.string(2, String(repeating: "p", count: 2_001)) }
            }
        },
        .report("holds.watch") { $0.message(2) { $0.message(1) } },
        .report("holds.state") { $0.message(2) { $0.message(1) { $0.fixed(1, 1) } } },
        .report("holds.watches") { $0.message(2) { for _ in 0...10_000 { $0.message(1) } } },
        .report("holds.occurrence") {
            $0.message(2) {
                $0.message(1) {
                    $0.fixed(1, 1); $0.integer(3, 1); $0.string(4, "a b")
                }
            }
        },
        .occurrence("occurred.identity") { $0.data(2, Array("{}".utf8)) },
        .occurrence("occurred.identity") {
            $0.string(1, String(repeating: "i", count: 257)); $0.data(2, Array("{}".utf8))
        },
        .occurrence("occurred.event") { $0.string(1, "i") },
        .occurrence("occurred.event") {
            $0.string(1, "i"); $0.data(2, Array("[]".utf8))
        },
        .occurrence("occurred.event") {
            $0.string(1, "i"); $0.data(2, [0x7B] + [UInt8](repeating: 0x20, count: 256 << 10))
        },
        .worker("identified.number") { $0.message(37) { $0.message(1) { $0.message(6) } } },
        .worker("unidentified.number") { $0.message(37) { $0.message(1) { $0.message(7) } } },
        .worker("events.events") { $0.message(9) { $0.integer(1, 1) } },
        .worker("events.first_number") { $0.message(9) { $0.message(3) } },
        .worker("events.first_number") {
            $0.message(9) {
                $0.integer(1, .max); $0.message(3)
            }
        },
        .event("event.held") { $0.message(4) },
        .event("event.held") {
            $0.message(1); $0.message(4)
        },
        .event("event.what") { $0.held() },
        .event("event.started_at") {
            $0.held(); $0.integer(2, signed: -1)
        },
        .result("result.end") { _ in },
        .result("result.started_at") {
            $0.message(1); $0.integer(4, signed: -1)
        },
        .result("result.ended_at") {
            $0.message(1); $0.integer(5, signed: -1)
        },
        .result("error.kind") { $0.message(2) },
        .result("error.input_too_large.bytes") {
            $0.message(2) { $0.message(8) { $0.integer(1, 1 << 63) } }
        },
        .result("error.output_too_large.limit") {
            $0.message(2) { $0.message(9) { $0.integer(2, .max) } }
        },
    ]

    @Test(arguments: envelopes + coordinators + workers)
    func `a message with a field that nobody may send is refused and names it`(
        _ broken: BrokenMessage
    ) {
        let error = #expect(throws: WireError.self) {
            if broken.isFromWorker {
                _ = try Wire.decodeWorker(broken.bytes)
            } else {
                _ = try Wire.decodeCoordinator(broken.bytes)
            }
        }

        #expect(error?.code == .invalidField(broken.field))
        #expect(error?.message.contains("“\(broken.field)”") == true)
    }

    // MARK: - Operations: set aside with the reason

    /// What is added to an operation that is right, and the field that is then named.
    static let operations: [(String, @Sendable (inout RawMessage) -> Void)] = [
        ("operation.priority", { $0.zigzag(6, 1) }),
        ("operation.priority", { $0.zigzag(6, -12) }),
        ("operation.priority", { $0.zigzag(6, 256) }),
        ("operation.ordinal", { $0.integer(2, 0) }),
        ("operation.graph_name", { $0.string(3, String(repeating: "g", count: 257)) }),
        ("operation.name", { $0.string(4, "") }),
        ("operation.queue", { $0.string(5, "") }),
        ("operation.timeout", { $0.integer(8, signed: -1) }),
        ("operation.quality_of_service", { $0.integer(9, 5) }),
        ("input.name", { $0.message(10) }),
        ("input.name", { $0.message(10) { $0.string(1, String(repeating: "i", count: 257)) } }),
        ("reference.hash", { $0.reference(hashBytes: 31) }),
        ("reference.hash", { $0.reference(hashBytes: 33) }),
        ("reference.byte_count", { $0.reference(byteCount: 0) }),
        ("reference.byte_count", { $0.reference(byteCount: 1 << 63) }),
        ("input.reference", { $0.reference(hasOutput: true) }),
        (
            "input.dropped",
            {
                $0.message(10) {
                    $0.string(1, "a"); $0.message(2); $0.integer(4, 1)
                }
            }
        ),
        ("operation.wait", { $0.integer(12, signed: -5) }),
        ("command.arguments", { $0.message(13) }),
        (
            "command.grace",
            {
                $0.message(13) {
                    $0.string(1, "a"); $0.integer(5, signed: -1)
                }
            }
        ),
        (
            "command.memory",
            {
                $0.message(13) {
                    $0.string(1, "a"); $0.integer(20, 0)
                }
            }
        ),
        (
            "command.memory",
            {
                $0.message(13) {
                    $0.string(1, "a"); $0.integer(20, 1 << 63)
                }
            }
        ),
        (
            "command.cpu_time",
            {
                $0.message(13) {
                    $0.string(1, "a"); $0.integer(21, 0)
                }
            }
        ),
        (
            "command.environment",
            {
                $0.message(13) { command in
                    command.string(1, "true")
                    command.message(2) { $0.string(1, "A") }
                    command.message(2) { $0.string(1, "A") }
                }
            }
        ),
        // A name that leads out of a directory, a value beside it, and twice one variable.
        ("command.environment", { $0.secretVariable("A", "../a") }),
        ("command.environment", { $0.secretVariable("A", "a", value: "x") }),
        ("command.environment", { $0.secretVariable("PATH", "a") }),
        ("command.environment", { $0.secretVariable("A", "a", again: true) }),
        // A secret where older programs look, and none where secrets are.
        ("command.environment", { $0.secretVariable("A", "a", field: 13) }),
        ("command.environment", { $0.message(32) { $0.string(1, "true") } }),
        ("operation.kind", { $0.message(14) }),
        // Not a command.
        (
            "operation.is_enforced",
            {
                $0.message(24) {
                    $0.string(1, "cpus"); $0.integer(2, 1_000)
                }
                $0.integer(25, 1)
            }
        ),
        // Nothing that could be enforced.
        (
            "operation.is_enforced",
            {
                $0.message(13) { $0.string(1, "a") }
                $0.message(24) {
                    $0.string(1, "gpus"); $0.integer(2, 1)
                }
                $0.integer(25, 1)
            }
        ),
    ]

    @Test(arguments: operations.indices)
    func `an operation with such a field is set aside and the reason names it`(
        index: Int
    ) throws {
        let (field, add) = Self.operations[index]
        let bytes = RawMessage.coordinator { envelope in
            envelope.message(7) { dispatch in
                dispatch.message(2) { operation in
                    operation.held()
                    operation.integer(2, 1)
                    operation.string(4, "n")
                    operation.string(5, "q")
                    operation.message(11)
                    add(&operation)
                }
            }
        }

        let body = try Wire.decodeCoordinator(bytes).body

        guard case .dispatch(let dispatch) = body else {
            Issue.record("not a dispatch: \(body)")
            return
        }
        #expect(dispatch.operations.isEmpty)
        #expect(dispatch.unreadable.count == 1)
        #expect(dispatch.unreadable.first?.why.contains("“\(field)”") == true)
    }
}

/// A welcome in which one number may be wrong.
private func welcome(
    _ message: inout RawMessage,
    answers: Int64 = 0,
    lease: Int64 = 1,
    beat: Int64 = 1,
    window: UInt64 = 1,
    orphan: Int64 = 0
) {
    message.integer(1, signed: lease)
    message.integer(2, signed: beat)
    message.integer(3, window)
    message.integer(4, signed: orphan)
    message.integer(6, signed: answers)
}
