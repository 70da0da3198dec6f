import Operon
import OperonTesting
import Testing

@Suite struct TestingOperations {
    // snippet: by-hand
    @Test func aPictureIsResized() async throws {
        let file = try await Resize(file: "a.png", width: 200).main(.local)
        #expect(file == "200/a.png")
    }
    // end

    // snippet: with-outputs
    @Test func whatWasMadeIsPublished() async throws {
        let lines = AsyncStream.makeStream(of: String.self)
        let context = try OperationContext.local(
            outputs: ["small": "200/a.png", "large": "800/a.png"],
            log: { lines.continuation.yield($0) }
        )
        try await Publish().main(context)
        lines.continuation.finish()
        var published: [String] = []
        for await line in lines.stream { published.append(line) }
        #expect(published == ["published 200/a.png", "published 800/a.png"])
    }
    // end

    // snippet: stopped
    @Test func aSumStopsWhenItIsAsked() async throws {
        let context = try OperationContext.local(outputs: [:], isCancelled: { true })
        await #expect(throws: CancellationError.self) {
            try await Sum(numbers: [1, 2, 3]).main(context)
        }
    }
    // end

    // snippet: start
    @Test func aHandleStartsWithoutAQueue() async throws {
        let handle = OperationHandle(Resize(file: "a.png", width: 200))
        try await handle.start()
        #expect(try await handle.value == "200/a.png")
    }
    // end

    // snippet: whole-graph
    @Test func aFailureSkipsWhatFollows() async throws {
        let cluster = Cluster.inProcess(slots: 2)
        let queue = OperationQueue(cluster: cluster)
        let charge = try await queue.addOperation(Charge(order: 1, amount: 0))
        let publish = try await queue.addOperation(Publish(), after: [charge])
        let alarm = LocalOperationHandle<String> { _ in "somebody should look" }
        try await alarm.addDependency(charge, when: .failed)
        try await queue.addOperation(alarm)

        #expect(try await publish.outcome.kind == .skipped)
        #expect(try await alarm.value == "somebody should look")
        await cluster.close()
    }
    // end

    // snippet: manual-clock
    @Test func aReminderComesTheNextDay() async throws {
        let clock = ManualClock()
        let cluster = Cluster.testing(clock: clock)
        let queue = OperationQueue(cluster: cluster)
        let reminder = try await queue.addOperation(
            Publish(),
            options: OperationOptions(delay: .seconds(86_400))
        )
        #expect(try await !reminder.isFinished)
        clock.advance(by: .seconds(86_400))
        try await reminder.waitUntilFinished()
        await cluster.close()
    }
    // end
}
