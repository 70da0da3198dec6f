import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// Running operations that ask what others have left, at the coordinator and at the worker.
struct ReadTests {
    private static let left = Payload(bytes: [49])

    private func verdicts(_ bench: SchedulerBench) -> [Scheduler.Verdict] {
        bench.effects.messages.flatMap(\.verdicts)
    }

    /// With “a”, which runs and asks for what “b” has left.
    private func asking(_ bench: inout SchedulerBench) throws -> Scheduler.ReadOrder {
        bench.join(slots: 2)
        try bench.submit([.nothing("a"), .nothing("b")])
        bench.start("a")
        bench.start("b")
        bench.send(.read(bench.attempt("a").held, ReadRequest(number: 7, name: "b")), from: 0)
        return try #require(bench.effects.reads.first)
    }

    @Test func `what has not ended is not read`() throws {
        var bench = SchedulerBench()
        let order = try asking(&bench)
        bench.drive(.readJudged(order, .found(bench.id("b"), Self.left)))
        guard case .refused(.worded(.invalid(field: "output", _))) = verdicts(bench).first?.content
        else {
            Issue.record("\(verdicts(bench))")
            return
        }
    }

    @Test func `what is read is said once, and asked for anew if it is lost`() throws {
        var bench = SchedulerBench()
        let order = try asking(&bench)
        bench.drain()
        // Held back until it is judged, like all that a worker says behind a request.
        bench.finish("b")
        bench.drive(.readJudged(order, .notLoaded))
        #expect(verdicts(bench).map(\.content) == [.again])
        let held = bench.attempt("a").held
        bench.drain()
        bench.send(.read(held, ReadRequest(number: 7, name: "b")), from: 0)
        let second = try #require(bench.effects.reads.first)
        bench.drive(.readJudged(second, .found(bench.id("b"), Self.left)))
        #expect(verdicts(bench).map(\.content) == [.output(Self.left)])

        bench.drain()
        let event = second.event
        bench.beat(from: 0, open: [OpenRequest(number: 7, held: held, event: event)])
        #expect(verdicts(bench) == [.init(number: 7, event: event, content: .again)])
    }

    @Test func `who does not run reads nothing`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 2)
        try bench.submit([.nothing("a"), .nothing("b")])
        bench.send(.read(bench.attempt("a").held, ReadRequest(number: 7, name: "b")), from: 0)
        #expect(bench.effects.reads.isEmpty)
    }
}
