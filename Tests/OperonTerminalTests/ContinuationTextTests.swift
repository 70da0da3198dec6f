import OperonModel
import OperonTerminal
import Testing

/// The plan of an edited graph.
@Suite struct ContinuationTextTests {
    private static let view: ContinuationView = {
        var operations = (1...200).map { ContinuedOperationView(name: "invert[\($0)]") }
        for (index, _) in operations.enumerated() where index != 116 {
            operations[index].stays = OperationName(graph: 0, index: UInt32(index), name: "old")
        }
        operations[116].reason = "failed"
        operations.append(ContinuedOperationView(name: "merge"))
        operations[200].reason = "dependency"
        operations[200].dependency = "invert"
        return ContinuationView(operations: operations, removed: ["gone", "x[1]", "y[1]", "y[2]"])
    }()

    @Test func `elements share a line if they stay, or run for the same reason`() {
        #expect(
            ContinuationText(Self.view, .plain).plan() == [
                "invert[*]: 199 elements stay",
                "invert[117]: runs, because it failed",
                "merge: runs, because \"invert\" runs",
                "gone: removed",
                "x[1]: removed",
                "y[*]: 2 elements removed",
            ]
        )
        var edited = Self.view
        for index in 100..<200 {
            edited.operations[index].stays = nil
            edited.operations[index].reason = "changed"
        }
        #expect(
            ContinuationText(edited, .plain).plan().prefix(2) == [
                "invert[*]: 100 elements stay",
                "invert[*]: 100 elements run, because they have changed",
            ]
        )
    }

    @Test func `each has its line if that is asked for`() {
        let plan = ContinuationText(Self.view, .plain).plan(folds: false)
        #expect(plan.count == 205)
        #expect(plan[0] == "invert[1]: stays")
    }

    @Test(arguments: ["[x]", "a]", "a[b", "a[b]c", ""])
    func `a name of another form is none of an element`(name: String) {
        var operation = ContinuedOperationView(name: name)
        operation.reason = "asked"
        let view = ContinuationView(operations: [operation, operation], removed: [])
        #expect(
            ContinuationText(view, .plain).plan()
                == Array(repeating: "\(name): runs, as asked for", count: 2)
        )
    }

    @Test func `what an operation added before is told to run, too`() {
        var operations = (1...3).map { ContinuedOperationView(name: "find[\($0)]") }
        for index in operations.indices {
            operations[index].reason = "changed"
            operations[index].additions = 2
        }
        operations.append(ContinuedOperationView(name: "list"))
        operations[3].reason = "failed"
        operations[3].additions = 1
        let text = ContinuationText(ContinuationView(operations: operations, removed: []), .plain)
        #expect(
            text.plan() == [
                "find[*]: 3 elements run, because they have changed; the operations that they add "
                    + "run, too (2 each last time)",
                "list: runs, because it failed; the operations that it adds run, too (1 last time)",
            ]
        )
        #expect(
            text.summary() == [
                "0 operations stay, 4 run.",
                "  changed: find[1], find[2], find[3]",
                "  failed: list",
                "  added by find[1], find[2], find[3], list last time, and run again: 7 operations",
            ]
        )
    }
}
