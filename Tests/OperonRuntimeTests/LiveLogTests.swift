import OperonCore
import OperonModel
import OperonTestKit
import Testing

@testable import OperonRuntime

/// What attempts in flight have printed, as the coordinator keeps it.
@Suite struct LiveLogTests {
    private static func chunk(
        _ index: UInt32 = 0,
        attempt: UInt64 = 1,
        at position: UInt64?,
        _ bytes: [UInt8]
    ) -> LogChunk {
        let held = HeldAttempt(
            attempt: AttemptID(epoch: Epoch(rawValue: 1), number: attempt),
            operation: OperationID(graph: GraphID(rawValue: 0), index: index)
        )
        return LogChunk(held: held, stream: .output, offset: 0, position: position, bytes: bytes)
    }

    private func read(
        _ logs: LiveLogs,
        _ index: UInt32 = 0,
        attempt: UInt64 = 1,
        from start: UInt64 = 0
    ) -> [UInt64: [UInt8]] {
        let pieces = logs.pieces(
            of: OperationID(graph: GraphID(rawValue: 0), index: index),
            AttemptID(epoch: Epoch(rawValue: 1), number: attempt),
            from: start
        )
        return Dictionary(uniqueKeysWithValues: pieces.map { ($0.offset, Array($0.bytes)) })
    }

    @Test func `what comes twice is kept once, and a gap stays one`() {
        var logs = LiveLogs(logBytes: 1_000, bytesMax: 10_000)
        logs.add(Self.chunk(at: 0, Array(0..<200)))
        logs.add(Self.chunk(at: 150, Array(150..<210)))
        logs.add(Self.chunk(at: 10, [99]))
        #expect(Array(read(logs).sorted { $0.key < $1.key }.flatMap(\.value)) == Array(0..<210))
        logs.add(Self.chunk(at: 300, [1, 2]))
        #expect(read(logs, from: 209) == [209: [209], 300: [1, 2]])
        #expect(read(logs, from: 301) == [301: [2]])
        #expect(read(logs, from: 302) == [:])
        // An old worker does not say the position: the bytes follow what came before.
        logs.add(Self.chunk(at: nil, [3]))
        #expect(read(logs, from: 301) == [301: [2, 3]])
        // No sum of these is a number.
        logs.add(Self.chunk(at: .max, [4]))
        #expect(read(logs, from: 303) == [:])
    }

    @Test func `a later attempt replaces an earlier one, which says nothing more`() {
        var logs = LiveLogs(logBytes: 1_000, bytesMax: 10_000)
        logs.add(Self.chunk(attempt: 1, at: 0, [1]))
        logs.add(Self.chunk(attempt: 2, at: 0, [2]))
        logs.add(Self.chunk(attempt: 1, at: 1, [1]))
        #expect(read(logs, attempt: 1) == [:])
        #expect(read(logs, attempt: 2) == [0: [2]])
        let operation = OperationID(graph: GraphID(rawValue: 0), index: 0)
        let attempts = (1...2).map { AttemptID(epoch: Epoch(rawValue: 1), number: $0) }
        #expect(logs.end(attempts[0], of: operation) == 0)
        #expect(logs.end(attempts[1], of: operation) == 1)
        #expect(logs.approximateBytes == 0)
        #expect(logs.operations.isEmpty)
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `memory is bounded, and what is kept is what was printed`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let (logBytes, bytesMax) = (40_000, 200_000)
        var logs = LiveLogs(logBytes: logBytes, bytesMax: bytesMax)
        var ends: [UInt32: UInt64] = [:]
        /// The byte at a position of a log.
        func byte(_ index: UInt32, _ position: UInt64) -> UInt8 {
            UInt8(truncatingIfNeeded: position &* 31 &+ position >> 8 &+ UInt64(index))
        }
        for step in 0..<3_000 {
            let index = UInt32.random(in: 0..<30, using: &generator)
            var start = ends[index] ?? 0
            if Int.random(in: 0..<50, using: &generator) == 0 { start += 1_000 }
            let largest = step % 100 == 0 ? 30_000 : 500
            let count = UInt64.random(in: 1...UInt64(largest), using: &generator)
            logs.add(Self.chunk(index, at: start, (start..<start + count).map { byte(index, $0) }))
            ends[index] = start + count
            // A single piece may be larger than what is kept of an attempt.
            #expect(logs.approximateBytes <= bytesMax)
            if Int.random(in: 0..<200, using: &generator) == 0 {
                let operation = OperationID(graph: GraphID(rawValue: 0), index: index)
                let attempt = AttemptID(epoch: Epoch(rawValue: 1), number: 1)
                #expect(logs.end(attempt, of: operation) == start + count)
                ends[index] = nil
            }
        }
        for (index, end) in ends {
            var next: UInt64 = 0
            let pieces = read(logs, index).sorted { $0.key < $1.key }
            for (offset, bytes) in pieces {
                #expect(offset >= next)
                next = offset + UInt64(bytes.count)
                #expect(bytes == (offset..<next).map { byte(index, $0) })
            }
            #expect(pieces.isEmpty || next <= end)
        }
    }

    @Test func `a character is not cut`() {
        for (text, begun) in [("aé", 0), ("a€", 0), ("a😀", 0)] {
            let bytes = Array(text.utf8)
            #expect(UTF8Boundary.begun(in: bytes[...]) == begun)
            for cut in 1..<bytes.count - 1 {
                #expect(UTF8Boundary.begun(in: bytes.dropLast(cut)) == bytes.count - 1 - cut)
            }
        }
        #expect(UTF8Boundary.begun(in: [0x80, 0x80, 0x80, 0x80]) == 0)
        #expect(UTF8Boundary.begun(in: [0xFF]) == 0)
        #expect(UTF8Boundary.begun(in: []) == 0)
    }
}
