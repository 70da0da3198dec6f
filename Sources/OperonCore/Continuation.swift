package import OperonModel

/// What becomes of the operations of a graph when an edited form of it is submitted: what succeeded
/// and is the same stays, everything else runs.
///
/// An operation is the same if it does the same work on the same dependencies, and all of those
/// stay. Everything else of its description, such as its priority, its timeout or its queue,
/// concerns only how it would run, so a change of it is no reason to run it again.
package struct Continuation: Hashable, Sendable {
    /// An operation of the graph that is edited.
    package struct Previous: Hashable, Sendable {
        /// The operation that ran. If it stayed in earlier edits, it is of an earlier graph.
        package let id: OperationID
        package let description: OperationDescription
        /// `nil`: it has not finished.
        package let outcome: OutcomeKind?
        /// Whether something that it added to its graph while it ran has not succeeded.
        package let hasAddedInVain: Bool
        /// How many operations it added to its graph while it ran, with those that these added.
        package let additions: Int

        package init(
            id: OperationID,
            description: OperationDescription,
            outcome: OutcomeKind?,
            hasAddedInVain: Bool = false,
            additions: Int = 0
        ) {
            self.id = id
            self.description = description
            self.outcome = outcome
            self.hasAddedInVain = hasAddedInVain
            self.additions = additions
        }
    }

    /// Why an operation runs.
    package enum Reason: Hashable, Sendable {
        /// The edited graph did not have it.
        case added
        /// It does other work, or depends on others.
        case changed
        /// It ended otherwise, or not at all (`nil`).
        case ended(OutcomeKind?)
        /// Something that it added to its graph while it ran did not succeed.
        case additions
        /// Somebody asked for it.
        case asked
        /// A dependency of this name runs.
        case dependency(String)
    }

    package enum Decision: Hashable, Sendable {
        /// It succeeded as this operation, whose output counts.
        case stays(OperationID)
        case runs(Reason)
    }

    /// One for each operation of the new graph, in its order.
    package let decisions: [Decision]
    /// The names that the new graph does not have any more, in the order of the old one.
    package let removed: [String]
    /// The operations that add again what they added before, of which some need not run. They
    /// repeat an operation for an output: what a command adds may depend on what it has done now.
    private let adding: [String: OperationID]
    /// How many operations were added before by those that run and take over none of them.
    private let dropped: [String: Int]

    /// - Parameters:
    ///   - previous: The operations of the graph that is edited.
    ///   - older: Operations that earlier edits have removed, the newest of each name.
    ///   - graph: The new graph, which compiles: names are unique, and there are no cycles.
    ///   - again: The names of operations that run even if they succeeded and are the same. The
    ///     name of a repeated operation stands for all its elements.
    package init(
        of previous: [Previous],
        older: [Previous] = [],
        in graph: GraphDescription,
        again: Set<String> = []
    ) {
        var places: [String: Int] = [:]
        places.reserveCapacity(graph.operations.count)
        for (place, operation) in graph.operations.enumerated() { places[operation.name] = place }
        let asked = Self.elements(of: again, in: graph)
        var known: [String: Previous] = [:]
        for operation in older + previous { known[operation.description.name] = operation }
        var decisions = [Decision?](repeating: nil, count: graph.operations.count)
        // The operations whose end is the same as before: those that stay, and those that will be
        // skipped again.
        var settled = [OperationID?](repeating: nil, count: graph.operations.count)
        // Dependencies first, without recursion: a chain may be as long as the graph.
        var stack: [Int] = []
        for first in graph.operations.indices where decisions[first] == nil {
            stack.append(first)
            while let place = stack.last {
                guard decisions[place] == nil else {
                    stack.removeLast()
                    continue
                }
                let operation = graph.operations[place]
                let open = operation.dependencies.compactMap { places[$0.name] }
                    .filter { decisions[$0] == nil && $0 != place }
                guard open.isEmpty else {
                    stack += open
                    continue
                }
                stack.removeLast()
                let previous = known[operation.name]
                let other = operation.dependencies.first { dependency in
                    guard let place = places[dependency.name] else { return false }
                    return !Self.ran(previous, after: dependency.name, settled[place])
                }
                var decision = Self.decision(
                    on: operation,
                    previous: previous,
                    runs: other?.name
                ) { places[$0] != nil }
                switch decision {
                case .stays, .runs(.additions):
                    if asked.contains(operation.name) { decision = .runs(.asked) }
                case .runs: break
                }
                decisions[place] = decision
                switch decision {
                case .stays(let id): settled[place] = id
                // The outcomes that made it be skipped are the same.
                case .runs(.ended(.skipped?)) where other == nil: settled[place] = previous?.id
                case .runs: break
                }
            }
        }
        self.decisions = decisions.map { $0 ?? .runs(.added) }
        (adding, dropped) = Self.additions(of: known, graph, self.decisions)
        removed = previous.map(\.description.name).filter { places[$0] == nil }
    }

    /// What a run of a graph does that goes on with the same file.
    ///
    /// - Parameter operations: The first operations of the graph, as they were submitted.
    package init(
        resuming graph: GraphID,
        _ operations: [OperationDescription],
        _ scheduler: Scheduler
    ) {
        let runs = scheduler.resumed(in: graph)
        decisions = operations.enumerated().map { index, operation in
            // It stays even if the last run ended before it had come to it.
            if let original = Self.original(of: operation) { return .stays(original) }
            let id = OperationID(graph: graph, index: UInt32(index))
            return runs.contains(id) ? .runs(.ended(scheduler.outcomeKind(of: id))) : .stays(id)
        }
        removed = []
        adding = [:]
        dropped = [:]
    }

    private static func additions(
        of known: [String: Previous],
        _ graph: GraphDescription,
        _ decisions: [Decision]
    ) -> (adding: [String: OperationID], dropped: [String: Int]) {
        var adding: [String: OperationID] = [:]
        var dropped: [String: Int] = [:]
        for (operation, decision) in zip(graph.operations, decisions) {
            guard case .runs(let reason) = decision, let previous = known[operation.name] else {
                continue
            }
            if reason == .additions, operation.work.kind == Work.forEachKind {
                adding[operation.name] = previous.id
            } else if previous.additions > 0 {
                dropped[operation.name] = previous.additions
            }
        }
        return (adding, dropped)
    }

    /// These names, and those of the elements that a group among them depends on.
    private static func elements(of names: Set<String>, in graph: GraphDescription) -> Set<String> {
        guard !names.isEmpty else { return names }
        var all = names
        for operation in graph.operations
        where operation.work == .nothing && names.contains(operation.name) {
            for dependency in operation.dependencies
            where RepeatedNames.isPart(dependency.name, of: operation.name) {
                all.insert(dependency.name)
            }
        }
        return all
    }

    /// Whether an operation ran after the dependency whose end is the same, and not after an
    /// earlier or later one of its name.
    private static func ran(
        _ previous: Previous?,
        after name: String,
        _ settled: OperationID?
    ) -> Bool {
        guard let previous, let id = settled else { return false }
        let dependency = previous.description.dependencies.first { $0.name == name }
        guard let resolved = dependency?.resolvedID else { return id.graph == previous.id.graph }
        return resolved == id
    }

    private static func decision(
        on operation: OperationDescription,
        previous: Previous?,
        runs: String?,
        isOwn: (String) -> Bool
    ) -> Decision {
        guard let previous else { return .runs(.added) }
        let (old, new) = (previous.description, operation)
        guard work(of: old) == work(of: new),
            dependencies(of: old, isOwn: isOwn) == dependencies(of: new, isOwn: isOwn)
        else { return .runs(.changed) }
        guard previous.outcome == .succeeded else { return .runs(.ended(previous.outcome)) }
        if let runs { return .runs(.dependency(runs)) }
        if previous.hasAddedInVain { return .runs(.additions) }
        return .stays(previous.id)
    }

    /// Whether an operation that was added while an earlier form of its graph ran need not run
    /// again: it succeeded, and is the same. Whatever added both has run on the same dependencies
    /// both times.
    package static func carries(_ previous: Previous, to added: OperationDescription) -> Bool {
        previous.outcome == .succeeded && !previous.hasAddedInVain
            && work(of: previous.description) == work(of: added)
            && dependencies(of: previous.description) { _ in false }
                == dependencies(of: added) { _ in false }
    }

    /// What it does, without the limits of its process.
    private static func work(of operation: OperationDescription) -> Work {
        guard case .command(var command) = operation.work else { return operation.work }
        command.grace = CommandDescription.defaultGrace
        command.memory = nil
        command.cpuTime = nil
        return .command(command)
    }

    private struct Dependency: Hashable {
        let name: String
        let condition: DependencyCondition
        let takesElements: Bool
        /// The operation of another graph.
        let other: OperationID?
    }

    private static func dependencies(
        of operation: OperationDescription,
        isOwn: (String) -> Bool
    ) -> Set<Dependency> {
        Set(
            operation.dependencies.compactMap { dependency in
                guard !isEarlierSelf(dependency, of: operation) else { return nil }
                return Dependency(
                    name: dependency.name,
                    condition: dependency.condition,
                    takesElements: dependency.takesElements,
                    // After an edit, an operation that stayed is one of another graph.
                    other: isOwn(dependency.name) ? nil : dependency.resolvedID
                )
            }
        )
    }

    /// Whether an operation has succeeded after something that runs again. To go on with the same
    /// graph would leave such an operation with what it made of the earlier end. A failure handler
    /// has done its work and is not stale.
    ///
    /// - Parameter graph: The graph that was compared.
    package func hasStale(_ graph: GraphDescription) -> Bool {
        zip(graph.operations, decisions).contains { operation, decision in
            guard case .runs(.dependency(let name)) = decision else { return false }
            return operation.dependencies.contains { $0.name == name && $0.condition != .failed }
        }
    }

    /// Whether the conditions of a graph let an operation succeed after one that did not.
    package static func mayHaveStale(_ graph: GraphDescription) -> Bool {
        graph.operations.contains { operation in
            operation.dependencies.contains {
                $0.condition != .succeeded && $0.condition != .failed
            }
        }
    }

    /// How many operations stay.
    package var staying: Int { stayingIndices.count }

    /// The operations that stay, by their place in the new graph.
    package var stayingIndices: Set<UInt32> {
        Set(
            decisions.enumerated().lazy
                .filter { if case .stays = $0.element { true } else { false } }
                .map { UInt32($0.offset) }
        )
    }

    /// The decisions, for people.
    package func view(of graph: GraphDescription) -> ContinuationView {
        let operations = zip(graph.operations, decisions).map { operation, decision in
            var view = ContinuedOperationView(name: operation.name)
            switch decision {
            case .stays(let id):
                view.stays = OperationName(
                    graph: id.graph.rawValue,
                    index: id.index,
                    name: operation.name
                )
            case .runs(let reason):
                view.reason = reason.name
                if case .dependency(let name) = reason { view.dependency = name }
                view.additions = dropped[operation.name]
            }
            return view
        }
        return ContinuationView(operations: operations, removed: removed)
    }

    /// The graph that does what was decided. An operation that stays does nothing, and depends on
    /// the operation as which it succeeded; its dependents depend on that one, too, whose output
    /// they get.
    package func graph(from graph: GraphDescription) -> GraphDescription {
        var result = graph
        var stayed: [String: OperationID] = [:]
        for (place, decision) in decisions.enumerated() {
            guard case .stays(let id) = decision else { continue }
            let operation = graph.operations[place]
            stayed[operation.name] = id
            result.operations[place] = Self.standIn(for: operation, id)
        }
        for place in result.operations.indices {
            guard case .runs(let reason) = decisions[place] else { continue }
            let operation = graph.operations[place]
            result.operations[place].dependencies.removeAll {
                Self.isEarlierSelf($0, of: operation)
            }
            if reason == .additions, let id = adding[operation.name] {
                let earlier = Self.standIn(for: operation, id).dependencies
                result.operations[place].dependencies += earlier
            }
            for index in result.operations[place].dependencies.indices {
                let name = result.operations[place].dependencies[index].name
                guard let id = stayed[name] else { continue }
                result.operations[place].dependencies[index].resolvedID = id
            }
        }
        return result
    }

    private static func standIn(
        for operation: OperationDescription,
        _ id: OperationID
    ) -> OperationDescription {
        var standIn = OperationDescription(name: operation.name, work: .nothing)
        standIn.summary = operation.summary
        var dependency = DependencyDescription(standInName(of: operation.name, id), .succeeded)
        dependency.resolvedID = id
        standIn.dependencies = [dependency]
        return standIn
    }

    /// Whether a dependency is the one on the earlier form of an operation that adds elements
    /// again.
    private static func isEarlierSelf(
        _ dependency: DependencyDescription,
        of operation: OperationDescription
    ) -> Bool {
        guard operation.work.kind == Work.forEachKind, dependency.condition == .succeeded,
            let id = dependency.resolvedID
        else { return false }
        return dependency.name == standInName(of: operation.name, id)
    }

    /// The operation that has added before what this one adds; `nil`: there is none, or all that it
    /// adds runs.
    package static func earlierAdding(of operation: OperationDescription) -> OperationID? {
        operation.dependencies.first { isEarlierSelf($0, of: operation) }?.resolvedID
    }

    /// How a stand-in names the operation that it stands for.
    private static func standInName(of name: String, _ id: OperationID) -> String {
        "\(id.graph.rawValue)/\(name)"
    }

    /// The operation that an operation of a graph stands for; `nil`: it stands for none.
    package static func original(of operation: OperationDescription) -> OperationID? {
        guard operation.work == .nothing, operation.dependencies.count == 1,
            let id = operation.dependencies[0].resolvedID,
            operation.dependencies[0].condition == .succeeded,
            operation.dependencies[0].name == standInName(of: operation.name, id)
        else { return nil }
        return id
    }
}

extension Continuation.Reason {
    fileprivate var name: String {
        switch self {
        case .added: "added"
        case .changed: "changed"
        case .ended(let outcome): outcome?.name ?? "unfinished"
        case .additions: "additions"
        case .asked: "asked"
        case .dependency: "dependency"
        }
    }
}
