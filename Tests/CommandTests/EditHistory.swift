import Foundation
import OperonModel
import Testing

/// What has happened to a graph and its edited forms, and what must therefore run of the next one.
///
/// It knows of each operation in which graph it ran last, as what, and after which of the
/// operations that it depends on. What came of them are facts that it is told.
struct EditHistory {
    /// An operation of the graph in which it ran. If it stays in later ones, it is still this one.
    fileprivate struct Run: Hashable {
        let graph: Int
        let name: String
    }

    private struct Record {
        let work: String
        /// By their names.
        let dependencies: [String: Run]
        /// The elements that it found done when it began, if it adds elements.
        let done: Set<String>
    }

    enum Decision: Hashable {
        /// It succeeded in the graph of this number.
        case stays(graph: Int)
        case isNew
        case hasChanged
        /// It would stay if nobody had asked for it.
        case isAskedFor
        /// It is the same, but did not succeed, or something runs on which it depends.
        case runsAgain
    }

    /// What a continuation does.
    struct Plan {
        var decisions: [String: Decision] = [:]
        /// What the last graph has and this one has not.
        var removed: Set<String> = []
        /// Whether the last graph does not simply go on.
        var isNewGraph = true
        /// What does not run although the plan does not say that it stays: elements that have
        /// succeeded and are added again.
        var done: Set<String> = []
        fileprivate var runs: [String: Run] = [:]

        func stays(_ name: String) -> Bool {
            if case .stays = decisions[name] { true } else { false }
        }
    }

    /// What comes of a plan that nothing interrupts.
    struct End {
        /// The commands that run, each once.
        var begun: [String] = []
        var outcomes: [String: OutcomeKind] = [:]

        /// Expects that it is what a graph says of its operations. Of elements that stay, only the
        /// graph to which they were added says something.
        func expect(_ found: Outcomes, _ context: String) {
            for (name, outcome) in outcomes {
                #expect(found[name] == .some(outcome), "\(name) of \(context)")
            }
            for (name, outcome) in found where outcomes[name] == nil {
                #expect(outcome == .succeeded, "\(name) of \(context)")
            }
        }
    }

    /// What became of the operations of each graph; an operation without an outcome has not
    /// finished.
    typealias Outcomes = [String: OutcomeKind?]

    /// The stored run of a file goes on with the last graph if that has the same file, and knows
    /// what the file had before that; a coordinator knows nothing of the kind.
    let isStoredRun: Bool
    /// One for each graph.
    var facts: [Outcomes] = []
    private var graphs: [(file: String, runs: [String: Run])] = []
    private var records: [Run: Record] = [:]

    var graphCount: Int { graphs.count }

    init(isStoredRun: Bool) { self.isStoredRun = isStoredRun }

    private func hasSucceeded(_ run: Run) -> Bool { facts[run.graph][run.name] == .succeeded }

    // MARK: - What must run

    /// - Parameter again: An operation that is to run even if it succeeded.
    func plan(for model: EditModel, again: String? = nil) -> Plan {
        if isStoredRun, graphs.last?.file == model.file { return goingOn() }
        var plan = Plan()
        for operation in model.planned {
            let run = known(operation.name)
            // The name of a repeated operation stands for all its elements.
            let isPart = operation.kind == .adding && again == operation.operation.name
            let isAsked = again == operation.name || isPart
            let decision = decision(on: operation, run, plan, isAsked: isAsked)
            plan.decisions[operation.name] = decision
            if case .stays = decision {
                plan.runs[operation.name] = run
            } else {
                plan.runs[operation.name] = Run(graph: graphs.count, name: operation.name)
            }
            if operation.kind == .adding, decision == .runsAgain, let run, hasSucceeded(run),
                stay(operation.dependencies, plan, as: run)
            {
                plan.done.formUnion(elements(of: operation.operation, addedBy: run))
            }
        }
        plan.removed = Set(graphs.last.map { $0.runs.keys.filter { plan.runs[$0] == nil } } ?? [])
        return plan
    }

    /// The last graph goes on as it is: whatever has not succeeded in it runs.
    private func goingOn() -> Plan {
        var plan = Plan()
        plan.isNewGraph = false
        let last = graphs.count - 1
        plan.runs = graphs[last].runs
        for (name, outcome) in facts[last] {
            let run = plan.runs[name] ?? Run(graph: last, name: name)
            // What stayed in an edit stays, even if a kill came before the graph took it over.
            let stays = outcome == .succeeded || run.graph < last
            plan.decisions[name] = stays ? .stays(graph: run.graph) : .runsAgain
            if stays { plan.done.insert(name) }
        }
        for run in plan.runs.values where run.graph == last {
            plan.done.formUnion(records[run]?.done ?? [])
        }
        return plan
    }

    /// The operation of this name in the newest graph that has one.
    private func known(_ name: String) -> Run? {
        let graphs = isStoredRun ? graphs[...] : graphs.suffix(1)
        return graphs.reversed().lazy.compactMap { $0.runs[name] }.first
    }

