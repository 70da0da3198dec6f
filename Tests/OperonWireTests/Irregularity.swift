import OperonFaultKit
import OperonModel
import Testing

/// A dispatch or an event batch with one thing that our encoders never write.
struct Irregularity: Sendable, CustomTestStringConvertible {
    let name: String
    let bytes: [UInt8]
    let message: Message

    var testDescription: String { name }

    static let all = envelopes + dispatches + operations + events + results

    // MARK: - Parts

    private typealias Change = (inout RawMessage) -> Void

    /// A dispatch of one operation.
    private static func dispatch(
        _ name: String,
        before: Change = { _ in },
        operation: Change? = nil,
        after: Change = { _ in },
        end: Change = { _ in }
    ) -> Irregularity {
        let bytes = RawMessage.coordinator { envelope in
            before(&envelope)
            envelope.message(7) { dispatch in
                dispatch.message(2) { message in
                    if let operation { operation(&message) } else { regular(&message) }
                }
                after(&dispatch)
            }
            end(&envelope)
        }
        return Irregularity(name: name, bytes: bytes, message: .from(coordinator: .resync))
    }

    private static func regular(_ operation: inout RawMessage) {
        start(&operation)
        operation.message(11)
    }

    private static func start(_ operation: inout RawMessage) {
        operation.held()
        operation.integer(2, 1)
        operation.string(4, "n")
        operation.string(5, "q")
    }

    /// An operation with these fields behind the regular ones.
    private static func operation(_ name: String, _ more: @escaping Change) -> Irregularity {
        dispatch(
            name,
            operation: { operation in
                regular(&operation)
                more(&operation)
            }
        )
    }

    /// An event of one attempt.
    private static func event(
        _ name: String,
        header: Change = { $0.integer(1, 1) },
        held: Change = { $0.held() },
        _ what: Change = { $0.message(4) },
        after: Change = { _ in }
    ) -> Irregularity {
        let bytes = RawMessage.worker { envelope in
            envelope.message(9) { batch in
                header(&batch)
                batch.message(3) { event in
                    held(&event)
                    what(&event)
                }
                after(&batch)
            }
        }
        return Irregularity(name: name, bytes: bytes, message: .from(worker: .hello(Samples.hello)))
    }

    private static func result(_ name: String, _ fields: Change) -> Irregularity {
        event(name) { event in event.message(3) { fields(&$0) } }
    }

    private static func worker(_ name: String, _ fields: Change) -> Irregularity {
        let bytes = RawMessage { envelope in
            fields(&envelope)
            envelope.message(9) { batch in
                batch.integer(1, 1)
                batch.message(3) { event in
                    event.held()
                    event.message(4)
                }
            }
        }.bytes
        return Irregularity(name: name, bytes: bytes, message: .from(worker: .hello(Samples.hello)))
    }

    // MARK: - Lists

    private static let envelopes = [
        dispatch("a sequence number twice", before: { $0.integer(5, 2) }),
        dispatch("a signature", end: { $0.message(16) }),
        dispatch("an unknown field", end: { $0.integer(200, 1) }),
        dispatch("a second body", end: { $0.message(14) }),
        dispatch("a second dispatch", end: { $0.message(7) { $0.integer(1, 9) } }),
        dispatch("another version", before: { $0.integer(1, 2) }),
        dispatch("a sender in a group", before: { $0.append([0x33, 0x34]) }),
        dispatch("a long form of a tag", before: { $0.append([0xA8, 0x00, 1]) }),
        worker("no sender") { $0.integer(1, 1) },
        worker("no version") { $0.message(6) { sender in sender.fixed(2, 1) } },
        worker("an incarnation 0") { envelope in
            envelope.integer(1, 1)
            envelope.message(6) { sender in
                sender.string(1, "w")
                sender.integer(3, 1)
            }
        },
    ]

    private static let dispatches = [
        dispatch("an operation without fields", operation: { _ in }),
        dispatch("an unknown field of a dispatch", after: { $0.integer(3, 1) }),
        dispatch("an acknowledgement behind the operations", after: { $0.integer(1, 1) }),
        dispatch("an operation that is a number", after: { $0.integer(2, 1) }),
        dispatch("an operation that is cut off", after: { $0.append([0x12, 9]) }),
        dispatch(
            "an attempt 0",
            operation: { operation in
                operation.message(1) { $0.integer(1, 1) }
                operation.message(11)
            }
        ),
        dispatch("no work", operation: { start(&$0) }),
        dispatch(
            "no name",
            operation: { operation in
                operation.held()
                operation.integer(2, 1)
                operation.string(5, "q")
                operation.message(11)
            }
        ),
        dispatch(
            "a text that is not UTF-8",
            operation: { operation in
                operation.held()
                operation.integer(2, 1)
                operation.data(4, [0xC3, 0x28])
                operation.string(5, "q")
                operation.message(11)
            }
        ),
        dispatch(
            "an ordinal of more than 32 bits",
            operation: { operation in
                operation.held()
                operation.integer(2, 1 << 32 | 1)
                operation.string(4, "n")
                operation.string(5, "q")
                operation.message(11)
            }
        ),
    ]

