import OperonFaultKit
import OperonModel
import Testing

@testable import OperonWire

/// Dispatches and event batches are written and read without generated types. Both ways give the
/// same bytes, and the same value or error.
@Suite struct DirectFormTests {
    private let limits = Limits()

    @Test(arguments: 0..<10)
    func `both encoders write the same bytes for three hundred messages of a seed`(
        seed: UInt64
    ) throws {
        var generator = MessageGenerator(seed: seed)
        for index in 0..<300 {
            let message = generator.frequent()

            let bytes = try message.encoded()

            try #require(try message.encodedGenerated() == bytes, "seed \(seed), message \(index)")
            try #require(message.decodingDirectly(bytes) == message, "message \(index)")
        }
    }

    @Test(arguments: Corpus.cases)
    func `both encoders write the same bytes for a kept message`(_ kept: CorpusCase) throws {
        #expect(try kept.message.encodedGenerated() == kept.message.encoded())
    }

    /// The lengths of messages around these take one byte more.
    @Test(arguments: [126, 127, 128, 129, 16_382, 16_383, 16_384, 2_097_151, 2_097_152])
    func `both encoders write the same bytes around the sizes of lengths`(_ count: Int) throws {
        for size in max(0, count - 40)...count + 2 {
            let payload = Payload(bytes: [UInt8](repeating: 7, count: size))
            var result = Samples.result(.succeeded)
            result.output = payload
            let events = Message.from(worker: Samples.events(.finished(Samples.held, result)))
            let dispatch = Message.from(
                coordinator: Samples.dispatch(.registered(kind: "k", input: payload))
            )
            for message in [events, dispatch] {
                let bytes = try message.encoded()
                try #require(try message.encodedGenerated() == bytes, "\(size) bytes")
                try #require(message.decodingDirectly(bytes) == message, "\(size) bytes")
            }
            // Larger ones only once: all sizes of such lengths would take long.
            if count > 20_000 { break }
        }
    }

    @Test func `an operation with very many inputs is written as by the generated types`() throws {
        let message = Message.from(
            coordinator: Samples.dispatch(.nothing) { operation in
                operation.inputs = (0..<1_025).map { NamedInput(name: "i\($0)", output: nil) }
                operation.inputs[7].output = Payload(bytes: [1])
                operation.inputs[900].reference = Samples.reference
            }
        )

        let bytes = try message.encoded()

        #expect(try message.encodedGenerated() == bytes)
        #expect(try message.decodingSameSide(bytes) == message)
        #expect(message.decodingDirectly(bytes) == nil)
    }

    @Test(arguments: 0..<10)
    func `both decoders agree on two thousand damaged messages of a seed`(seed: UInt64) throws {
        var generator = MessageGenerator(seed: 1_000 + seed)
        var randomness = SeededGenerator(seed: seed)
        var counts = Counts()
        for index in 0..<2_000 {
            let message = generator.frequent()
            var bytes = try message.encoded()
            for _ in 0...Int.random(in: 0..<3, using: &randomness) { damage(&bytes, &randomness) }
            try compare(bytes, like: message, "seed \(seed), message \(index)", &counts)
        }

        // Otherwise a decoder would decide all of them, and this would compare little.
        #expect(counts.direct > 20)
        #expect(counts.fallback > 0)
        #expect(counts.refused > 100)
    }

    @Test(arguments: 0..<10)
    func `both decoders agree on five hundred messages of a seed with rearranged fields`(
        seed: UInt64
    ) throws {
        var generator = MessageGenerator(seed: 2_000 + seed)
        var randomness = SeededGenerator(seed: seed)
        var counts = Counts()
        for index in 0..<500 {
            let message = generator.frequent()
            let bytes = rearranged(try message.encoded(), &randomness, depth: 0)
            try compare(bytes, like: message, "seed \(seed), message \(index)", &counts)
        }

        #expect(counts.direct > 20)
        #expect(counts.fallback > 20)
        #expect(counts.refused > 20)
    }

    /// What is not regular, one thing at a time, so that each of them is tried.
    @Test(arguments: Irregularity.all)
    func `a message in an irregular form is left to the generated types`(
        _ one: Irregularity
    ) throws {
        var counts = Counts()
        try compare(one.bytes, like: one.message, one.name, &counts)

        #expect(counts.direct == 0)
        #expect(counts.fallback + counts.refused == 1)
    }

