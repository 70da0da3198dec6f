import OperonCore
import OperonModel
import Testing

/// The words for what the scheduler refuses.
struct NumberedRefusalTests {
    private func id(_ index: UInt32, graph: UInt32 = 3) -> OperationID {
        OperationID(graph: GraphID(rawValue: graph), index: index)
    }

    private func worded(_ refusal: NumberedRefusal) -> Refusal {
        refusal.worded { ["a", "b", "c"][Int($0.index)] }
    }

    @Test func `a refusal names each operation with its graph`() {
        #expect(worded(.alreadyStarted(id(0))) == .alreadyStarted(name: "3/a"))
        #expect(
            worded(.dependencyCycle([id(0), id(0)])) == .dependencyCycle(path: ["3/a", "3/a"])
        )
        let attempt = AttemptID(epoch: Epoch(rawValue: 1), number: 7)
        #expect(
            worded(.alreadyFinished(id(1), attempt: attempt))
                == .alreadyFinished(name: "3/b (attempt id 1.7)")
        )
        #expect(
            worded(.unknownOperation(id(0), namedBy: id(1)))
                == .unknownOperation(name: "3/a", namedBy: "3/b")
        )
        #expect(
            worded(.unknownOperation(id(0)))
                == .unknownOperation(name: "3/a", namedBy: "the request")
        )
    }

    @Test func `both operations of a sentence have names`() {
        #expect(
            worded(.notRetriedAlone(id(0), skippedFor: id(1, graph: 4)))
                == .invalid(
                    field: "“3/a” cannot be retried",
                    why: "it was skipped because of “4/b”, so retry that"
                )
        )
        #expect(
            worded(.noDependency(id(0), on: id(1)))
                == .invalid(field: "dependencies of “3/a”", why: "it does not depend on “3/b”")
        )
        #expect(
            worded(.otherCondition(id(0), on: id(2)))
                == .invalid(
                    field: "dependencies of “3/a”",
                    why: "“3/c” is listed with another condition"
                )
        )
    }

    @Test func `who waits calls operations of its own graph by their names alone`() {
        let cycle = NumberedRefusal.waitCycle([id(0), id(1, graph: 4), nil, id(0)])
        #expect(worded(cycle) == .dependencyCycle(path: ["a", "4/b", "…", "a"]))
    }

    @Test func `a name that looks like a number stays a name`() {
        let refusal = Refusal.alreadyFinished(name: "0/0")
        #expect(worded(.worded(refusal)) == refusal)
    }
}
