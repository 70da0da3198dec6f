import Foundation
import OperonFaultKit
import Testing

/// The parts of a chaos run that decide what it injects, measures and finds.
@Suite struct ChaosPartTests {
    // MARK: - What is injected

    @Test func `each round has every kind once, and a seed gives the same rounds again`() {
        let kinds = FaultKind.allCases
        var schedules = [3, 3, 4].map { FaultSchedule(seed: $0) }
        let drawn = schedules.indices.map { index in
            (0..<3 * kinds.count).map { _ in schedules[index].next() }
        }
        for begin in stride(from: 0, to: drawn[0].count, by: kinds.count) {
            #expect(Set(drawn[0][begin..<begin + kinds.count]) == Set(kinds))
        }
        #expect(drawn[0] == drawn[1])
        #expect(drawn[0] != drawn[2])
    }

    // MARK: - What is measured

    @Test func `percentiles are times that occurred`() {
        let times = (1...200).map { Duration.milliseconds($0) }
        #expect(FaultLog.percentile(50, of: times) == .milliseconds(100))
        #expect(FaultLog.percentile(99, of: times) == .milliseconds(198))
        #expect(FaultLog.percentile(99, of: [.seconds(7)]) == .seconds(7))
        #expect(FaultLog.percentile(99, of: []) == nil)
    }

    private static func fault(
        _ kind: FaultKind,
        worker: String? = nil,
        at begin: Int = 100,
        recovery: Duration? = nil
    ) -> FaultLog.Entry {
        FaultLog.Entry(
            kind,
            worker: worker,
            begin: .seconds(begin),
            end: .seconds(begin + 1),
            recovery: recovery
        )
    }

    @Test func `a kind that takes too long to recover is named`() {
        var faults = FaultLog([
            Self.fault(.coordinatorKilled, recovery: .seconds(3)),
            // There is no limit for it.
            Self.fault(.memoryAlarm, recovery: .seconds(60)),
        ])
        #expect(faults.overLimit == [])
        faults.append(Self.fault(.coordinatorKilled, recovery: .milliseconds(3_001)))
        #expect(faults.overLimit == [.coordinatorKilled])
        let row = faults.table.first { $0.hasPrefix("coordinator killed") }
        #expect(
            row?.split(separator: " ").suffix(9).joined(separator: " ")
                == "2 3.00 s 3.00 s 3.00 s 3.00 s"
        )
    }

    @Test(arguments: [("w1", 100, 130), ("w1", 0, 100), ("w1", 110, 500)])
    func `a fault of its worker explains the end of an attempt`(
        worker: String,
        start: Int,
        end: Int
    ) {
        let faults = FaultLog([Self.fault(.workerKilled, worker: "w1")])
        #expect(faults.explainsEnd(of: worker, from: .seconds(start), to: .seconds(end)))
    }

    @Test(arguments: [("w2", 100, 130), ("w1", 0, 99), ("w1", 122, 500)])
    func `a fault of another worker, or at another time, explains nothing`(
        worker: String,
        start: Int,
        end: Int
    ) {
        let faults = FaultLog([Self.fault(.workerKilled, worker: "w1")])
        #expect(!faults.explainsEnd(of: worker, from: .seconds(start), to: .seconds(end)))
        let ofAll = FaultLog([Self.fault(.brokerKilled)])
        let isDue = worker == "w2"
        #expect(ofAll.explainsEnd(of: worker, from: .seconds(start), to: .seconds(end)) == isDue)
    }

    // MARK: - What is found

    @Test func `an outcome that changes, or is gone, is found`() {
        var history = OutcomeHistory()
        history.read("a", nil)
        history.read("a", "succeeded")
        history.read("a", "succeeded")
        history.read("b", "succeeded")
        #expect(history.changes == [])
        #expect(history.readings == 1)
        history.read("a", "failed")
        history.read("b", nil)
        #expect(
            history.changes == [
                .init("a", before: "succeeded", after: "failed"),
                .init("b", before: "succeeded", after: nil),
            ]
        )
    }

    /// What a follower reads of these lines.
    private static func follow(
        _ pieces: String...,
        body: (LedgerFollower) throws -> Void
    ) async throws {
        try await Workspace.run { workspace in
            let follower = LedgerFollower(path: workspace.path("ledger"))
            try follower.read()
            var text = ""
            for piece in pieces {
                text += piece
                _ = try workspace.write("ledger", text)
                try follower.read()
            }
            try body(follower)
        }
    }

    @Test func `a ledger is followed in pieces, whatever they end with`() async throws {
        try await Self.follow(
            "start 1.00 a 1 7 w1\nstart 2.0",
            "0 b 1 8 w2\nnonsense\nstart 3.00 c 1 9 w1\n",
            "end 4.00 c 1 9 w1\nstart 5.00 b 2 9 w1"
        ) { follower in
            #expect(follower.ledger.entries.map(\.operation) == ["a", "b", "c", "c"])
            #expect(follower.ledger.unreadable == ["nonsense"])
            #expect(follower.running(on: "w1").map(\.operation) == ["a"])
            #expect(follower.running(on: "w2").map(\.operation) == ["b"])
        }
    }

    @Test func `an attempt that another one follows runs no more`() async throws {
        try await Self.follow("start 1.00 a 1 7 w1\n", "start 9.00 a 2 8 w2\n") { follower in
            #expect(follower.running(on: "w1") == [])
            #expect(follower.running(on: "w2").map(\.attempt) == [2])
            #expect(follower.hasStartedAgain(follower.ledger.entries[0]))
            #expect(follower.hasStarted(on: "w2", after: 1))
            #expect(!follower.hasStarted(on: "w2", after: 2))
        }
    }

    @Test func `a dependent shows a recovery only if it became ready after the fault`()
        async throws
    {
        try await Self.follow(
            """
            end 1.00 a 1 7 w1
            start 2.00 b 1 7 w1
            end 3.00 c 1 7 w1
            start 4.00 d 1 7 w1

            """
        ) { follower in
            func isRecovered(_ time: Int, _ place: Int, by name: String) -> Bool {
                let dependencies = ["b": ["a"], "d": ["a", "c"]].filter { $0.key == name }
                return follower.hasStartedDependent(at: .seconds(time), of: place, dependencies)
            }
            #expect(isRecovered(2, 0, by: "b"))
            // What it depends on had ended before.
            #expect(!isRecovered(2, 1, by: "b"))
            #expect(!isRecovered(3, 0, by: "b"))
            // One of two had.
            #expect(isRecovered(2, 1, by: "d"))
            #expect(!isRecovered(4, 3, by: "d"))
            #expect(!isRecovered(5, 1, by: "d"))
        }
    }
}
