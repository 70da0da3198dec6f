import Foundation
import Glibc
import Logging
import OperonCore
import OperonFaultKit
import OperonModel
import OperonRuntime
import OperonSQLite
import Testing

/// Random graphs, random edits, and kill -9 at any moment: the plan names what must run and nothing
/// else, just that runs, and what an operation has at the end is what a run of the last file alone
/// would have given.
@Suite struct EditPropertyTests {
    private struct Killed {
        let workspace: Workspace
        let seed: UInt64
        var history = EditHistory(isStoredRun: true)
        var round = 0

        func context(_ model: EditModel) -> String {
            "round \(round) of seed \(seed), with \(model.file)"
        }
    }

    @Test(arguments: 0..<16 as Range<UInt64>)
    func `whatever is edited and killed, what must run runs, and nothing else`(
        seed: UInt64
    ) async throws {
        try await Workspace.run { workspace in
            var generator = SeededGenerator(seed: seed)
            var model = EditModel(Int.random(in: 3...7, using: &generator), &generator)
            var test = Killed(workspace: workspace, seed: seed)
            for round in 0..<6 {
                test.round = round
                // Now and then, the same file goes on.
                if round > 0, Int.random(in: 0..<4, using: &generator) > 0 {
                    model.edit(&generator)
                }
                let lines = Int.random(in: 0...10, using: &generator)
                try await Self.go(on: model, &test, killAfter: lines)
            }
            model.mend()
            test.round += 1
            try await Self.go(on: model, &test)
            for (name, value) in model.values {
                let found = try workspace.read("out.\(name)")
                #expect(found == value + "\n", "\(name) of \(test.context(model))")
            }
            // All of it has succeeded, so nothing is left to run.
            test.round += 1
            let began = workspace.lines(of: "began")
            try await Self.go(on: model, &test)
            #expect(workspace.lines(of: "began") == began, "\(test.context(model))")
        }
    }

    /// Continues with this file, and compares the plan and what runs with what the history says.
    private static func go(
        on model: EditModel,
        _ test: inout Killed,
        killAfter lines: Int? = nil
    ) async throws {
        let (workspace, context) = (test.workspace, test.context(model))
        let file = try model.write(to: workspace)
        let arguments = ["run", "--local", "-j1", file, "--store", "r.db", "--resume"]
        let plan = test.history.plan(for: model)
        let printed = try await workspace.operon(arguments + ["--dry-run", "--output", "json"])
        try PrintedPlan(printed).expect(plan, context)

        let before = (began: workspace.lines(of: "began"), ran: workspace.lines(of: "ran"))
        let run = try workspace.start("operon", arguments)
        if let lines {
            while !run.hasEnded, workspace.lines(of: "began").count < before.began.count + lines {
                // Its process tells nobody that it has written the line.
                try await Task.sleep(for: .milliseconds(5))
            }
            run.signal(SIGKILL)
        }
        let ended = try await run.end()
        try await workspace.waitUntilNoProcess(named: "sh")
        test.history.facts = try await facts(in: workspace.path("r.db"))
        #expect(test.history.facts.count <= test.history.graphCount + 1, "\(context)")
        if test.history.facts.count > test.history.graphCount {
            #expect(plan.isNewGraph, "\(context)")
            test.history.begin(plan, model)
        }

        let end = test.history.end(of: plan, model)
        let began = Array(workspace.lines(of: "began").dropFirst(before.began.count))
        let outcomes = test.history.facts.last ?? [:]
        if ended.end == .signal(SIGKILL) {
            #expect(Set(began).count == began.count, "\(began) of \(context)")
            #expect(Set(began).isSubset(of: end.begun), "\(began) of \(context)")
            // On one slot, the next one begins when the store knows of the end of the last one.
            let ran = workspace.lines(of: "ran").dropFirst(before.ran.count)
            for name in ran where name != began.last {
                #expect(outcomes[name] == .succeeded, "\(name) of \(context)")
            }
        } else {
            let isSuccess = end.outcomes.values.allSatisfy { $0 == .succeeded }
            #expect(ended.end == .exit(isSuccess ? 0 : 1), "\(ended.errors) of \(context)")
            #expect(began.sorted() == end.begun.sorted(), "\(context)")
            end.expect(outcomes, context)
        }
    }

    /// What a store says of the operations of each graph.
    private static func facts(in path: String) async throws -> [EditHistory.Outcomes] {
        struct Found: Error {
            let facts: [EditHistory.Outcomes]
        }
        // A run that was killed at once has made none, and to open it would.
        guard FileManager.default.fileExists(atPath: path) else { return [] }
        let store = SQLiteStore(path: path)
        let logger = Logger(label: "edit") { _ in SwiftLogNoOpLogHandler() }
        do {
            // It is opened as by a run, which then goes no further.
            _ = try await CoordinatorHost.open(store, leadership: store, .init(), logger: logger) {
                scheduler,
                restored in
                var facts: [EditHistory.Outcomes] = []
                while let operations = restored?.operations(
                    of: GraphID(rawValue: UInt32(facts.count)),
                    from: 0
                ), !operations.isEmpty {
                    let graph = GraphID(rawValue: UInt32(facts.count))
                    var outcomes: EditHistory.Outcomes = [:]
                    for (index, operation) in operations.enumerated() {
                        let id = OperationID(graph: graph, index: UInt32(index))
                        outcomes[operation.name] = .some(scheduler.outcomeKind(of: id))
                    }
                    facts.append(outcomes)
                }
                throw Found(facts: facts)
            }
        } catch let found as Found {
            return found.facts
        }
        return []
    }
}
