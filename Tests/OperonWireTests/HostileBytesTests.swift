import OperonFaultKit
import OperonModel
import OperonWire
import Testing

/// Whatever the bytes are, decoding ends with a message or a `WireError`. These tests end the test
/// process where that is not so.
@Suite struct HostileBytesTests {
    @Test(arguments: Corpus.cases)
    func `every message cut off anywhere gives a message or an error`(_ kept: CorpusCase) throws {
        let bytes = try kept.message.encoded()

        for length in bytes.indices {
            try expectSense(Array(bytes[..<length]), like: kept.message)
        }
        #expect(decodingError([], like: kept.message) == .malformed)
    }

    @Test func `a sealed message that is read without keys is called one`() {
        let sealed: [UInt8] = [0, 1, 4] + Array(repeating: 7, count: 90)
        let errors = [
            #expect(throws: WireError.self) { _ = try Wire.decodeWorker(sealed, limits: Limits()) },
            #expect(throws: WireError.self) {
                _ = try Wire.decodeCoordinator(sealed, limits: Limits())
            },
        ]
        for error in errors {
            #expect(error?.code == .malformed)
            #expect(error?.message.contains("93 bytes are sealed") == true, "\(error as Any)")
        }
    }

    @Test(arguments: 0..<10)
    func `ten thousand damaged messages of a seed give a message or an error`(
        seed: UInt64
    ) throws {
        let originals = try Corpus.cases.map { ($0.message, try $0.message.encoded()) }
        var randomness = SeededGenerator(seed: seed)
        var refused = 0

        for _ in 0..<10_000 {
            let (message, original) = originals.randomElement(using: &randomness)!
            var bytes = original
            for _ in 0...Int.random(in: 0..<4, using: &randomness) { damage(&bytes, &randomness) }
            if try !expectSense(bytes, like: message) { refused += 1 }
        }

        // Damage that is never noticed would mean that nothing was damaged, or nothing checked.
        #expect(refused > 3_000)
        #expect(refused < 10_000)
    }

    @Test(arguments: 0..<10)
    func `a thousand strings of random bytes of a seed are no messages`(seed: UInt64) {
        var randomness = SeededGenerator(seed: seed)
        for _ in 0..<1_000 {
            let count = Int.random(in: 0..<64, using: &randomness)
            let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &randomness) }
            #expect(decodingError(bytes, like: Corpus.cases[0].message) != nil)
        }
    }

    @Test func `unknown fields that nest deeply are refused and use no deep stack`() {
        let groups = 100_000
        let bytes = RawMessage.coordinator { envelope in
            envelope.message(14)
        }
        // Field 100 as a group that begins and never ends.
        let nested = bytes + Array(repeating: [0xA3, 0x06], count: groups).joined()

        #expect(decodingError(nested, like: .from(coordinator: .resync)) == .malformed)
    }

    @Test func `a length beyond the end is refused before anything is allocated for it`() {
        let bytes = RawMessage.coordinator { _ in }
        let cut = bytes + [0x3A, 0xFF, 0xFF, 0xFF, 0xFF, 0x07]

        #expect(decodingError(cut, like: .from(coordinator: .resync)) == .malformed)
    }

    @Test func `text that is not UTF-8 is refused`() {
        let bytes = RawMessage.worker { envelope in
            envelope.message(13) { hello in hello.data(1, [0xFF, 0xFE]) }
        }

        #expect(decodingError(bytes, like: .from(worker: .hello(Samples.hello))) == .malformed)
    }

    // MARK: -

    /// Whether it gave a message; that one can then be encoded and read again.
    @discardableResult
    private func expectSense(_ bytes: [UInt8], like message: Message) throws -> Bool {
        let decoded: Message
        do throws(WireError) {
            decoded = try message.decodingSameSide(bytes)
        } catch {
            #expect(!error.message.isEmpty)
            return false
        }
        guard !decoded.isPartlyUnreadable else { return false }
        let again = try decoded.decodingSameSide(try decoded.encoded())
        #expect(again == decoded)
        return true
    }

    private func damage(_ bytes: inout [UInt8], _ randomness: inout SeededGenerator) {
        guard !bytes.isEmpty else { return }
        let place = Int.random(in: bytes.indices, using: &randomness)
        switch Int.random(in: 0..<6, using: &randomness) {
        case 0, 1: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &randomness)
        case 2: bytes[place] = UInt8.random(in: 0...255, using: &randomness)
        case 3: bytes.remove(at: place)
        case 4: bytes.insert(UInt8.random(in: 0...255, using: &randomness), at: place)
        default:
            let end = min(bytes.count, place + Int.random(in: 1...16, using: &randomness))
            bytes.insert(contentsOf: bytes[place..<end], at: place)
        }
    }
}
