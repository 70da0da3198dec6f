import Foundation
import Glibc
import OperonCore
import OperonFaultKit
import OperonModel
import Testing

/// As `EditPropertyTests`, at a coordinator: `resubmit` of an edited file, and `retry --from` of
/// what has succeeded, while the coordinator dies by kill -9 and starts again on its store.
@Suite struct ClusterEditPropertyTests {
    /// As many operations run at once, and can be lost when the coordinator dies.
    private static let slots = 2

    private struct Edited {
        let workspace: Workspace
        let up: Up
        let seed: UInt64
        var generator: SeededGenerator
        var model: EditModel
        var history = EditHistory(isStoredRun: false)

        var context: String {
            "graph \(history.graphCount) of seed \(seed), with \(model.file)"
        }
    }

    @Test(arguments: 0..<4 as Range<UInt64>)
    func `whoever dies, a coordinator runs what an edit or a request needs, and nothing else`(
        seed: UInt64
    ) async throws {
        try await Workspace.run { workspace in
            var generator = SeededGenerator(seed: seed)
            let model = EditModel(Int.random(in: 3...6, using: &generator), &generator)
            var test = Edited(
                workspace: workspace,
                up: try await Up(workspace),
                seed: seed,
                generator: generator,
                model: model
            )
            try await Self.submit(&test)
            for _ in 0..<4 {
                // Something may have succeeded, or nothing yet.
                let asked = test.history.succeeded.randomElement(using: &test.generator)
                if let asked, Int.random(in: 0..<3, using: &test.generator) == 0 {
                    let command = ["retry", "\(test.history.graphCount - 1)/\(asked)", "--from"]
                    try await Self.go(on: command, again: asked, &test)
                } else {
                    test.model.edit(&test.generator)
                    try await Self.resubmit(&test)
                }
            }
            test.model.mend()
            try await Self.resubmit(&test)
            for (name, value) in test.model.values {
                let found = try workspace.read("out.\(name)")
                #expect(found == value + "\n", "\(name) of \(test.context)")
            }
            // All of it has succeeded: one operation runs for whoever asks for it, with what
            // depends on it.
            let asked = try #require(test.history.succeeded.randomElement(using: &test.generator))
            let command = ["retry", "\(test.history.graphCount - 1)/\(asked)", "--from"]
            try await Self.go(on: command, again: asked, &test)
        }
    }

    private static func submit(_ test: inout Edited) async throws {
        let file = try test.model.write(to: test.workspace)
        let plan = test.history.plan(for: test.model)
        let lines = test.workspace.lines(of: "began")
        try await test.up.act("submit", file)
        try await follow(plan, after: lines, &test)
    }

    private static func resubmit(_ test: inout Edited) async throws {
        let file = try test.model.write(to: test.workspace)
        try await go(on: ["resubmit", "\(test.history.graphCount - 1)", file], &test)
    }

    /// Continues the last graph with a new one, and compares the plan and what runs with what the
    /// history says.
    private static func go(
        on command: [String],
        again: String? = nil,
        _ test: inout Edited
    ) async throws {
        let context = "\(command.prefix(2)) for \(test.context)"
        let plan = test.history.plan(for: test.model, again: again)
        let dry = try await test.up.operon(command + ["--dry-run", "--output", "json"])
        try PrintedPlan(dry).expect(plan, context)
        if Int.random(in: 0..<3, using: &test.generator) == 0 { try await test.up.restart() }

        let lines = test.workspace.lines(of: "began")
        let said = try await test.up.operon(command + ["--output", "json"])
        try PrintedPlan(said).expect(plan, context)
        try await follow(plan, after: lines, &test)
    }

    /// Kills the coordinator now and then, until the graph that was submitted has finished.
    private static func follow(
        _ plan: EditHistory.Plan,
        after before: [String],
        _ test: inout Edited
    ) async throws {
        let (workspace, context) = (test.workspace, test.context)
        let graph = test.history.graphCount
        test.history.begin(plan, test.model)
        let end = test.history.end(of: plan, test.model)
        /// How many lines there were at the kills.
        var kills: [Int] = []
        for _ in 0..<Int.random(in: 0...2, using: &test.generator) {
            // All of these begin, so there is an end of waiting for them.
            let lines = Int.random(in: 0...end.begun.count, using: &test.generator)
            try await workspace.waitForLines(before.count + lines, of: "began")
            test.up.program.signal(SIGKILL)
            try await test.up.program.end()
            // What it has left behind may still write its line.
            try await workspace.waitUntilNoProcess(named: "sh")
            kills.append(workspace.lines(of: "began").count - before.count)
            try await test.up.begin()
        }
        let succeeds = end.outcomes.values.allSatisfy { $0 == .succeeded }
        let waited = try await test.up.operon("wait", "\(graph)")
        #expect(waited.end == .exit(succeeds ? 0 : 1), "\(waited.errors) of \(context)")

        let listed = try await test.up.operon("operations", "\(graph)", "--output", "json")
        let page = try JSONDecoder().decode(OperationPage.self, from: Data(listed.output.utf8))
        var outcomes: EditHistory.Outcomes = [:]
        for operation in page.operations { outcomes[operation.name] = .some(operation.outcome) }
        test.history.facts.append(outcomes)
        end.expect(outcomes, context)

        let began = Array(workspace.lines(of: "began").dropFirst(before.count))
        #expect(Set(began) == Set(end.begun), "\(began) of \(context)")
        // A kill may come after an operation has ended and before the store knows it.
        let twice = began.count - Set(began).count
        #expect(twice <= kills.count * slots, "\(began), killed at \(kills), of \(context)")
        // When an operation begins, the store knows of the end of all that it depends on.
        let needs = EditHistory.needs(of: test.model)
        for kill in kills {
            let ended = began.prefix(kill).reduce(into: Set<String>()) { ended, name in
                ended.formUnion(needs[name] ?? [])
            }
            let late = Set(began.dropFirst(kill))
            #expect(ended.isDisjoint(with: late), "\(began), killed at \(kill), of \(context)")
        }
    }
}