    private static let operations = [
        operation("an attempt behind the rest") { $0.held() },
        operation("a second work") { $0.integer(12, 1) },
        operation("the same work twice") { $0.message(11) },
        operation("another priority") { $0.zigzag(6, 3) },
        operation("a work of tomorrow") { $0.message(32) },
        operation("a right to run of 0") { $0.integer(16, 0) },
        operation("a flag of eight bytes") { $0.fixed(17, 1) },
        operation("a field twice") { operation in
            operation.integer(17, 1)
            operation.integer(17, 0)
        },
        operation("a resource without a name") { $0.message(24) { $0.integer(2, 1) } },
        operation("resources that are not sorted") { operation in
            for name in ["gpus", "cpus"] {
                operation.message(24) { resource in
                    resource.string(1, name)
                    resource.integer(2, 1)
                }
            }
        },
        operation("an enforced operation without a process") { $0.integer(25, 1) },
        operation("a long trace") { $0.string(28, String(repeating: "t", count: 257)) },
        operation("names without outputs") { $0.data(29, [0, 1, 0x6E]) },
        dispatch(
            "a priority of no queue",
            operation: { operation in
                start(&operation)
                operation.zigzag(6, 3)
                operation.message(11)
            }
        ),
        dispatch(
            "a quality of tomorrow",
            operation: { operation in
                start(&operation)
                operation.integer(9, 5)
                operation.message(11)
            }
        ),
        dispatch(
            "a negative timeout",
            operation: { operation in
                start(&operation)
                operation.integer(8, signed: -1)
                operation.message(11)
            }
        ),
        dispatch(
            "an input that is here and elsewhere",
            operation: { operation in
                start(&operation)
                operation.reference(hasOutput: true)
                operation.message(11)
            }
        ),
        dispatch(
            "an input that is here and dropped",
            operation: { operation in
                start(&operation)
                operation.message(10) { input in
                    input.string(1, "i")
                    input.message(2)
                    input.integer(4, 1)
                }
                operation.message(11)
            }
        ),
        dispatch(
            "a reference to nothing",
            operation: { operation in
                start(&operation)
                operation.reference(byteCount: 0)
                operation.message(11)
            }
        ),
        dispatch(
            "an unknown field of a payload",
            operation: { operation in
                start(&operation)
                operation.message(14) { registered in
                    registered.string(1, "k")
                    registered.message(2) { $0.integer(3, 1) }
                }
            }
        ),
        dispatch(
            "an unknown field of work that has none",
            operation: { operation in
                start(&operation)
                operation.message(11) { $0.integer(1, 1) }
            }
        ),
        dispatch(
            "a process without a program",
            operation: { operation in
                start(&operation)
                operation.message(13)
            }
        ),
    ]

    private static let events = [
        event("no attempt", held: { _ in }),
        event("an attempt twice") { event in
            event.held()
            event.message(4)
        },
        event(
            "an attempt of tomorrow",
            held: { event in
                event.message(1) { held in
                    held.integer(1, 1)
                    held.integer(2, 1)
                    held.integer(5, 1)
                }
            }
        ),
        event("nothing that happened") { _ in },
        event("two things that happened") { event in
            event.integer(2, 1)
            event.message(4)
        },
        event("a start before its clock began") { $0.integer(2, signed: -1) },
        event("an event of tomorrow") { $0.message(8) },
        event("no number", header: { _ in }),
        event("a number without a next one", header: { $0.integer(1, .max) }),
        event(
            "a time before its clock began",
            header: { batch in
                batch.integer(1, 1)
                batch.integer(2, signed: -1)
            }
        ),
        event("a time behind the events", after: { $0.integer(2, 1) }),
    ]

    private static let results = [
        result("no end") { $0.integer(4, 1) },
        result("two ends") { result in
            result.message(1)
            result.message(3)
        },
        result("an end behind the rest") { result in
            result.integer(4, 1)
            result.message(1)
        },
        result("a failure without a reason") { $0.message(2) },
        result("a negative pause") { $0.integer(12, signed: -1) },
        result("a failure that is up to date") { result in
            result.message(2) { $0.integer(3, 1) }
            result.integer(13, 1)
        },
        result("an output twice") { result in
            result.message(1)
            result.message(6) { $0.data(2, [1]) }
            result.message(6) { $0.string(1, "text/plain") }
        },
    ]
}
