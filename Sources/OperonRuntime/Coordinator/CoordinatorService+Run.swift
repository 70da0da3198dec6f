package import OperonCore
package import OperonModel
package import OperonPorts
import OperonWire

/// What a run does with its store: a new graph, one to resume, or one that continues another after
/// an edit.
package struct RunPlan: Sendable {
    /// The graph that the store has, or will have.
    package let graph: GraphID
    /// `nil`: the graph of the store goes on, or there is none.
    package let continuation: Continuation?
    /// Whether the file has changed since.
    package let isEdited: Bool
    package let isNew: Bool
    fileprivate let description: GraphDescription
    fileprivate let compiled: CompiledGraph
    fileprivate let key: String
}

/// The state in which a run finds its operations.
package struct RestoredRun: Sendable {
    /// Everything that has been decided, also what this run has decided already.
    package let now: [OperationProgress]
    /// The states that the run resumes from. Notices report what this run itself has decided.
    package let before: [OperationProgress]
    /// Whether the run was cancelled before. Notices may then have told of operations that were
    /// cancelled and skipped, and that run again.
    package let wasCancelled: Bool
}

// The graphs of a run whose state is kept on a disk: one, and one more for each edit of its file.
extension CoordinatorService {
    /// The idempotency key of a run's first graph: submitting it again finds the existing one.
    static let runKey = "run"

    /// The key of the graph that continues another one with an edited file.
    static func runKey(after graph: GraphID, _ source: ContentHash) -> String {
        let digits = source.bytes.map { byte in
            let text = String(byte, radix: 16)
            return text.count < 2 ? "0" + text : text
        }
        return "\(runKey) \(graph.rawValue) \(digits.joined())"
    }

    /// Cancels the graphs that a run replaces, and notes what has to run again of the one that goes
    /// on, before any worker can take something of them: what fails from then on fails in this run.
    package func prepareRun(of graph: GraphID) throws(ClientError) {
        for other in catalog.keptGraphs.prefix(while: { $0 < graph }) { try cancelReplaced(other) }
        guard graph < catalog.next, !scheduler.isCancelled(graph) else { return }
        keeping?.progress = scheduler.progress(of: graph)
    }

    /// Cancels a run. If it still waits for the end of what was cancelled before it went on, it
    /// runs nothing again.
    package func cancelRun(_ graph: GraphID, reason: String) throws(Refusal) {
        keeping?.isRunCancelled = true
        try command(.cancelRequested(.graph(graph), reason: reason, cascade: false))
    }

    /// Decides what to do with the store's graphs. Those that the file has replaced are cancelled
    /// first, and their operations that still run are awaited.
    ///
    /// - Parameter again: The names of operations that run even if they succeeded.
    package func planRun(
        _ graph: GraphDescription,
        compiled: CompiledGraph,
        again: Set<String>
    ) async throws(ClientError) -> RunPlan {
        let source = ContentHash(of: try StoredContents(graph, failFast: compiled.failFast).body)
        guard let newest = catalog.keptGraphs.last else {
            return RunPlan(
                graph: catalog.next,
                continuation: nil,
                isEdited: false,
                isNew: true,
                description: graph,
                compiled: compiled,
                key: Self.runKey
            )
        }
        // Of an edit that was interrupted.
        for other in catalog.keptGraphs.dropLast() { try await replace(other) }
        let isEdited = !catalog.isRun(newest, of: source)
        let isContinued =
            isEdited || !again.isEmpty || catalog.hasStale(newest, in: graph, scheduler)
        guard isContinued else {
            return RunPlan(
                graph: newest,
                continuation: nil,
                isEdited: false,
                isNew: false,
                description: graph,
                compiled: compiled,
                key: ""
            )
        }
        try await replace(newest)
        let continuation = catalog.continuation(
            of: catalog.keptGraphs.reversed(),
            in: graph,
            again: again,
            scheduler
        )
        let edited = continuation.graph(from: graph)
        var compiledAgain: CompiledGraph
        do throws(Refusal) {
            compiledAgain = try CompiledGraph.compile(edited, limits: limits)
        } catch {
            throw ClientError(error)
        }
        compiledAgain.failFast = compiled.failFast
        return RunPlan(
            graph: catalog.next,
            continuation: continuation,
            isEdited: isEdited,
            isNew: true,
            description: edited,
            compiled: compiledAgain,
            key: Self.runKey(after: newest, source)
        )
    }

