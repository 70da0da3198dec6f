import Glibc
import OperonCore
import OperonModel
import Synchronization
import Testing

@testable import OperonRuntime

/// What processes print.
@Suite(.timeLimit(.minutes(5)))
struct ProcessLogTests {
    @Test func `output and error arrive on their streams with their offsets`() async throws {
        let (chunks, continuation) = AsyncStream.makeStream(of: PrintedPiece.self)
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
                onLog: { piece in
                    continuation.yield(piece)
                    let count = heard.add(piece.bytes.count, ordering: .relaxed).newValue
                    if count == 6 { close(open("\(folder)/go", O_CREAT | O_WRONLY, 0o600)) }
                }
            )
        }
        continuation.finish()
        let received = await chunks.reduce(into: []) { $0.append($1) }
        var printed = 0
        for piece in received {
            #expect(piece.position == UInt64(printed))
            printed += piece.bytes.count
        }

        for (stream, expected) in [(LogStream.output, "onethree"), (.error, "two")] {
            var text: [UInt8] = []
            for chunk in received where chunk.stream == stream {
                #expect(chunk.offset == UInt64(text.count))
                text += chunk.bytes
            }
            #expect(String(decoding: text, as: UTF8.self) == expected)
        }
        #expect(result.text == "onetwothree" || result.text == "twoonethree")
        #expect(result.attempt.log.missing == 0)
    }

    @Test func `of 100 MB both ends are kept exactly, and nothing larger than a chunk besides`()
        async throws
    {
        let total = 100 << 20
        let largestChunk = Atomic(0)
        let received = Atomic(0)
        // Numbered lines, so that every byte is known.
        let line = "seq -f %015.0f 1 \(total / 16)"
        let result = try await ProcessSupport.withRunner { runner in
            await runner.run(
                ProcessSupport.shell(line),
                attempt: ProcessSupport.context(),
                onLog: { piece in
                    largestChunk.max(piece.bytes.count, ordering: .relaxed)
                    received.add(piece.bytes.count, ordering: .relaxed)
                }
            )
        }

        let limit = Limits().logBytes
        let head = KeptLog.headBytes(of: limit)
        func text(_ lines: ClosedRange<Int>) -> String {
            lines.map { number in
                let digits = String(number)
                return String(repeating: "0", count: 15 - digits.count) + digits + "\n"
            }.joined()
        }
        let log = result.attempt.log
        #expect(result.attempt.end == .succeeded)
        #expect(log.count == limit)
        #expect(String(decoding: log.head, as: UTF8.self) == text(1...head / 16))
        let tail = (total - limit + head) / 16 + 1...total / 16
        #expect(String(decoding: log.tail, as: UTF8.self) == text(tail))
        #expect(log.missing == UInt64(total - limit))
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

        #expect(result.attempt.log.count == min(8, bytes))
        #expect(result.attempt.log.missing == dropped)
    }

    @Test(arguments: [0, 1, 2, 3, 5, 7, 8, 16, 24])
    func `of everything both ends are kept, however it arrives`(limit: Int) {
        var generator = SeededGenerator(seed: UInt64(limit))
        let first = KeptLog.headBytes(of: limit)
        for _ in 0..<200 {
            var log = LogBuffer(limit: limit)
            var everything: [UInt8] = []
            for _ in 0..<Int.random(in: 0...12, using: &generator) {
                let chunk = (0..<Int.random(in: 0...9, using: &generator)).map { _ in
                    UInt8.random(in: 0...255, using: &generator)
                }
                #expect(log.end == UInt64(everything.count))
                log.append(chunk[...])
                everything += chunk

                let kept = log.kept
                #expect(kept == KeptLog(tail: everything).bounded(to: limit))
                guard everything.count > limit else {
                    #expect(kept == KeptLog(tail: everything))
                    continue
                }
                #expect(kept.head == Array(everything.prefix(first)))
                #expect(kept.tail == Array(everything.suffix(limit - first)))
                #expect(kept.missing == UInt64(everything.count - limit))
            }
        }
    }
}