    private func decision(
        on operation: EditModel.Planned,
        _ run: Run?,
        _ plan: Plan,
        isAsked: Bool
    ) -> Decision {
        guard let run, let record = records[run] else { return .isNew }
        guard record.work == operation.work,
            Set(record.dependencies.keys) == operation.dependencies
        else { return .hasChanged }
        guard hasSucceeded(run), stay(operation.dependencies, plan, as: run) else {
            return .runsAgain
        }
        if isAsked { return .isAskedFor }
        if operation.kind == .adding {
            // The group waits for the elements, and finds them only if they are added to its graph.
            let group = Run(graph: run.graph, name: operation.operation.name)
            let found = elements(of: operation.operation, addedBy: run)
            let all = operation.operation.elements.map(operation.operation.element)
            guard hasSucceeded(group), found.isSuperset(of: all) else { return .runsAgain }
        }
        return .stays(graph: run.graph)
    }

    /// Whether all of these stay as what this operation ran after.
    private func stay(_ dependencies: Set<String>, _ plan: Plan, as run: Run) -> Bool {
        dependencies.allSatisfy { plan.runs[$0] == records[run]?.dependencies[$0] }
    }

    /// The elements that have succeeded, and need not run if this operation adds them again.
    private func elements(of operation: EditModel.Operation, addedBy run: Run) -> Set<String> {
        let names = operation.elements.map(operation.element)
        let found = names.filter { hasSucceeded(Run(graph: run.graph, name: $0)) }
        return (records[run]?.done ?? []).union(found)
    }

    // MARK: - What comes of it

    /// The plan has got a graph of its own.
    mutating func begin(_ plan: Plan, _ model: EditModel) {
        for operation in model.planned {
            guard let run = plan.runs[operation.name], run.graph == graphs.count else { continue }
            let dependencies = operation.dependencies.map { ($0, plan.runs[$0]) }
            let elements = Set(operation.operation.elements.map(operation.operation.element))
            records[run] = Record(
                work: operation.work,
                dependencies: Dictionary(uniqueKeysWithValues: dependencies)
                    .compactMapValues(\.self),
                done: operation.kind == .adding ? plan.done.intersection(elements) : []
            )
        }
        graphs.append((model.file, plan.runs))
    }

    func end(of plan: Plan, _ model: EditModel) -> End {
        var end = End()
        for operation in model.planned {
            if plan.stays(operation.name) || plan.done.contains(operation.name) {
                end.outcomes[operation.name] = .succeeded
                continue
            }
            guard operation.dependencies.allSatisfy({ end.outcomes[$0] == .succeeded }) else {
                end.outcomes[operation.name] = .skipped
                continue
            }
            switch operation.kind {
            case .command:
                end.begun.append(operation.name)
                end.outcomes[operation.name] = operation.operation.fails ? .failed : .succeeded
            case .list:
                end.begun.append(operation.name)
                end.outcomes[operation.name] = .succeeded
            case .adding: end.outcomes[operation.name] = .succeeded
            case .group:
                for element in operation.operation.elements {
                    let name = operation.operation.element(element)
                    let isDone = plan.done.contains(name)
                    let fails = !isDone && operation.operation.failing.contains(element)
                    if !isDone { end.begun.append(name) }
                    end.outcomes[name] = fails ? .failed : .succeeded
                    if fails { end.outcomes[operation.name] = .skipped }
                }
                if end.outcomes[operation.name] == nil {
                    end.outcomes[operation.name] = .succeeded
                }
            }
        }
        return end
    }

    /// All that an operation depends on, by the names of commands and elements.
    static func needs(of model: EditModel) -> [String: Set<String>] {
        var needs: [String: Set<String>] = [:]
        for operation in model.planned {
            var all = operation.dependencies
            for name in operation.dependencies { all.formUnion(needs[name] ?? []) }
            if operation.kind == .group {
                let elements = operation.operation.elements.map(operation.operation.element)
                for element in elements { needs[element] = all }
                all.formUnion(elements)
            }
            needs[operation.name] = all
        }
        return needs
    }

    /// Operations that have succeeded in the last graph: any but those that add others.
    var succeeded: [String] {
        let last = graphs.last?.runs ?? [:]
        return last.filter { hasSucceeded($0.value) && !$0.key.hasSuffix(".forEach") }.keys.sorted()
    }
}

/// A plan, as `--output json` prints it. Before anything has run, it has no decisions.
struct PrintedPlan: Decodable {
    private struct Operation: Decodable {
        let name: String
        let stays: OperationName?
        let reason: String?
    }

    private let operations: [Operation]
    private let removed: [String]?

    init(_ ended: Ended) throws {
        try #require(ended.end == .exit(0), "\(ended.errors)")
        self = try JSONDecoder().decode(Self.self, from: Data(ended.output.utf8))
    }

    private static func decision(_ operation: Operation) -> EditHistory.Decision {
        if let stays = operation.stays { return .stays(graph: Int(stays.graph)) }
        switch operation.reason {
        case nil, "added": return .isNew
        case "changed": return .hasChanged
        case "asked": return .isAskedFor
        default: return .runsAgain
        }
    }

    /// Expects that it is the plan of the model, operation by operation.
    func expect(_ plan: EditHistory.Plan, _ context: String) {
        let decisions = Dictionary(
            operations.map { ($0.name, Self.decision($0)) },
            uniquingKeysWith: { first, _ in first }
        )
        #expect(decisions.count == operations.count, "a name is there twice; \(context)")
        for name in Set(decisions.keys).union(plan.decisions.keys).sorted() {
            let (found, expected) = (decisions[name], plan.decisions[name])
            #expect(found == expected, "\(name) of \(context)")
        }
        #expect(Set(removed ?? []) == plan.removed, "\(context)")
    }
}
