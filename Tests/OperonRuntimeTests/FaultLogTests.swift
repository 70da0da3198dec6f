import ClusterKit
import OperonModel
import OperonPorts
import OperonSystem
import Testing

/// Lines about bad messages: their number does not depend on how many messages are sent.
@Suite(.timeLimit(.minutes(1))) struct FaultLogTests {
    private enum Fault { case first, second }

    private static func at(_ milliseconds: Int) -> Timestamp {
        Timestamp.zero + .milliseconds(milliseconds)
    }

    @Test func `the first fault is told at once, and the next ones each second together`() {
        let log = FaultLog<Fault>()
        #expect(log.count(.first, at: Self.at(0)) == 1)
        for millisecond in 1..<1_000 {
            #expect(log.count(.first, at: Self.at(millisecond)) == nil)
        }
        #expect(log.count(.first, at: Self.at(1_000)) == 1_000)
        #expect(log.count(.first, at: Self.at(1_999)) == nil)
        #expect(log.count(.first, at: Self.at(5_000)) == 2)
    }

    @Test func `one kind of fault does not hide another`() {
        let log = FaultLog<Fault>()
        #expect(log.count(.first, at: Self.at(0)) == 1)
        #expect(log.count(.second, at: Self.at(1)) == 1)
        #expect(log.count(.second, at: Self.at(2)) == nil)
        #expect(log.count(.first, at: Self.at(3)) == nil)
    }

    @Test func `a coordinator that is sent nonsense writes few lines`() async throws {
        let count = 2_000
        try await ManualCluster.run(nil) { cluster in
            let nonsense = CoordinatorTransportEvent.message([0xFF, 0xFF, 0xFF])
            await cluster.transport.handle(nonsense)
            for _ in 1..<count { cluster.transport.say([nonsense]) }
            await cluster.transport.handle(nonsense)
            let lines = cluster.log.current.count { $0 == "message dropped" }
            // The first, and one for each second that this took.
            #expect(lines >= 1 && lines <= 61)
        }
    }
}
