import OperonCore
import OperonModel
import Testing

/// What an edited graph runs again.
@Suite struct ContinuationTests {
    private typealias Previous = Continuation.Previous
    private typealias Decision = Continuation.Decision

    private func id(_ index: Int, graph: UInt32 = 0) -> OperationID {
        OperationID(graph: GraphID(rawValue: graph), index: UInt32(index))
    }

    private func command(_ line: String) -> Work {
        .command(CommandDescription(arguments: CommandDescription.shell(line)))
    }

    private func operation(
        _ name: String,
        _ line: String = "true",
        after names: [String] = []
    ) -> OperationDescription {
        var operation = OperationDescription(name: name, work: command(line))
        operation.dependencies = names.map { DependencyDescription($0) }
        return operation
    }

    private func previous(
        _ operations: [OperationDescription],
        _ outcomes: [OutcomeKind?]
    ) -> [Previous] {
        operations.indices.map {
            Previous(id: id($0), description: operations[$0], outcome: outcomes[$0])
        }
    }

    @Test func `what succeeded and is the same stays, and what depends on a change runs`() {
        let old = [
            operation("a"), operation("b", after: ["a"]), operation("c", after: ["b"]),
            operation("d", after: ["a"]), operation("e"), operation("gone"),
        ]
        let outcomes: [OutcomeKind?] = [
            .succeeded, .succeeded, .succeeded, .failed, nil, .succeeded,
        ]
        var new = [
            operation("a"), operation("b", "false", after: ["a"]), operation("c", after: ["b"]),
            operation("d", after: ["a"]), operation("e"), operation("new", after: ["a"]),
        ]
        // How it would run is no reason to run it.
        new[0].priority = .high
        new[0].timeout = .seconds(5)
        new[0].retry = RetryPolicy(limit: 3)
        let plan = Continuation(
            of: previous(old, outcomes),
            in: GraphDescription(name: "g", operations: new)
        )
        #expect(
            plan.decisions == [
                .stays(id(0)), .runs(.changed), .runs(.dependency("b")), .runs(.ended(.failed)),
                .runs(.ended(nil)), .runs(.added),
            ]
        )
        #expect(plan.removed == ["gone"])
        #expect(plan.staying == 1)
    }

    @Test func `what is asked for runs again, and so does what depends on it`() {
        let operations = [
            operation("a"), operation("b", after: ["a"]), operation("c", after: ["b"]),
            operation("d", after: ["a"]),
        ]
        let plan = Continuation(
            of: previous(operations, operations.map { _ in .succeeded }),
            in: GraphDescription(name: "g", operations: operations),
            again: ["b"]
        )
        #expect(
            plan.decisions == [
                .stays(id(0)), .runs(.asked), .runs(.dependency("b")), .stays(id(3)),
            ]
        )
    }

    @Test func `the name of a repeated operation stands for its elements`() {
        var group = operation("render", after: ["render[1]", "render[2]", "setup"])
        group.work = .nothing
        let operations = [
            operation("setup"), operation("render[1]"), operation("render[2]"),
            operation("rendered"), group, operation("last", after: ["render"]),
        ]
        let plan = Continuation(
            of: previous(operations, operations.map { _ in .succeeded }),
            in: GraphDescription(name: "g", operations: operations),
            again: ["render"]
        )
        #expect(
            plan.decisions == [
                .stays(id(0)), .runs(.asked), .runs(.asked), .stays(id(3)),
                .runs(.dependency("render[1]")), .runs(.dependency("render")),
            ]
        )
    }

    @Test func `an operation that added others in vain runs again`() {
        let old = Previous(
            id: id(0),
            description: operation("a"),
            outcome: .succeeded,
            hasAddedInVain: true
        )
        let plan = Continuation(
            of: [old],
            in: GraphDescription(name: "g", operations: [operation("a")])
        )
        #expect(plan.decisions == [.runs(.additions)])
        let asked = Continuation(
            of: [old],
            in: GraphDescription(name: "g", operations: [operation("a")]),
            again: ["a"]
        )
        #expect(asked.decisions == [.runs(.asked)])
    }

    @Test func `what it added before is told if it runs, and nothing of that stays`() {
        var adding = operation("elements")
        adding.work = .registered(kind: Work.forEachKind, input: .empty)
        let names = ["failed", "stays", "none"]
        let description = GraphDescription(
            name: "g",
            operations: names.map { operation($0) } + [adding]
        )
        func previous(_ index: UInt32, _ outcome: OutcomeKind, _ additions: Int) -> Previous {
            Previous(
                id: id(Int(index)),
                description: description.operations[Int(index)],
                outcome: outcome,
                hasAddedInVain: index == 3,
                additions: additions
            )
        }
        let old = [
            previous(0, .failed, 7), previous(1, .succeeded, 5), previous(2, .failed, 0),
            previous(3, .succeeded, 9),
        ]
        let view = Continuation(of: old, in: description).view(of: description)
        #expect(view.operations.map(\.additions) == [7, nil, nil, nil])
    }

    @Test func `an operation that adds again knows where it added before, until it runs anew`() {
        let list = operation("list")
        var adding = operation("adding", after: ["list"])
        adding.work = .registered(kind: Work.forEachKind, input: .empty)
        let description = GraphDescription(name: "g", operations: [list, adding])
        func plan(of adding: OperationDescription, again: Set<String> = []) -> Continuation {
            Continuation(
                of: [
                    Previous(id: id(0), description: list, outcome: .succeeded),
                    Previous(
                        id: id(1),
                        description: adding,
                        outcome: .succeeded,
                        hasAddedInVain: true
                    ),
                ],
                in: description,
                again: again
            )
        }
        let first = plan(of: adding).graph(from: description).operations[1]
        #expect(Continuation.earlierAdding(of: first) == id(1))
        // The dependency on its earlier form is no change.
        #expect(plan(of: first).decisions == [.stays(id(0)), .runs(.additions)])
        // It is one of the last form alone, and none if all that it adds shall run.
        let third = plan(of: first).graph(
            from: GraphDescription(name: "g", operations: [list, first])
        )
        #expect(third.operations[1].dependencies.count == 2)
        for again in [["adding"], ["list"]] as [Set<String>] {
            let anew = plan(of: first, again: again)
            let operation = anew.graph(
                from: GraphDescription(name: "g", operations: [list, first])
            )
            .operations[1]
            #expect(Continuation.earlierAdding(of: operation) == nil)
        }
        #expect(Continuation.earlierAdding(of: list) == nil)

        // What a command adds may depend on what it has done now.
        var other = first
        other.work = command("true")
        #expect(Continuation.earlierAdding(of: other) == nil)
        let kept = plan(of: other).graph(
            from: GraphDescription(name: "g", operations: [list, other])
        )
        #expect(kept.operations[1].dependencies.count == 2)
    }

    @Test func `what was added need not run again if it succeeded and is the same`() {
        func carries(
            _ old: OperationDescription,
            _ outcome: OutcomeKind?,
            hasAddedInVain: Bool = false,
            to new: OperationDescription
        ) -> Bool {
            Continuation.carries(
                Previous(
                    id: id(5),
                    description: old,
                    outcome: outcome,
                    hasAddedInVain: hasAddedInVain
                ),
                to: new
            )
        }
        let element = operation("f[a]", after: ["extra"])
        #expect(carries(element, .succeeded, to: element))
        for outcome in [nil, .failed, .cancelled, .skipped] as [OutcomeKind?] {
            #expect(!carries(element, outcome, to: element))
        }
        #expect(!carries(element, .succeeded, hasAddedInVain: true, to: element))
        #expect(!carries(element, .succeeded, to: operation("f[a]", "false", after: ["extra"])))
        #expect(!carries(element, .succeeded, to: operation("f[a]", after: ["other"])))
        var later = element
        later.dependencies[0].resolvedID = id(7)
        #expect(!carries(element, .succeeded, to: later))
    }

    @Test func `other conditions, dependencies, directories and inputs are changes`() {
        var base = operation("b", after: ["a"])
        base.dependencies[0].condition = .finished
        var changes: [OperationDescription] = []
        var other = base
        other.dependencies[0].condition = .succeeded
        changes.append(other)
        other = base
        other.dependencies = []
        changes.append(other)
        other = base
        var moved = CommandDescription(arguments: CommandDescription.shell("true"))
        moved.directory = "/elsewhere"
        other.work = .command(moved)
        changes.append(other)
        other = base
        other.work = .registered(kind: "K", input: Payload(bytes: [49]))
        changes.append(other)
        for change in changes {
            let plan = Continuation(
                of: previous([operation("a"), base], [.succeeded, .succeeded]),
                in: GraphDescription(name: "g", operations: [operation("a"), change])
            )
            #expect(plan.decisions[1] == .runs(.changed))
        }
        // The limits of its process are not.
        other = base
        var limited = CommandDescription(arguments: CommandDescription.shell("true"))
        limited.memory = 1 << 30
        limited.grace = .seconds(1)
        other.work = .command(limited)
        let plan = Continuation(
            of: previous([operation("a"), base], [.succeeded, .succeeded]),
            in: GraphDescription(name: "g", operations: [operation("a"), other])
        )
        #expect(plan.decisions[1] == .stays(id(1)))
    }

    @Test func `what ran after another version of its dependency runs again`() {
        // “x” ran after the first “a”; the edit that removed it let “a” run again.
        let a = Previous(id: id(0, graph: 1), description: operation("a"), outcome: .succeeded)
        let x = Previous(
            id: id(1, graph: 0),
            description: operation("x", after: ["a"]),
            outcome: .succeeded
        )
        let graph = GraphDescription(
            name: "g",
            operations: [operation("a"), operation("x", after: ["a"])]
        )
        let plan = Continuation(of: [a], older: [x], in: graph)
        #expect(plan.decisions == [.stays(id(0, graph: 1)), .runs(.dependency("a"))])
        // After that very one, it stays.
        var later = operation("x", after: ["a"])
        later.dependencies[0].resolvedID = id(0, graph: 1)
        let same = Previous(id: id(1, graph: 2), description: later, outcome: .succeeded)
        #expect(Continuation(of: [a], older: [same], in: graph).staying == 2)
    }

    @Test func `what is skipped again makes nothing run`() {
        var alert = operation("alert", after: ["build"])
        alert.dependencies[0].condition = .failed
        var report = operation("report", after: ["alert"])
        report.dependencies[0].condition = .finished
        let operations = [operation("build"), alert, report]
        let plan = Continuation(
            of: previous(operations, [.succeeded, .skipped, .succeeded]),
            in: GraphDescription(name: "g", operations: operations + [operation("new")])
        )
        #expect(
            plan.decisions == [
                .stays(id(0)), .runs(.ended(.skipped)), .stays(id(2)), .runs(.added),
            ]
        )
    }

    @Test(arguments: [
        (DependencyCondition.finished, OutcomeKind.failed, true),
        (.unlessFailed, .cancelled, true),
        // A failure handler has done its work.
        (.failed, .failed, false),
        // What it ran after goes on as it was.
        (.finished, .succeeded, false),
    ])
    func `what succeeded after something that runs again is stale`(
        condition: DependencyCondition,
        end: OutcomeKind,
        isStale: Bool
    ) {
        var report = operation("report")
        report.dependencies = [DependencyDescription("work", condition)]
        let operations = [operation("work"), report]
        let graph = GraphDescription(name: "g", operations: operations)
        let plan = Continuation(of: previous(operations, [end, .succeeded]), in: graph)
        #expect(plan.hasStale(graph) == isStale)
        #expect(Continuation.mayHaveStale(graph) == (condition != .failed))
    }

    @Test func `a chain of a hundred thousand is no recursion`() {
        let operations = (0..<100_000).map {
            operation("\($0)", after: $0 == 0 ? [] : ["\($0 - 1)"])
        }
        let graph = GraphDescription(name: "g", operations: operations.reversed())
        let old = previous(operations, operations.map { _ in .succeeded })
        #expect(Continuation(of: old, in: graph).staying == 100_000)
    }

    /// A random graph, its operations in any order.
    private func graph(
        _ count: Int,
        _ generator: inout SeededGenerator
    ) -> [OperationDescription] {
        (0..<count).map { index in
            let some = (0..<index).filter { _ in Int.random(in: 0..<3, using: &generator) == 0 }
            return operation("\(index)", "run \(index)", after: some.map { "\($0)" })
        }
    }

    private func edit(
        _ operations: [OperationDescription],
        _ generator: inout SeededGenerator
    ) -> [OperationDescription] {
        var new = operations
        for index in new.indices {
            switch Int.random(in: 0..<12, using: &generator) {
            case 0: new[index].work = command("edited \(Int.random(in: 0..<9, using: &generator))")
            case 1: new[index].dependencies = Array(new[index].dependencies.dropFirst())
            case 2: new[index].priority = .low
            default: continue
            }
        }
        if Bool.random(using: &generator), let gone = new.indices.randomElement(using: &generator) {
            let name = new.remove(at: gone).name
            for index in new.indices { new[index].dependencies.removeAll { $0.name == name } }
        }
        if Bool.random(using: &generator) {
            let last = new.last.map { [$0.name] } ?? []
            new.append(operation("new \(generator.next())", after: last))
        }
        return new.shuffled(using: &generator)
    }

    /// What a person would say: the newest success of the same work on the same dependencies stays,
    /// if those stay.
    private func mustStay(
        _ name: String,
        in new: [String: OperationDescription],
        _ ran: [String: (operation: OperationDescription, outcome: OutcomeKind)],
        _ again: Set<String>
    ) -> Bool {
        guard !again.contains(name), let operation = new[name], let last = ran[name],
            last.outcome == .succeeded,
            last.operation.work == operation.work,
            Set(last.operation.dependencies) == Set(operation.dependencies)
        else { return false }
        return operation.dependencies.allSatisfy { mustStay($0.name, in: new, ran, again) }
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func `edit after edit, exactly what must run runs`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var operations = graph(Int.random(in: 1..<12, using: &generator), &generator)
        // The last time that each operation ran, whichever graph it was of.
        var ran: [String: (operation: OperationDescription, outcome: OutcomeKind)] = [:]
        var submitted = operations
        var number: UInt32 = 0
        var stores: [OperationID: (description: OperationDescription, outcome: OutcomeKind)] = [:]
        func finish(_ indices: [Int]) {
            for index in indices {
                let outcomes: [OutcomeKind] = [
                    .succeeded, .succeeded, .succeeded, .failed, .cancelled,
                ]
                let outcome = outcomes.randomElement(using: &generator) ?? .failed
                stores[id(index, graph: number)] = (submitted[index], outcome)
                ran[operations[index].name] = (operations[index], outcome)
            }
        }
        finish(Array(operations.indices))
        for _ in 0..<6 {
            let before = operations
            operations = edit(operations, &generator)
            let names = Set(operations.map(\.name))
            for name in ran.keys where !names.contains(name) { ran[name] = nil }
            let graph = GraphDescription(name: "g", operations: operations)
            let previous = submitted.indices.compactMap { index -> Previous? in
                let own = id(index, graph: number)
                let place = Continuation.original(of: submitted[index]) ?? own
                guard let found = stores[place] else { return nil }
                return Previous(id: place, description: found.description, outcome: found.outcome)
            }
            let isAsked = Bool.random(using: &generator)
            let asked = isAsked ? operations.randomElement(using: &generator)?.name : nil
            let again = Set([asked].compactMap { $0 })
            let plan = Continuation(of: previous, in: graph, again: again)
            let byName = Dictionary(uniqueKeysWithValues: operations.map { ($0.name, $0) })
            for (operation, decision) in zip(operations, plan.decisions) {
                let stays = if case .stays = decision { true } else { false }
                #expect(
                    stays == mustStay(operation.name, in: byName, ran, again),
                    "\(operation.name)"
                )
            }
            #expect(Set(plan.removed) == Set(before.map(\.name)).subtracting(names))

            submitted = plan.graph(from: graph).operations
            number += 1
            // It compiles, and what runs waits for nothing that stays, but for its output.
            let edited = plan.graph(from: graph)
            _ = try CompiledGraph.compile(edited)
            for (operation, decision) in zip(edited.operations, plan.decisions) {
                guard case .stays(let original) = decision else {
                    let others = operation.dependencies.compactMap(\.resolvedID)
                    #expect(others.allSatisfy { stores[$0]?.outcome == .succeeded })
                    continue
                }
                #expect(Continuation.original(of: operation) == original)
                #expect(stores[original]?.description.name == operation.name)
            }
            finish(plan.decisions.indices.filter { !plan.stayingIndices.contains(UInt32($0)) })
        }
    }
}
