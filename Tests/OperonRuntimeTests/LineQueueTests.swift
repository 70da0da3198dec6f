import NIOConcurrencyHelpers
import Testing

@testable import OperonRuntime

@Suite(.timeLimit(.minutes(1))) struct LineQueueTests {
    @Test func `whoever logs does not wait for a reader that stands still`() {
        let reads = ConditionLock(value: false)
        let lines = NIOLockedValueBox<[String]>([])
        let queue = LineQueue(
            write: { line in
                reads.lock(whenValue: true)
                reads.unlock()
                lines.withLockedValue { $0.append(String(decoding: line, as: UTF8.self)) }
            },
            leftOut: { Array("\($0) left out".utf8) }
        )
        let kilobyte = [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 10)
        for _ in 0..<2_000 { queue.add(kilobyte) }
        // Nobody reads: this is given up.
        queue.flush(within: 0)

        reads.lock()
        reads.unlock(withValue: true)
        queue.flush(within: 60)
        // Told of at once: nothing more may come for hours.
        let room = 1 << 10
        #expect(lines.withLockedValue { $0.count } == room + 1)
        #expect(lines.withLockedValue { $0.last } == "\(2_000 - room) left out")
        queue.add(Array("more".utf8))
        queue.flush(within: 60)
        #expect(lines.withLockedValue { $0.suffix(1) } == ["more"])
        #expect(queue.isEmpty)
    }
}