    private func cancelReplaced(_ graph: GraphID) throws(ClientError) {
        guard !scheduler.isFinished(graph), !scheduler.isCancelled(graph) else { return }
        do throws(Refusal) {
            try command(
                .cancelRequested(.graph(graph), reason: "the graph was edited", cascade: false)
            )
        } catch {
            throw ClientError(error)
        }
    }

    /// Cancels what an edited graph replaces, and waits for its end.
    private func replace(_ graph: GraphID) async throws(ClientError) {
        guard !scheduler.isFinished(graph) else { return }
        try cancelReplaced(graph)
        await waitUntilFinished(graph)
        if Task.isCancelled { throw ClientError(.unavailable, "Interrupted.") }
    }

    /// Submits the graph of a run, or resumes the one that the store has: operations that failed or
    /// were cancelled before `prepareRun`, and those that were skipped because of them, run again.
    /// Cancelled operations that still run are awaited first.
    ///
    /// - Parameter restored: Called once, on the service's executor, with the states of the
    ///   operations; empty if nothing has run. If the graph is resumed, all notices of what was
    ///   cancelled before have been given.
    package func takeUp(
        _ plan: RunPlan,
        traceParent: String,
        restored: @Sendable (RestoredRun) -> Void
    ) async throws(ClientError) {
        guard plan.isNew else {
            if scheduler.isCancelled(plan.graph) { await waitUntilFinished(plan.graph) }
            if Task.isCancelled { throw ClientError(.unavailable, "Interrupted.") }
            // Notices of what is decided follow once it is stored.
            try await durable()
            let before = keeping?.progress
            keeping?.progress = nil
            let reopened = try await tryAgain(plan.graph, before)
            let now = scheduler.progress(of: plan.graph)
            let states = before.map { states in
                states.enumerated().map { index, state in
                    let operation = OperationID(graph: plan.graph, index: UInt32(index))
                    return reopened.contains(operation) ? Self.pending : state
                }
            }
            restored(
                RestoredRun(now: now, before: states ?? now, wasCancelled: before == nil)
            )
            return try await durable()
        }
        keeping?.progress = nil
        var contents = try StoredContents(plan.description, failFast: plan.compiled.failFast)
        contents.idempotencyKey = plan.key
        contents.traceParent = traceParent
        contents.needs = plan.compiled.graphsNeeded(by: nil)
        let id = try await submitOnce(plan.description, plan.compiled, contents)
        precondition(id == plan.graph, "nobody else submits graphs to a run")
        try await durable()
        let decisions = plan.continuation?.decisions ?? []
        let operations = decisions.map { decision in
            guard case .stays = decision else { return Self.pending }
            return OperationProgress(state: .finished, outcome: .succeeded, isUpToDate: false)
        }
        restored(RestoredRun(now: operations, before: operations, wasCancelled: false))
    }

    private static let pending = OperationProgress(
        state: .pending,
        outcome: nil,
        isUpToDate: false
    )

