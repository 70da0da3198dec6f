import NIOConcurrencyHelpers
import Testing

@testable import OperonRuntime

struct OperationThreadsTests {
    @Test func `jobs that come and go find a thread, however those sleep`() async throws {
        let threads = try OperationThreads(limit: 3)
        defer { threads.stop() }
        let count = NIOLockedValueBox(0)
        var expected = 0
        for round in 0..<2_000 {
            let size = round % 7 + 1
            expected += size
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<size {
                    group.addTask(executorPreference: threads) {
                        count.withLockedValue { $0 += 1 }
                    }
                }
            }
        }
        #expect(count.withLockedValue { $0 } == expected)
    }

    @Test func `a job that hands over is followed by the next one, in more chains than threads`()
        async throws
    {
        let threads = try OperationThreads(limit: 2)
        defer { threads.stop() }
        let latches = (0..<5).map { _ in Latch() }
        for latch in latches { Self.go(on: threads, left: 3_000, latch) }
        for latch in latches { await latch.wait() }
    }

    private static func go(on threads: OperationThreads, left: Int, _ latch: Latch) {
        Task(executorPreference: threads) {
            guard left > 0 else { return latch.open() }
            threads.handOver { go(on: threads, left: left - 1, latch) }
        }
    }

    @Test func `jobs that block leave the others their threads`() async throws {
        let threads = try OperationThreads(limit: 3)
        defer { threads.stop() }
        let gate = ConditionLock(value: false)
        let blocked = (0..<2).map { _ in Latch() }
        for latch in blocked {
            Task(executorPreference: threads) {
                latch.open()
                Self.block(on: gate)
            }
        }
        for latch in blocked { await latch.wait() }
        let last = Latch()
        Self.go(on: threads, left: 1_000, last)
        await last.wait()
        gate.lock()
        gate.unlock(withValue: true)
    }

    private static func block(on gate: ConditionLock<Bool>) {
        gate.lock(whenValue: true)
        gate.unlock(withValue: true)
    }

    @Test func `what is enqueued after the end still runs`() async throws {
        let threads = try OperationThreads(limit: 2)
        await Task(executorPreference: threads) {}.value
        threads.stop()
        for _ in 0..<100 { await Task(executorPreference: threads) {}.value }
    }
}
