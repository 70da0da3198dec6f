import Foundation
import Operon
import OperonFoundation
import Testing

/// What a queue tells Foundation.
@Suite(.timeLimit(.minutes(10))) struct FoundationProgressTests {
    @Test func foundationSeesTheProgress() async throws {
        let cluster = Operon.Cluster.inProcess(slots: 2)
        let queue = Operon.OperationQueue(cluster: cluster)
        let progress = queue.makeProgress()
        try await queue.addOperations((0..<20).map { Doubled(number: $0) })
        try await queue.waitUntilAllOperationsAreFinished()
        // Nothing on Linux tells of its changes.
        while progress.completedUnitCount < 20 { await Task.yield() }
        #expect(progress.totalUnitCount == 20)
        #expect(progress.fractionCompleted == 1)
        await cluster.close()
    }

    @Test func aProgressThatIsLetGoFollowsNothing() async throws {
        let cluster = Operon.Cluster.inProcess(slots: 1)
        let queue = Operon.OperationQueue(cluster: cluster)
        var progress: Progress? = queue.makeProgress()
        #expect(queue.progressObserverCount == 1)
        #expect(progress?.totalUnitCount == 0)
        progress = nil
        // Nothing happens in the queue that would tell it.
        while queue.progressObserverCount > 0 { await Task.yield() }
        await cluster.close()
    }

    @Test func momentsAreDates() {
        let date = Date(timeIntervalSince1970: 1_790_000_000.123_456)
        let time = WallTime(date)
        #expect(time == WallTime(nanosecondsSince1970: 1_790_000_000_123_456_000))
        #expect(abs(Date(time).timeIntervalSince(date)) < 0.000_001)
        #expect(WallTime(.distantPast) == WallTime(nanosecondsSince1970: .min))
        #expect(WallTime(.distantFuture) == WallTime(nanosecondsSince1970: .max))
        #expect(abs(Date(WallTime.now).timeIntervalSinceNow) < 60)
    }
}
