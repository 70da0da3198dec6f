package import OperonCore
import OperonModel
package import OperonPorts
import OperonWire

extension CoordinatorService {
    /// Opens a store under a new epoch and rebuilds the state that a coordinator needs to continue.
    ///
    /// - Throws: `StoreError` for a store that cannot be used or has unreadable contents; then it
    ///   is not open.
    package static func restore(
        from store: any OperationStore,
        configuration: Scheduler.Configuration,
        triggers: TriggerSupport? = nil,
        time: TimeSource = .system,
        violation: ShellViolation? = nil
    ) async throws -> (scheduler: Scheduler, restored: Restored) {
        let state = try await store.open()
        do {
            let now = Moment(monotonic: time.now(), wall: time.wall())
            return try await rebuild(state, of: store, configuration, triggers, violation, at: now)
        } catch {
            await store.close()
            throw error
        }
    }

    private static func rebuild(
        _ state: StoredState,
        of store: any OperationStore,
        _ configuration: Scheduler.Configuration,
        _ triggers: TriggerSupport?,
        _ violation: ShellViolation?,
        at now: Moment
    ) async throws -> (scheduler: Scheduler, restored: Restored) {
        var graphs = StoredGraphs(limits: configuration.limits)
        var headers: [StoredOperations.Header] = []
        for graph in state.graphs { headers.append(try graphs.append(graph)) }
        var compiled: [CompiledGraph?] = []
        var additions: [[CompiledAddition]] = []
        for (place, graph) in state.graphs.enumerated() {
            let (one, more) = try graphs.compile(graph, headers[place])
            compiled.append(one)
            additions.append(more)
        }
        let scheduler: Scheduler
        do throws(RestoreError) {
            scheduler = try Scheduler(
                configuration: configuration,
                restoring: state,
                graphs: compiled,
                additions: additions,
                at: now
            )
        } catch {
            throw StoreError(.damaged, "The store does not fit together: \(error).")
        }
        let hasOutputs = violation != .forgetsStoredOutputs
        let catalog =
            hasOutputs
            ? try await load(state, of: store, into: graphs.catalog) : graphs.catalog
        let restored = Restored(
            store: store,
            lastEvent: state.lastEvent,
            catalog: catalog,
            workerNames: Dictionary(
                state.workers.map { ($0.incarnation, $0.name) },
                uniquingKeysWith: { $1 }
            ),
            triggers: try triggers?.restore(state.triggers) ?? TriggerShell(nil)
        )
        return (scheduler, restored)
    }

    /// Loads the outputs that unfinished operations may ask for.
    private static func load(
        _ state: StoredState,
        of store: any OperationStore,
        into catalog: GraphCatalog
    ) async throws -> GraphCatalog {
        var catalog = catalog
        for graph in state.graphs { catalog.began(graph.id) }
        for graph in state.graphs {
            for operation in graph.operations where operation.outcome != nil {
                let id = OperationID(graph: graph.id, index: operation.index)
                catalog.finished(id, at: operation.finishedAt)
            }
        }
        for graph in state.graphs {
            for operation in graph.operations
            where operation.hasOutput && catalog[graph.id].isWanted(operation.index) {
                let id = OperationID(graph: graph.id, index: operation.index)
                guard let output = try await store.output(of: id) else {
                    throw StoreError(
                        .damaged,
                        "The store says that operation \(id) left an output, and has none of it."
                    )
                }
                catalog[graph.id].keep(output, of: operation.index)
            }
        }
        return catalog
    }
}

/// The stored graphs, while they are compiled again.
private struct StoredGraphs {
    var catalog: GraphCatalog
    let limits: Limits

    init(limits: Limits) {
        self.limits = limits
        catalog = GraphCatalog(limits: limits, hasStore: true)
    }

    /// Adds a graph. For a dropped graph only its outcomes and its name are added.
    mutating func append(_ graph: StoredGraph) throws -> StoredOperations.Header {
        // Numbers of graphs that the store has deleted completely stay taken.
        while catalog.count < Int(graph.id.rawValue) {
            catalog.append(droppedNamed: "", OutcomeRuns())
        }
        guard let first = graph.contents.first, !graph.isTombstone else {
            catalog.append(droppedNamed: graph.name, graph.outcomes)
            return StoredOperations.Header()
        }
        var header = StoredOperations.Header()
        var operations = StoredOperations()
        var adopted: [(operations: Range<Int>, parent: UInt32)] = []
        for (place, part) in graph.contents.enumerated() {
            do throws(WireError) {
                let first = operations.count
                let found = try operations.append(part.body)
                if place == 0 { header = found }
                if let parent = found.parent {
                    adopted.append((first..<operations.count, parent))
                }
            } catch {
                throw StoreError(
                    .damaged,
                    "Graph \(graph.id) (“\(part.name)”) in the store cannot be read: \(error)."
                )
            }
        }
        var all = GraphContents(
            name: header.name,
            stored: operations,
            wanting: [],
            limits: limits
        )
        for (operations, parent) in adopted { all.adopt(operations, by: parent) }
        all.traceParent = first.traceParent
        let submission = GraphCatalog.Submission(
            submitter: first.submitter,
            submittedAt: graph.submittedAt,
            finishedAt: graph.finishedAt
        )
        catalog.append(first.name, all, submission)
        for (place, part) in graph.contents.enumerated() where !part.idempotencyKey.isEmpty {
            catalog.keepKey(of: part, ContentHash(of: part.body), isAddition: place > 0)
        }
        return header
    }

    /// Compiles a graph as at its submission; names of other graphs have been resolved to numbers.
    mutating func compile(
        _ graph: StoredGraph,
        _ header: StoredOperations.Header
    ) throws -> (CompiledGraph?, [CompiledAddition]) {
        guard let first = graph.contents.first else { return (nil, []) }
        do {
            var assembly = GraphAssembly(
                name: header.name,
                queues: header.queues,
                keys: header.keys,
                order: header.order,
                operationCount: first.operationCount
            )
            // Swapped out, so that it is changed in place instead of copied.
            var own = GraphContents(GraphDescription(name: ""), limits: limits)
            swap(&own, &catalog[graph.id])
            try own.assemble(&assembly, first.operationCount)
            var compiled = try assembly.finish()
            compiled.failFast = header.failFast
            own.countConsumers(from: first.operationCount)
            swap(&own, &catalog[graph.id])
            return (compiled, try additions(to: graph, compiled))
        } catch {
            throw StoreError(
                .damaged,
                "Graph \(graph.id) (“\(first.name)”) in the store makes no sense: \(error)."
            )
        }
    }

    private mutating func additions(
        to graph: StoredGraph,
        _ compiled: CompiledGraph
    ) throws -> [CompiledAddition] {
        var base = CompiledAddition.Base(
            graph: graph.id,
            operationCount: compiled.topology.operationCount,
            edgeCount: compiled.topology.edgeCount + compiled.outer.count
        )
        var additions: [CompiledAddition] = []
        for part in graph.contents.dropFirst() {
            let description = try StoreFormat.decodeGraph(part.body).graph
            let count = base.operationCount
            var addition = try CompiledAddition.recompile(description, to: base, limits: limits) {
                name in
                let index = catalog[graph.id].number(of: name)
                guard let index, index < count else { return nil }
                return OperationID(graph: graph.id, index: index)
            }
            addition.group = catalog[graph.id].group(ofElements: UInt32(count))
            additions.append(addition)
            base.operationCount += part.operationCount
            base.edgeCount += addition.graph.topology.edgeCount + addition.graph.outer.count
            if addition.group != nil { base.edgeCount += part.operationCount }
        }
        return additions
    }
}
