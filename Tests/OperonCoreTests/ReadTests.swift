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
    private func asking(_ bench: inout SchedulerBench) throws {
        bench.join(slots: 2)
        try bench.submit([.nothing("a"), .nothing("b")])
        bench.start("a")
        bench.start("b")
        ask(&bench)
    }

    private func ask(_ bench: inout SchedulerBench) {
        bench.send(.read(bench.attempt("a").held, ReadRequest(number: 7, name: "b")), from: 0)
    }

    @Test func `what has not ended is not read`() throws {
        var bench = SchedulerBench()
        bench.resolver.outputs["b"] = Self.left
        try asking(&bench)
        guard case .refused(.worded(.invalid(field: "output", _))) = verdicts(bench).first?.content
        else {
            Issue.record("\(verdicts(bench))")
            return
        }
    }

    @Test func `what nobody knows is not read`() throws {
        var bench = SchedulerBench()
        try asking(&bench)
        bench.drain()
        let (worker, held) = bench.attempt("a")
        bench.send(.read(held, ReadRequest(number: 8, name: "x")), from: worker)
        let refusal = Refusal.unknownOperation(name: "x", namedBy: "")
        #expect(verdicts(bench).map(\.content) == [.refused(.worded(refusal))])

        // A resolver that is ahead of the scheduler is not believed.
        bench.drain()
        bench.resolver.strangers["y"] = OperationID(graph: GraphID(rawValue: 9), index: 9)
        bench.send(.read(held, ReadRequest(number: 9, name: "y")), from: worker)
        bench.send(.yielded(held, WaitRequest(number: 10, names: ["y"])), from: worker)
        for content in verdicts(bench).map(\.content) {
            guard case .refused(.worded(.unknownOperation(name: "y", _))) = content else {
                Issue.record("\(content)")
                continue
            }
        }
        #expect(verdicts(bench).count == 2)
    }

    @Test func `what is read is said once, and asked for anew if it is lost`() throws {
        var bench = SchedulerBench()
        try asking(&bench)
        bench.finish("b")
        bench.drain()
        ask(&bench)
        #expect(verdicts(bench).map(\.content) == [.again])
        bench.drain()
        bench.resolver.outputs["b"] = Self.left
        ask(&bench)
        #expect(verdicts(bench).map(\.content) == [.output(Self.left)])

        let verdict = try #require(verdicts(bench).first)
        bench.drain()
        let held = bench.attempt("a").held
        bench.beat(from: 0, open: [OpenRequest(number: 7, held: held, event: verdict.event)])
        #expect(verdicts(bench) == [.init(number: 7, event: verdict.event, content: .again)])
    }

    @Test func `who does not run reads nothing`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 2)
        try bench.submit([.nothing("a"), .nothing("b")])
        bench.send(.read(bench.attempt("a").held, ReadRequest(number: 7, name: "b")), from: 0)
        #expect(bench.resolver.requests.isEmpty)
    }
}
