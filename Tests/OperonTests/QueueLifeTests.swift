import Foundation
import Operon
import OperonTesting
import Testing

/// What is refused, closed or let go, and what stands behind it.
@Suite(.timeLimit(.minutes(10))) struct QueueLifeTests {
    @Test func whoWaitsBehindAClosedClusterIsTold() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = Operon.OperationQueue(cluster: cluster, isSuspended: true)
        let handle = try await queue.addOperation(Nothing())
        let waiting = Task { try await handle.finalOutcome() }
        await cluster.close()
        await #expect(throws: OperonError.self) { try await waiting.value }
        // And whoever comes later.
        let error = await #expect(throws: OperonError.self) { try await handle.finalOutcome() }
        #expect(error?.code == .closed)
        let late = await #expect(throws: OperonError.self) {
            try await queue.addOperation(Nothing())
        }
        #expect(late?.code == .closed)
    }

    @Test(arguments: [false, true])
    func whatOthersLeftIsReadFromTheStore(isEmbedded: Bool) async throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("operon-read-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let store = folder.appendingPathComponent("store.db").path
        let cluster: Cluster =
            isEmbedded ? .embedded(store: store, slots: 1) : .inProcess(slots: 1)
        let queue = Operon.OperationQueue(cluster: cluster)
        let family = try await queue.addOperation(Family())
        #expect(try await family.value == Family.answers(family.name))
        await cluster.close()
    }

    @Test func whatASlowSequenceAddsIsToldOfAtOnce() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = Operon.OperationQueue(cluster: cluster)
        let (numbers, source) = AsyncStream.makeStream(of: Doubled.self)
        source.yield(Doubled(number: 1))
        var values: [Int] = []
        // Each comes only when the one before was told of.
        try await queue.addOperations(from: numbers, inFlight: 4) { handle in
            values.append(try await handle.value)
            if values.count < 4 {
                source.yield(Doubled(number: values.count + 1))
            } else {
                source.finish()
            }
        }
        #expect(values == [2, 4, 6, 8])
        await cluster.close()
    }

    @Test func aSequenceEndsWithWhatIsThrown() async throws {
        let cluster = Cluster.inProcess(slots: 2)
        let queue = Operon.OperationQueue(cluster: cluster)
        let (endless, source) = AsyncStream.makeStream(of: Doubled.self)
        for number in 0..<10 { source.yield(Doubled(number: number)) }
        var count = 0
        await #expect(throws: Wrong(code: 3)) {
            try await queue.addOperations(from: endless, inFlight: 2) { _ in
                count += 1
                if count == 3 { throw Wrong(code: 3) }
            }
        }
        #expect(count == 3)
        let (few, fewSource) = AsyncThrowingStream.makeStream(of: Doubled.self)
        fewSource.yield(Doubled(number: 1))
        fewSource.finish(throwing: Wrong(code: 4))
        await #expect(throws: Wrong(code: 4)) {
            try await queue.addOperations(from: few, inFlight: 2)
        }
        await cluster.close()
    }

    @Test func aBlockThatRunsHasTimeToEndWhenItsClusterIsClosed() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = Operon.OperationQueue(cluster: cluster)
        let (start, started) = AsyncStream.makeStream(of: Void.self)
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let first = try await queue.addOperation(Doubled(number: 2))
        let block = try await queue.addLocal("block", after: [first]) { context in
            started.finish()
            for await _ in gate {}
            return try context.output(of: first.name, as: Int.self) + 3
        }
        for await _ in start {}
        let closing = Task { await cluster.close(within: .seconds(100)) }
        while (try? await cluster.connect()) != nil { await Task.yield() }
        open.finish()
        await closing.value
        #expect(try await block.value == 7)
    }

    @Test func aBlockThatDoesNotEndHoldsUpACloseForItsTimeOnly() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = Operon.OperationQueue(cluster: cluster)
        let (start, started) = AsyncStream.makeStream(of: Void.self)
        let block = try await queue.addLocal { _ in
            started.finish()
            try await Task.sleep(for: .seconds(3_600))
        }
        for await _ in start {}
        await cluster.close(within: .milliseconds(20))
        let error = await #expect(throws: OperonError.self) { try await block.value }
        #expect(error?.code == .closed)
    }

    @Test func aGroupCancelsWhatIsLeftOfItWhenOnePartFails() async throws {
        let cluster = Cluster.inProcess(slots: 2)
        let queue = Operon.OperationQueue(cluster: cluster)
        let waiting = OperationHandle(Wait(then: "throw"))
        let gate = try ExternalOperationHandle(Int.self)
        let blocked = OperationHandle(Nothing()).after(gate)
        let failing = OperationHandle(Failing())
        let group = GroupHandle("all or nothing", onFailure: .cancelSiblings) {
            waiting
            GroupHandle("inner") {
                gate
                blocked
            }
            failing
        }
        try await queue.addOperation(group)
        #expect(try await group.finalOutcome() == .skipped(cause: try #require(failing.id)))
        for part in [waiting, gate, blocked] as [AnyOperationHandle] {
            let reason = "a sibling did not succeed"
            #expect(try await part.finalOutcome() == .cancelled(reason: reason))
        }
        // What needs the outputs of the parts depends on them.
        let parts = GroupHandle([OperationHandle(Doubled(number: 1))])
        let sum = OperationHandle(SumOfInputs()).after(parts.parts)
        try await queue.addOperations([parts, sum])
        #expect(try await sum.value == 2)
        await cluster.close()
    }

    @Test func aRefusedOperationHoldsUpNobody() async throws {
        let cluster = Cluster.inProcess(slots: 2)
        for queue in [
            Operon.OperationQueue.serial(cluster: cluster), Operon.OperationQueue(cluster: cluster),
        ] {
            let first = try await queue.addOperation(Doubled(number: 1))
            let missing = OperationHandle(Nothing())
            let refused = OperationHandle(Nothing()).after(missing)
            await #expect(throws: Refusal.self) { try await queue.addOperation(refused) }
            let second = try await queue.addOperation(Doubled(number: 2))
            #expect(try await second.value == 4)
            #expect(try await first.value == 2)
            let block = try await queue.addBarrierBlock { _ in }
            try await block.waitUntilFinished()
            // As it was: it can be added with what it waits for.
            try await queue.addOperations([missing, refused], waitUntilFinished: true)
            for await progress in queue.progress where progress.fractionCompleted == 1 {
                #expect(progress.totalCount == 5)
                break
            }
        }
        await cluster.close()
    }

    @Test func aRefusedBarrierHoldsUpNobody() async throws {
        let cluster = Cluster.inProcess(slots: 2)
        let queue = Operon.OperationQueue(cluster: cluster)
        let gate = try ExternalOperationHandle(Int.self)
        try await queue.addOperation(gate)
        let barrier = OperationHandle(Nothing()).after(OperationHandle(Nothing()))
        await #expect(throws: Refusal.self) { try await queue.addBarrier(barrier) }
        #expect(try await queue.addOperation(Doubled(number: 4)).value == 8)
        // The one that counts waits for what was before the refused one.
        let second = OperationHandle(Nothing())
        try await queue.addBarrier(second)
        #expect(try await second.operationState == .pending)
        try await gate.complete(1)
        try await second.waitUntilFinished()
        await cluster.close()
    }

    @Test func aLabelIsFreeAgainAfterARefusal() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = Operon.OperationQueue(cluster: cluster)
        let missing = OperationHandle(Nothing())
        let named = OperationHandle(Doubled(number: 1), options: OperationOptions(name: "one"))
        named.after(missing)
        await #expect(throws: Refusal.self) { try await queue.addOperation(named) }
        #expect(named.name == "one")
        try await queue.addOperations([missing, named])
        #expect(named.name == "one")
        let again = OperationHandle(Doubled(number: 1), options: OperationOptions(name: "one"))
        try await queue.addOperation(again)
        #expect(again.name.hasPrefix("one~"))
        await cluster.close()
    }

    @Test func aProgramThatRestsForWeeksGoesOn() async throws {
        let clock = ManualClock()
        let cluster = Cluster.testing(clock: clock)
        let queue = Operon.OperationQueue(cluster: cluster)
        let before = try await queue.addOperation(Doubled(number: 1))
        #expect(try await before.value == 2)
        // An open graph without work is closed after a day.
        clock.advance(by: .seconds(8 * 86_400))
        let after = try await queue.addOperation(Doubled(number: 2), after: [before])
        #expect(try await after.value == 4)
        #expect(after.id?.graph != before.id?.graph)
        await cluster.close()
    }

    @Test func aClusterIsLetGoWithItsQueues() async throws {
        weak var gone: Operon.Cluster?
        do {
            let cluster = Cluster.inProcess(slots: 1)
            gone = cluster
            let queue = Operon.OperationQueue(cluster: cluster)
            try await queue.addOperation(Nothing())
            try await queue.addBarrierBlock { _ in }
            try await Operon.OperationQueue.serial(cluster: cluster).addOperation(Nothing())
            try await queue.waitUntilAllOperationsAreFinished()
            await cluster.close()
        }
        // A queue without a name takes its settings back in passing.
        while gone != nil { await Task.yield() }
    }

    @Test func aQueueWithoutANameTakesItsSettingsWithIt() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let named = Operon.OperationQueue(
            name: "named",
            cluster: cluster,
            maxConcurrentOperationCount: 1
        )
        try await named.addOperations([Nothing()])
        let name: String
        do {
            let queue = Operon.OperationQueue.serial(cluster: cluster)
            name = queue.name
            let handle = try await queue.addOperation(Doubled(number: 2))
            #expect(try await handle.value == 4)
            #expect(try await queue.maxConcurrentOperationCount == 1)
        }
        // What is said at the end of an object is said in passing.
        let again = Operon.OperationQueue(name: name, cluster: cluster)
        while try await again.maxConcurrentOperationCount == 1 { await Task.yield() }
        #expect(try await named.maxConcurrentOperationCount == 1)
        await cluster.close()
    }

    @Test func otherHandlesDoNotCount() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = Operon.OperationQueue(cluster: cluster, isSuspended: true)
        #expect(try await Operon.OperationQueue(cluster: cluster).operations.isEmpty)
        try await queue.addOperations([Doubled(number: 1), Doubled(number: 2)])
        async let present: Void = queue.waitUntilPresentOperationsAreFinished()
        try await queue.resume()
        try await present
        for await progress in queue.progress where progress.finishedCount >= 2 {
            #expect(progress == OperationQueueProgress(finishedCount: 2, totalCount: 2))
            break
        }
        await cluster.close()
    }

    @Test func aNameOfDigitsIsNobodysNumber() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = Operon.OperationQueue(cluster: cluster, isSuspended: true)
        let first = try await queue.addOperation(Doubled(number: 1))
        let options = OperationOptions(name: "0")
        let second = try await queue.addOperation(Doubled(number: 2), options: options)
        #expect(first.id?.index == 0)
        try await first.cancel()
        try await queue.resume()
        #expect(try await second.value == 4)
        #expect(first.outcomeIfKnown == .cancelled(reason: ""))
        await cluster.close()
    }

    @Test func anEmbeddedClusterGoesOnInItsNextLife() async throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("operon-embedded-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let store = folder.appendingPathComponent("jobs.db").path
        let first = Cluster.embedded(store: store, slots: 1)
        let queue = Operon.OperationQueue(name: "jobs", cluster: first, isSuspended: true)
        let one = try await queue.addOperation(Doubled(number: 1))
        let two = try await queue.addOperation(SumOfInputs(), after: [one])
        let id = try #require(two.id)
        // Nobody else has it meanwhile.
        let other = Cluster.embedded(store: store, slots: 1)
        let held = await #expect(throws: OperonError.self) { try await other.connect() }
        #expect(held?.code == .refused)
        await first.close()

        let second = Cluster.embedded(store: store, slots: 1)
        try await second.register(.on(Doubled.self), .on(SumOfInputs.self))
        let again = Operon.OperationQueue(name: "jobs", cluster: second)
        #expect(try await again.isSuspended)
        #expect(try await again.operations.map(\.kind) == ["Doubled", "SumOfInputs"])
        let handle = try await second.handle(id, of: SumOfInputs.self)
        try await again.resume()
        #expect(try await handle.value == 2)
        // New ones are numbered beside the old.
        #expect(try await again.addOperation(Doubled(number: 4), after: [handle]).value == 8)
        await second.close()
    }
}