    /// Runs again what had not succeeded when the run went on.
    ///
    /// - Parameter before: The states at that time. `nil`: the run was cancelled before, and what
    ///   has not succeeded until now runs again.
    /// - Returns: What runs again, in any graph; nothing if the run was cancelled since, by a
    ///   signal for instance.
    private func tryAgain(
        _ graph: GraphID,
        _ before: [OperationProgress]?
    ) async throws(ClientError) -> Set<OperationID> {
        let isCancelled = before != nil && scheduler.isCancelled(graph)
        guard keeping?.isRunCancelled != true, !isCancelled else { return [] }
        var chosen: [UInt32] = []
        for (index, state) in (before ?? []).enumerated() {
            switch state.outcome {
            case .failed, .cancelled: chosen.append(UInt32(index))
            case .succeeded, .skipped, nil: continue
            }
        }
        guard before == nil || !chosen.isEmpty else { return [] }
        var again = RetryRequest()
        again.cancelled = true
        again.operations = chosen.map { "@\($0)" }
        let members: [OperationID]
        do throws(NumberedRefusal) {
            members = try scheduler.members(ofRetry: chosen, of: graph, cancelled: true)
        } catch {
            throw ClientError(worded(error))
        }
        do throws(ClientError) {
            _ = try await retry(graph, again, by: "")
        } catch {
            // A signal arrived while the outputs of earlier operations were read from the disk.
            if error.code == .conflict, keeping?.isRunCancelled == true { return [] }
            throw error
        }
        return Set(members)
    }
}

extension GraphCatalog {
    /// What becomes of the operations of some graphs, of which each continues the next, when an
    /// edited form of the first is submitted.
    mutating func continuation(
        of graphs: some Collection<GraphID>,
        in edited: GraphDescription,
        again: Set<String> = [],
        _ scheduler: Scheduler
    ) -> Continuation {
        guard let first = graphs.first else { return Continuation(of: [], in: edited) }
        let previous = self.previous(of: first, scheduler)
        var known = Set(previous.map(\.description.name))
        var older: [Continuation.Previous] = []
        for graph in graphs.dropFirst() {
            for operation in self.previous(of: graph, scheduler)
            where known.insert(operation.description.name).inserted {
                older.append(operation)
            }
        }
        return Continuation(of: previous, older: older, in: edited, again: again)
    }

    /// Whether a new graph continues this one, because an operation would be stale if it went on.
    mutating func hasStale(
        _ graph: GraphID,
        in description: GraphDescription,
        _ scheduler: Scheduler
    ) -> Bool {
        // A large graph is compared only if the answer may be yes.
        guard Continuation.mayHaveStale(description),
            scheduler.stateCounts(of: graph).succeeded > 0
        else { return false }
        return continuation(of: CollectionOfOne(graph), in: description, scheduler)
            .hasStale(description)
    }

    /// The operations that were submitted with a graph, or that a client added to it, with the
    /// dependencies that they have now.
    mutating func previous(
        of graph: GraphID,
        _ scheduler: Scheduler
    ) -> [Continuation.Previous] {
        let contents = self[graph]
        var inVain: Set<UInt32> = []
        var additions: [UInt32: Int] = [:]
        var previous: [Continuation.Previous] = []
        for index in (0..<UInt32(contents.operations.count)).reversed() {
            let id = OperationID(graph: graph, index: index)
            let outcome = scheduler.outcomeKind(of: id)
            // What an operation adds has a higher number than the operation. A group that waits for
            // it runs with the same elements, so they are added again.
            var hasAddedInVain = inVain.contains(index)
            if let group = contents.group(waitingFor: index) {
                let end = scheduler.outcomeKind(of: OperationID(graph: graph, index: group))
                if end != .succeeded { hasAddedInVain = true }
            }
            if let parent = contents.parent(of: index) {
                if outcome != .succeeded || hasAddedInVain { inVain.insert(parent) }
                additions[parent, default: 0] += 1 + additions[index, default: 0]
                continue
            }
            if let original = original(of: id, scheduler) {
                previous.append(
                    Continuation.Previous(
                        id: original,
                        description: described(original, scheduler),
                        outcome: scheduler.outcomeKind(of: original)
                    )
                )
                continue
            }
            previous.append(
                Continuation.Previous(
                    id: id,
                    description: described(id, scheduler),
                    outcome: outcome,
                    hasAddedInVain: hasAddedInVain,
                    additions: additions[index, default: 0]
                )
            )
        }
        return previous.reversed()
    }