    /// The generated types read these parts, and count the messages around them.
    @Test(arguments: 1...20)
    func `both decoders agree on how deeply groups nest in a part`(groups: Int) throws {
        let begin = Array(repeating: [0xA3, 0x06] as [UInt8], count: groups).joined()
        let end = Array(repeating: [0xA4, 0x06] as [UInt8], count: groups).joined()
        let nested = Array(begin) + Array(end)
        let command = RawMessage.coordinator { envelope in
            envelope.message(7) { dispatch in
                dispatch.message(2) { operation in
                    operation.held()
                    operation.integer(2, 1)
                    operation.string(4, "n")
                    operation.string(5, "q")
                    operation.message(13) { command in
                        command.string(1, "true")
                        command.append(nested)
                    }
                }
            }
        }
        let reference = RawMessage.coordinator { envelope in
            envelope.message(7) { dispatch in
                dispatch.message(2) { operation in
                    operation.held()
                    operation.integer(2, 1)
                    operation.string(4, "n")
                    operation.string(5, "q")
                    operation.reference(behind: nested)
                    operation.message(11)
                }
            }
        }
        let events = [2, 5, 6, 7].map { (field: UInt64) in
            RawMessage.worker { envelope in
                envelope.message(9) { batch in
                    batch.integer(1, 1)
                    batch.message(3) { event in
                        event.held()
                        if field == 2 {
                            event.message(3) { $0.message(2) { $0.append([0x18, 3] + nested) } }
                        } else {
                            event.message(field) { request in
                                request.integer(1, 1)
                                request.string(2, "a")
                                request.append(nested)
                            }
                        }
                    }
                }
            }
        }

        var counts = Counts()
        for bytes in [command, reference] {
            try compare(bytes, like: .from(coordinator: .resync), "\(groups) groups", &counts)
        }
        let hello = Message.from(worker: .hello(Samples.hello))
        for bytes in events { try compare(bytes, like: hello, "\(groups) groups", &counts) }

        #expect(counts.fallback == 0)
        #expect(counts.direct + counts.refused == 6)
        #expect((counts.direct == 6) == (groups <= 11))
    }

    // MARK: - Comparing

    private struct Counts {
        var direct = 0
        var fallback = 0
        var refused = 0
    }

    private func compare(
        _ bytes: [UInt8],
        like message: Message,
        _ name: String,
        _ counts: inout Counts
    ) throws {
        let general = Result { () throws(WireError) in try message.decodingGenerated(bytes) }
        let combined = Result { () throws(WireError) in try message.decodingSameSide(bytes) }
        try #require(combined == general, "\(name): \(bytes)")
        let direct = message.decodingDirectly(bytes)
        switch general {
        case .success where direct == nil: counts.fallback += 1
        case .success(let expected):
            counts.direct += 1
            try #require(direct == expected, "\(name): \(bytes)")
        case .failure:
            counts.refused += 1
            try #require(direct == nil, "\(name): \(bytes)")
        }
    }

    private func damage(_ bytes: inout [UInt8], _ randomness: inout SeededGenerator) {
        guard !bytes.isEmpty else { return }
        let place = Int.random(in: bytes.indices, using: &randomness)
        switch Int.random(in: 0..<7, using: &randomness) {
        case 0, 1: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &randomness)
        case 2: bytes[place] = UInt8.random(in: 0...255, using: &randomness)
        case 3: bytes.remove(at: place)
        case 4: bytes.insert(UInt8.random(in: 0...255, using: &randomness), at: place)
        case 5: bytes.removeLast(bytes.count - place)
        default:
            let end = min(bytes.count, place + Int.random(in: 1...16, using: &randomness))
            bytes.insert(contentsOf: bytes[place..<end], at: place)
        }
    }

    /// The fields of a message with, here and there, one more, one less, two exchanged, or another
    /// form of the value. Lengths stay right, so that what is inside is reached.
    private func rearranged(
        _ bytes: [UInt8],
        _ randomness: inout SeededGenerator,
        depth: Int
    ) -> [UInt8] {
        guard depth < 6, var fields = RawField.all(of: bytes), !fields.isEmpty else { return bytes }
        let place = Int.random(in: fields.indices, using: &randomness)
        switch Int.random(in: 0..<16, using: &randomness) {
        case 0: fields.append(fields[place])
        case 1: fields.insert(fields[place], at: place)
        case 2 where fields.count > 1: fields.remove(at: place)
        case 3: fields.swapAt(place, Int.random(in: fields.indices, using: &randomness))
        case 4: fields[place].number = .random(in: 0..<40, using: &randomness)
        case 5: fields[place].form = .random(in: 0..<8, using: &randomness)
        case 6: fields[place].value = .random(in: 0 ... .max, using: &randomness)
        case 7: fields[place].value = .random(in: 0..<32, using: &randomness)
        case 8: fields.insert(RawField(number: 40, form: 2, content: [1, 2]), at: place)
        case _: break
        }
        // Most fields are inside others.
        let inner = Int.random(in: fields.indices, using: &randomness)
        for index in [inner, fields.count - 1] where fields[index].form == 2 {
            fields[index].content = rearranged(
                fields[index].content,
                &randomness,
                depth: depth + 1
            )
        }
        return fields.flatMap(\.bytes)
    }
}

extension Message {
    func encodedGenerated() throws(WireError) -> [UInt8] {
        switch self {
        case .coordinator(let envelope): try Wire.encodeGenerated(envelope, limits: Limits())
        case .worker(let envelope): try Wire.encodeGenerated(envelope, limits: Limits())
        }
    }

    func decodingGenerated(_ bytes: [UInt8]) throws(WireError) -> Message {
        switch self {
        case .coordinator:
            .coordinator(try Wire.decodeGeneratedCoordinator(bytes, limits: Limits()))
        case .worker: .worker(try Wire.decodeGeneratedWorker(bytes, limits: Limits()))
        }
    }

    /// `nil`: not in its regular form.
    func decodingDirectly(_ bytes: [UInt8]) -> Message? {
        switch self {
        case .coordinator: Wire.decodeDispatchDirectly(bytes, Limits()).map { .coordinator($0) }
        case .worker: Wire.decodeEventsDirectly(bytes, Limits()).map { .worker($0) }
        }
    }
}
