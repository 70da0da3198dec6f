import OperonFaultKit
import OperonModel
import OperonWire
import Testing

/// Each limit at n and at n + 1.
@Suite struct LimitTests {
    private let limit = Limits().messageBytes

    /// A message of exactly this many bytes.
    private func message(ofBytes count: Int) throws -> Message {
        func chunk(_ bytes: Int) -> Message {
            .from(
                worker: .log(
                    LogChunk(
                        held: Samples.held,
                        stream: .output,
                        offset: 0,
                        bytes: Array(repeating: 7, count: bytes)
                    )
                )
            )
        }
        var unlimited = Limits()
        unlimited.messageBytes = .max
        let overhead = try chunk(count).encoded(limits: unlimited).count - count
        return chunk(count - overhead)
    }

    @Test func `a message of eight mebibytes is sent and read`() throws {
        let message = try message(ofBytes: limit)

        let bytes = try message.encoded()

        #expect(limit == 8 * 1_024 * 1_024)
        #expect(bytes.count == limit)
        #expect(try message.decodingSameSide(bytes) == message)
    }

    @Test func `a message of one byte more is not sent`() throws {
        let message = try message(ofBytes: limit + 1)

        let error = #expect(throws: WireError.self) { try message.encoded() }

        #expect(error?.code == .tooLarge)
        #expect(
            error?.message
                == "a message of 8388609 bytes is over the limit of 8388608 (messageBytes)"
        )
    }

    @Test func `a message of one byte more is not read`() throws {
        let message = try message(ofBytes: limit + 1)
        var unlimited = Limits()
        unlimited.messageBytes = .max

        let bytes = try message.encoded(limits: unlimited)

        #expect(bytes.count == limit + 1)
        #expect(decodingError(bytes, like: message) == .tooLarge)
    }

    @Test func `the limit of the configuration is the one that counts`() throws {
        let message = Message.from(worker: .hello(Samples.hello))
        let bytes = try message.encoded()
        var exact = Limits()
        exact.messageBytes = bytes.count
        var less = exact
        less.messageBytes -= 1

        #expect(try message.encoded(limits: exact) == bytes)
        #expect(try message.decodingSameSide(bytes, limits: exact) == message)
        #expect(throws: WireError.self) { try message.encoded(limits: less) }
        #expect(decodingError(bytes, like: message, limits: less) == .tooLarge)
    }

    /// A dispatch with this many operations of two bytes each, or with as many of the parts that
    /// `nested` adds to its one operation.
    private func dispatch(elements: Int, nested: UInt64? = nil) -> [UInt8] {
        // What else is counted: the body, the operation and its command.
        let parts = Array(repeating: [0x12, 0x00] as [UInt8], count: elements).joined()
        return RawMessage.coordinator { envelope in
            envelope.message(7) { dispatch in
                guard let nested else {
                    dispatch.append(Array(parts))
                    return
                }
                dispatch.message(2) { operation in
                    operation.message(nested) { $0.append(Array(parts)) }
                }
            }
        }
    }

    @Test func `a message of 262,144 elements is parsed`() {
        let resync = Message.from(coordinator: .resync)
        let most = 262_144

        let inBody = decodingError(dispatch(elements: most - 1), like: resync)
        let inCommand = decodingError(dispatch(elements: most - 3, nested: 13), like: resync)

        // Parsed, and then found wrong.
        #expect(inBody == .invalidField("operation.held"))
        #expect(inCommand == .invalidField("operation.held"))
    }

    @Test func `a message of one element more is refused before anything is built`() {
        let resync = Message.from(coordinator: .resync)
        let most = 262_144

        let inBody = decodingError(dispatch(elements: most), like: resync)
        let inCommand = decodingError(dispatch(elements: most - 2, nested: 13), like: resync)

        #expect(inBody == .tooLarge)
        #expect(inCommand == .tooLarge)
    }

    @Test func `an unknown group before the elements does not hide them`() {
        let parts = Array(repeating: [0x12, 0x00] as [UInt8], count: 262_145).joined()
        let bytes = RawMessage.coordinator { envelope in
            envelope.message(7) { dispatch in
                // Field 100 as an empty group.
                dispatch.append([0xA3, 0x06, 0xA4, 0x06])
                dispatch.append(Array(parts))
            }
        }

        #expect(decodingError(bytes, like: .from(coordinator: .resync)) == .tooLarge)
    }

    @Test(arguments: [(0, false), (1, true), (4_096, true), (4_097, false)] as [(UInt32, Bool)])
    func `a worker has one to 4,096 slots`(slots: UInt32, isRead: Bool) throws {
        var hello = Samples.hello
        hello.slots = slots
        let message = Message.from(worker: .hello(hello))

        let error = try decodingError(message.encoded(), like: message)

        #expect(error == (isRead ? nil : .invalidField("hello.slots")))
    }

    @Test(arguments: [(0, false), (1, true), (256, true), (257, false)])
    func `a name has one to 256 bytes`(count: Int, isRead: Bool) throws {
        let name = String(repeating: "n", count: count)
        var hello = Samples.hello
        hello.queues = [name]
        let inHello = Message.from(worker: .hello(hello))
        var operation = Samples.operation
        operation.name = name
        let dispatch = Message.from(
            coordinator: .dispatch(Dispatch(acknowledged: 0, operations: [operation]))
        )

        let error = try decodingError(inHello.encoded(), like: inHello)
        let decoded = try dispatch.decodingSameSide(dispatch.encoded())

        #expect(error == (isRead ? nil : .invalidField("hello.queues")))
        #expect(decoded.isPartlyUnreadable == !isRead)
    }

    @Test(arguments: [(0, true), (256, true), (257, false)])
    func `what only people read has at most 256 bytes`(count: Int, isRead: Bool) throws {
        let text = String(repeating: "h", count: count)
        var hello = Samples.hello
        hello.host = text
        let inHello = Message.from(worker: .hello(hello))
        var operation = Samples.operation
        operation.graphName = text
        let dispatch = Message.from(
            coordinator: .dispatch(Dispatch(acknowledged: 0, operations: [operation]))
        )

        let error = try decodingError(inHello.encoded(), like: inHello)
        let decoded = try dispatch.decodingSameSide(dispatch.encoded())

        #expect(error == (isRead ? nil : .invalidField("hello.host")))
        #expect(decoded.isPartlyUnreadable == !isRead)
    }

    /// The sentence becomes the error of the attempt: kept, stored and shown.
    @Test func `the reason why an operation is unreadable quotes little of what it names`() throws {
        // One character to people, a million bytes to a machine.
        let name = "e" + String(repeating: "\u{301}", count: 500_000)
        let bytes = RawMessage.coordinator { envelope in
            envelope.message(7) { dispatch in
                dispatch.message(2) { operation in
                    operation.held()
                    operation.integer(2, 1)
                    operation.string(4, "n")
                    operation.string(5, "q")
                    operation.message(13) { command in
                        command.string(1, "true")
                        command.message(2) { $0.string(1, name) }
                        command.message(2) { $0.string(1, name) }
                    }
                }
            }
        }

        let body = try Wire.decodeCoordinator(bytes).body

        guard case .dispatch(let dispatch) = body, let why = dispatch.unreadable.first?.why else {
            Issue.record("nothing is unreadable: \(body)")
            return
        }
        #expect(why.contains("command.environment"))
        #expect(why.utf8.count < 400)
    }
}