    /// The operation of an earlier graph for which one stands that stayed in an edit.
    private func original(of id: OperationID, _ scheduler: Scheduler) -> OperationID? {
        let description = self[description: id]
        guard let original = Continuation.original(of: description), contains(original.graph),
            scheduler.isKept(original)
        else { return nil }
        return original
    }

    /// An operation as it was submitted, with the dependencies that it has now.
    private mutating func described(
        _ id: OperationID,
        _ scheduler: Scheduler
    ) -> OperationDescription {
        var description = self[description: id]
        let current = scheduler.dependencies(of: id)
        var conditions: [OperationID: DependencyCondition] = [:]
        for dependency in current { conditions[dependency.operation] = dependency.condition }
        var dependencies = DescribedDependencies()
        for var dependency in description.dependencies {
            let own = self[id.graph].number(of: dependency.name)
                .map { OperationID(graph: id.graph, index: $0) }
            // In a graph that continues another one, it waits for the operation of this graph, and
            // takes the output of the other.
            guard
                let operation = [own, dependency.resolvedID].compactMap(\.self)
                    .first(where: { conditions[$0] != nil }),
                let condition = conditions.removeValue(forKey: operation)
            else { continue }
            let isOwn = operation.graph == id.graph
            if isOwn, self[operation.graph].group(ofElements: operation.index) != nil {
                let element = Dependency(operation: operation, condition: condition)
                dependency = described(element, of: id, scheduler)
            } else {
                dependency.condition = condition
            }
            dependencies.append(dependency)
        }
        for dependency in current where conditions[dependency.operation] != nil {
            dependencies.append(described(dependency, of: id, scheduler))
        }
        description.dependencies = dependencies.all
        return description
    }

    /// A dependency that was added after the submission, or that is on an element of an output.
    private func described(
        _ dependency: Dependency,
        of id: OperationID,
        _ scheduler: Scheduler
    ) -> DependencyDescription {
        var other = dependency.operation
        guard other.graph == id.graph else {
            let name = "\(other.graph)/\(name(of: other).name)"
            var added = DependencyDescription(name, dependency.condition)
            added.resolvedID = other
            return added
        }
        // What a running operation added is added again: by it, or as an element of its group,
        // whose dependents can take its output.
        var takesElements = false
        while let parent = self[other.graph].parent(of: other.index) {
            let group = self[other.graph].group(ofElementsAddedBy: parent)
            // The group itself depends on its elements.
            let place = group.flatMap { $0 == id.index ? nil : $0 } ?? parent
            takesElements = place != parent
            other = OperationID(graph: other.graph, index: place)
        }
        var added = DependencyDescription(name(of: other).name, dependency.condition)
        added.takesElements = takesElements
        added.resolvedID = original(of: other, scheduler)
        return added
    }

    /// An operation that stayed in an edit, of which nothing is known any more: the graph in which
    /// it ran was dropped.
    func withoutOriginal(in graph: GraphID, _ scheduler: Scheduler) -> (name: String, of: GraphID)?
    {
        let operations = self[graph].operations
        for index in 0..<operations.count {
            let operation = operations[index]
            guard let original = Continuation.original(of: operation),
                !contains(original.graph) || !scheduler.isKept(original)
            else { continue }
            return (operation.name, original.graph)
        }
        return nil
    }

    /// Whether a graph is that of a run with this source.
    func isRun(_ graph: GraphID, of source: ContentHash) -> Bool {
        if let first = use(of: CoordinatorService.runKey, by: ""), first.graph == graph {
            return first.hash == source
        }
        // The graph that it continues: the one before it that is kept, or was then.
        return (0..<graph.rawValue).reversed().contains { before in
            let key = CoordinatorService.runKey(after: GraphID(rawValue: before), source)
            return use(of: key, by: "")?.graph == graph
        }
    }
}

