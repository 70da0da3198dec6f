import Operon
import OperonTesting
import Testing

/// Programs' tests by a clock of their own.
@Suite(.timeLimit(.minutes(10))) struct ManualClockTests {
    @Test func aDelayPassesWhenTheClockMoves() async throws {
        let clock = ManualClock()
        let cluster = Cluster.testing(clock: clock)
        let queue = OperationQueue(cluster: cluster)
        let late = try await queue.addOperation(
            Doubled(number: 1),
            options: OperationOptions(delay: .seconds(86_400))
        )
        // Something else runs to its end meanwhile.
        #expect(try await queue.addOperation(Doubled(number: 2)).value == 4)
        #expect(try await !late.isFinished)
        clock.advance(by: .seconds(86_399))
        #expect(try await queue.addOperation(Doubled(number: 3)).value == 6)
        #expect(try await !late.isFinished)
        clock.advance(by: .seconds(1))
        #expect(try await late.value == 2)
        await cluster.close()
    }

    @Test func aTimeoutPassesWhenTheClockMoves() async throws {
        let clock = ManualClock()
        let cluster = Cluster.testing(clock: clock)
        let queue = OperationQueue(cluster: cluster)
        let (started, starts) = AsyncStream.makeStream(of: Void.self)
        try await cluster.register(
            .block("endless", of: Int.self) { _, _ in
                starts.yield()
                for await _ in AsyncStream<Void>.makeStream().stream {}
                throw CancellationError()
            }
        )
        let endless = try await queue.addOperation(
            "endless",
            1,
            options: OperationOptions(timeout: .seconds(3_600))
        )
        for await _ in started { break }
        // Its time began a moment before it did.
        clock.advance(by: .seconds(3_601))
        #expect(try await endless.finalOutcome() == .failed(.timeout))
        await cluster.close()
    }

    @Test func aDeadlineIsADateOfThisClock() async throws {
        let clock = ManualClock()
        let cluster = Cluster.testing(clock: clock)
        let queue = OperationQueue(cluster: cluster, isSuspended: true)
        let handle = OperationHandle(Doubled(number: 1))
        handle.options.deadline = clock.now + .seconds(10)
        try await queue.addOperation(handle)
        clock.advance(by: .seconds(11))
        #expect(try await handle.finalOutcome() == .failed(.deadline))
        await cluster.close()
    }
}
