import Glibc
import OperonCore
import OperonModel
import Synchronization
import Testing

@testable import OperonRuntime

/// What processes print.
@Suite(.timeLimit(.minutes(5)))
struct ProcessLogTests {
    private struct Chunk: Hashable {
        var stream: LogStream
        var offset: UInt64
        var bytes: [UInt8]
    }

    @Test func `output and error arrive on their streams with their offsets`() async throws {
        let (chunks, continuation) = AsyncStream.makeStream(of: Chunk.self)
        // The third comes when the first two have been read, on whichever of the streams first.
        let folder = ProcessSupport.temporaryFolder()
        let heard = Atomic(0)
        let line =
            "printf one; printf two >&2; until [ -e \(folder)/go ]; do sleep 0.01; done; "
            + "printf three; rm -r \(folder)"

        let result = try await ProcessSupport.withRunner { runner in
            await runner.run(
                ProcessSupport.shell(line),
                attempt: ProcessSupport.context(),
                onLog: { stream, offset, bytes in
                    continuation.yield(Chunk(stream: stream, offset: offset, bytes: bytes))
                    let count = heard.add(bytes.count, ordering: .relaxed).newValue
                    if count == 6 { close(open("\(folder)/go", O_CREAT | O_WRONLY, 0o600)) }
                }
            )
        }
        continuation.finish()
        let received = await chunks.reduce(into: []) { $0.append($1) }

        for (stream, expected) in [(LogStream.output, "onethree"), (.error, "two")] {
            var text: [UInt8] = []
            for chunk in received where chunk.stream == stream {
                #expect(chunk.offset == UInt64(text.count))
                text += chunk.bytes
            }
            #expect(String(decoding: text, as: UTF8.self) == expected)
        }
        #expect(result.text == "onetwothree" || result.text == "twoonethree")
        #expect(result.attempt.logBytesDropped == 0)
    }

    @Test func `of 100 MB the tail is kept exactly, and nothing larger than a chunk besides`()
        async throws
    {
        let total = 100 << 20
        let largestChunk = Atomic(0)
        let received = Atomic(0)
        // Numbered lines, so that every byte of the tail is known.
        let line = "seq -f %015.0f 1 \(total / 16)"
        let result = try await ProcessSupport.withRunner { runner in
            await runner.run(
                ProcessSupport.shell(line),
                attempt: ProcessSupport.context(),
                onLog: { _, _, bytes in
                    largestChunk.max(bytes.count, ordering: .relaxed)
                    received.add(bytes.count, ordering: .relaxed)
                }
            )
        }

        let limit = Limits().logBytes
        let lines = (total - limit) / 16 + 1...total / 16
        let expected = lines.map { number in
            let digits = String(number)
            return String(repeating: "0", count: 15 - digits.count) + digits + "\n"
        }
        #expect(result.attempt.end == .succeeded)
        #expect(result.attempt.logTail.count == limit)
        #expect(result.text == expected.joined())
        #expect(result.attempt.logBytesDropped == UInt64(total - limit))
        #expect(received.load(ordering: .relaxed) == total)
        #expect(largestChunk.load(ordering: .relaxed) <= 65_536)
    }

    @Test(arguments: [(1, 0), (8, 0), (9, 1), (1_000, 992)])
    func `at the limit nothing is dropped, beyond it exactly the rest`(
        bytes: Int,
        dropped: UInt64
    ) async throws {
        var limits = Limits()
        limits.logBytes = 8

        let result = try await ProcessSupport.withRunner { runner in
            await runner.run(
                ProcessSupport.shell("head -c \(bytes) /dev/zero"),
                attempt: ProcessSupport.context(limits: limits)
            )
        }

        #expect(result.attempt.logTail.count == min(8, bytes))
        #expect(result.attempt.logBytesDropped == dropped)
    }

    @Test(arguments: [0, 1, 2, 3, 5, 7, 16])
    func `a tail is the end of everything, however it arrives`(limit: Int) {
        var generator = SeededGenerator(seed: UInt64(limit))
        for _ in 0..<200 {
            var tail = LogTail(limit: limit)
            var everything: [UInt8] = []
            for _ in 0..<Int.random(in: 0...12, using: &generator) {
                let chunk = (0..<Int.random(in: 0...9, using: &generator)).map { _ in
                    UInt8.random(in: 0...255, using: &generator)
                }
                tail.append(chunk[...])
                everything += chunk

                #expect(tail.bytes == Array(everything.suffix(limit)))
                #expect(Int(tail.dropped) == everything.count - tail.bytes.count)
            }
        }
    }
}
