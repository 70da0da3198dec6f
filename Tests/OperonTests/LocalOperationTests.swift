import ClusterKit
import Operon
import OperonGraphFile
import OperonModel
import OperonPorts
import Testing

/// Blocks of this program, and a coordinator that does not answer as it should.
@Suite(.timeLimit(.minutes(10))) struct LocalOperationTests {
    @Test func whatABlockReturnsHasALimit() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = OperationQueue(cluster: cluster)
        let limit = Limits().payloadBytes
        // Two quotation marks are a part of what is sent.
        let longest = String(repeating: "a", count: limit - 2)
        #expect(try await queue.addLocal { _ in longest }.value == longest)
        let tooLong = try await queue.addLocal { _ in longest + "a" }
        let after = try await queue.addOperation(Nothing(), after: [tooLong])
        #expect(
            try await tooLong.finalOutcome()
                == .failed(.outputTooLarge(bytes: limit + 1, limit: limit))
        )
        #expect(try await after.finalOutcome() == .skipped(cause: try #require(tooLong.id)))
        await cluster.close()
    }

    /// As an operation that throws it without being asked to stop: what depends on it does not go
    /// on with nothing.
    @Test func aBlockThatGivesUpUnaskedHasFailed() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = OperationQueue(cluster: cluster)
        let block = try await queue.addLocal { _ -> Int in throw CancellationError() }
        let after = try await queue.addOperation(Nothing(), after: [block])
        let outcome = try await block.finalOutcome()
        guard case .failed(.thrown(type: "CancellationError", _, _)) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(try await after.finalOutcome() == .skipped(cause: try #require(block.id)))
        await cluster.close()
    }

    @Test func aBlockMayCancelItself() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = OperationQueue(cluster: cluster)
        let block = try await queue.addLocal { context -> Int in
            context.cancel()
            #expect(context.isCancelled)
            #expect(Task.isCancelled)
            try context.checkCancellation()
            return 1
        }
        let after = try await queue.addOperation(Nothing(), after: [block])
        #expect(try await block.finalOutcome() == .cancelled(reason: ""))
        #expect(try await after.finalOutcome() == .succeeded)
        await cluster.close()
    }

    @Test func howABlockEndedIsSaidUntilItIsHeard() async throws {
        try await RemoteCluster.run { remote in
            for call in ["operation", "complete"] {
                for code in [ClientError.Code.unavailable, .timedOut] {
                    await remote.tap.failNext(call, with: ClientError(code, "not now"))
                }
            }
            let block = try await remote.queue.addLocal { _ in 7 }
            #expect(try await block.value == 7)
            // The value may come before the answer that it was taken.
            await remote.tap.waitForAnswers("complete", 3)
            #expect(await remote.tap.calls.count { $0.name == "complete" } == 3)
            let completions = await remote.tap.completions.map(\.completion)
            #expect(completions == [.succeeded(Payload(bytes: Array("7".utf8)))])
        }
    }

    @Test func whatTheCoordinatorDoesNotTakeIsAFailure() async throws {
        try await RemoteCluster.run { remote in
            let refusal = Refusal.limitExceeded(limit: .payloadBytes, value: 3, maximum: 2)
            await remote.tap.failNext(
                "complete",
                with: ClientError(.tooLarge, "\(refusal)", refusal: refusal)
            )
            let block = try await remote.queue.addLocal { _ in 700 }
            let error = await #expect(throws: OperationError.self) { try await block.value }
            #expect(error?.thrown(as: Refusal.self) == refusal)
        }
    }

    @Test(arguments: ["operation", "complete"])
    func whoeverWaitsForABlockIsToldThatItCannotEnd(call: String) async throws {
        try await RemoteCluster.run { remote in
            let error = ClientError(.forbidden, "You may only look.")
            await remote.tap.failNext(call, with: error)
            await remote.tap.failNext("complete", with: error)
            let block = try await remote.queue.addLocal { _ in 7 }
            let told = await #expect(throws: OperonError.self) { try await block.value }
            #expect(told?.code == .forbidden)
            #expect(await remote.tap.completions.isEmpty)
        }
    }

    @Test func anAttemptThatIsOverSaysNothing() async throws {
        try await RemoteCluster.run { remote in
            let over = Refusal.alreadyFinished(name: "block")
            await remote.tap.failNext(
                "complete",
                with: ClientError(.conflict, "\(over)", refusal: over)
            )
            let block = try await remote.queue.addLocal { _ in 7 }
            await remote.tap.waitForCalls("complete", 1)
            let id = try #require(block.id)
            var cancel = CancelRequest()
            cancel.reason = "enough"
            _ = try await remote.coordinator.client.cancel(
                .operation(OperationSelector(id)),
                cancel
            )
            #expect(try await block.finalOutcome() == .cancelled(reason: "enough"))
        }
    }
}