/// The dependencies of one operation, each name once: several elements have the same group.
private struct DescribedDependencies {
    private(set) var all: [DependencyDescription] = []
    private var places: [String: Int] = [:]

    mutating func append(_ dependency: DependencyDescription) {
        guard let place = places[dependency.name] else {
            places[dependency.name] = all.count
            all.append(dependency)
            return
        }
        if dependency.takesElements { all[place].takesElements = true }
        // One that waits for a success, and one that waits for any end: both wait for a success.
        if dependency.condition != .finished { all[place].condition = dependency.condition }
    }
}

extension CoordinatorService.Restored {
    /// Whether all graphs are those of a run, and none is of a coordinator.
    package var isRun: Bool {
        catalog.keptGraphs.count
            == catalog.useCount { (key: Substring) in
                let run = CoordinatorService.runKey
                return key == run || key.hasPrefix(run + " ")
            }
    }

    /// The graph that a run with this source has, or will have.
    ///
    /// - Parameter again: The names of operations that run even if they succeeded.
    /// - Returns: Also whether the store has it.
    package func runGraph(
        _ graph: GraphDescription,
        failFast: Bool,
        again: Set<String>,
        _ scheduler: Scheduler
    ) throws(ClientError) -> (id: GraphID, isThere: Bool) {
        guard let newest = catalog.keptGraphs.last else { return (catalog.next, false) }
        let source = ContentHash(of: try StoredContents(graph, failFast: failFast).body)
        // Looking names up makes tables.
        var catalog = catalog
        let goesOn =
            again.isEmpty && catalog.isRun(newest, of: source)
            && !catalog.hasStale(newest, in: graph, scheduler)
        return goesOn ? (newest, true) : (catalog.next, false)
    }

    /// What a run of this graph would do; `nil`: nothing has run yet.
    ///
    /// - Parameter again: The names of operations that run even if they succeeded.
    package func continuation(
        of graph: GraphDescription,
        failFast: Bool,
        again: Set<String>,
        _ scheduler: Scheduler
    ) throws(ClientError) -> Continuation? {
        let graphs = catalog.keptGraphs.reversed()
        guard !graphs.isEmpty else { return nil }
        let (id, isThere) = try runGraph(graph, failFast: failFast, again: again, scheduler)
        if isThere {
            let own = operations(of: id, from: 0).prefix(graph.operations.count)
            return Continuation(resuming: id, Array(own), scheduler)
        }
        // Looking names up makes tables.
        var catalog = catalog
        return catalog.continuation(of: Array(graphs), in: graph, again: again, scheduler)
    }

    /// The decisions of `continuation`, as people see them. If the stored graph continues, they
    /// include the operations that were added while it ran.
    package func forecast(
        of graph: GraphDescription,
        failFast: Bool,
        again: Set<String>,
        _ scheduler: Scheduler
    ) throws(ClientError) -> ContinuationView? {
        let (id, isThere) = try runGraph(graph, failFast: failFast, again: again, scheduler)
        guard isThere else {
            return try continuation(of: graph, failFast: failFast, again: again, scheduler)?
                .view(of: graph)
        }
        var whole = graph
        whole.operations = operations(of: id, from: 0)
        return Continuation(resuming: id, whole.operations, scheduler).view(of: whole)
    }
}

extension StoredContents {
    /// The stored form of a graph, from which it can be compiled again. It has no submitter and no
    /// key yet.
    ///
    /// - Throws: `ClientError.tooLarge`.
    init(_ graph: GraphDescription, failFast: Bool) throws(ClientError) {
        let body: [UInt8]
        do throws(WireError) {
            body = try StoreFormat.encode(graph, failFast: failFast)
        } catch {
            throw ClientError(.tooLarge, error.message)
        }
        self.init(
            graph: GraphID(rawValue: 0),
            name: graph.name,
            operationCount: graph.operations.count,
            body: body
        )
    }
}
