package import OperonCore
import OperonModel
package import OperonPorts
import OperonWire

extension CoordinatorService {
    /// Opens a store under a new epoch and rebuilds from it what a coordinator needs to go on.
    ///
    /// - Throws: `StoreError` for a store that cannot be used or holds what cannot be read.
    package static func restore(
        from store: any OperationStore,
        configuration: Scheduler.Configuration
    ) async throws -> (scheduler: Scheduler, restored: Restored) {
        let state = try await store.open()
        var contents: [GraphContents] = []
        var compiled: [CompiledGraph?] = []
        var register = GraphRegister()
        let limits = configuration.limits
        for graph in state.graphs {
            // The numbers of graphs that are gone for good stay taken.
            while contents.count < Int(graph.id.rawValue) {
                contents.append(GraphContents(GraphDescription(name: ""), limits: limits))
                register.append(.gone(name: ""))
            }
            let (description, one) = try compile(graph, limits: limits)
            compiled.append(one)
            contents.append(GraphContents(description, limits: limits))
            register.append(graph, keyedBy: graph.contents.first)
        }
        let now = Moment(monotonic: SystemClock.now(), wall: SystemClock.wall())
        let scheduler: Scheduler
        do throws(RestoreError) {
            scheduler = try Scheduler(
                configuration: configuration,
                restoring: state,
                graphs: compiled,
                at: now
            )
        } catch {
            throw StoreError(.damaged, "The store does not fit together: \(error).")
        }
        for graph in state.graphs {
            try await load(graph, of: store, into: &contents[Int(graph.id.rawValue)])
        }
        let restored = Restored(
            store: store,
            lastEvent: state.lastEvent,
            contents: contents,
            register: register
        )
        return (scheduler, restored)
    }

    /// Of a tombstone nothing is left to be compiled.
    private static func compile(
        _ graph: StoredGraph,
        limits: Limits
    ) throws -> (GraphDescription, CompiledGraph?) {
        guard let first = graph.contents.first else {
            return (GraphDescription(name: ""), nil)
        }
        do {
            let (description, failFast) = try StoreFormat.decodeGraph(first.body)
            var compiled = try CompiledGraph.compile(description, limits: limits)
            compiled.failFast = failFast
            return (description, compiled)
        } catch {
            throw StoreError(
                .damaged,
                "Graph \(graph.id) (“\(first.name)”) cannot be read from the store: \(error)."
            )
        }
    }

    /// The outputs that unfinished operations may ask for.
    private static func load(
        _ graph: StoredGraph,
        of store: any OperationStore,
        into contents: inout GraphContents
    ) async throws {
        for operation in graph.operations where operation.outcome != nil {
            contents.finished(operation.index)
        }
        for operation in graph.operations
        where operation.hasOutput && contents.isWanted(operation.index) {
            let id = OperationID(graph: graph.id, index: operation.index)
            guard let output = try await store.output(of: id) else { continue }
            contents.keep(output, of: operation.index)
        }
    }
}

extension GraphRegister {
    fileprivate mutating func append(_ graph: StoredGraph, keyedBy contents: StoredContents?) {
        guard let contents else {
            append(.gone(name: graph.name))
            return
        }
        append(
            Entry(
                name: contents.name,
                submitter: contents.submitter,
                submittedAt: graph.submittedAt,
                finishedAt: graph.finishedAt,
                isOpen: graph.isOpen
            )
        )
        guard !contents.idempotencyKey.isEmpty else { return }
        keepUse(
            of: contents.submitter + "\u{0}" + contents.idempotencyKey,
            Use(graph: graph.id, hash: ContentHash(of: contents.body))
        )
    }
}

extension GraphRegister.Entry {
    fileprivate static func gone(name: String) -> GraphRegister.Entry {
        var entry = GraphRegister.Entry(
            name: name,
            submitter: "",
            submittedAt: WallTime(nanosecondsSince1970: 0)
        )
        entry.isTombstone = true
        return entry
    }
}
