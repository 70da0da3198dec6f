package import OperonCore
package import OperonModel
import OperonPorts

/// What graphs and additions were compiled from, beside a store that is only simulated: the bodies
/// it keeps are places in this list.
package struct CompiledPieces: Sendable {
    private var pieces: [CompiledGraph] = []
    /// The groups of additions, by their bodies. Only looked up.
    private var groups: [[UInt8]: UInt32] = [:]

    package init() {}

    /// What a store keeps of a submission or an addition.
    package mutating func contents(
        of piece: CompiledGraph,
        in graph: GraphID,
        from first: UInt32,
        isOpen: Bool
    ) -> StoredContents {
        pieces.append(piece)
        var contents = StoredContents(
            graph: graph,
            name: piece.name,
            isOpen: isOpen,
            first: first,
            operationCount: piece.topology.operationCount,
            body: Array("\(pieces.count - 1)".utf8)
        )
        let others = Set(piece.outer.map(\.on.operation.graph))
        contents.needs = others.filter { $0 != graph }.sorted()
        return contents
    }

    /// Keeps which operation waits for all that an addition added.
    mutating func note(group: UInt32?, of contents: StoredContents) {
        groups[contents.body] = group
    }

    /// What an event added to a scheduler that took it, as a store keeps it; empty: nothing.
    package mutating func contents(
        of event: Scheduler.Event,
        recordedAs records: some Sequence<StoreRecord>
    ) -> [StoredContents] {
        for record in records {
            switch (record, event) {
            case (.graphAdded(let id), .graphSubmitted(let graph, let isOpen)):
                return [contents(of: graph, in: id, from: 0, isOpen: isOpen)]
            case (.operationsAdded(let id, let first, _), .operationsAdded(_, let addition)):
                return [contents(of: addition.graph, in: id, from: first, isOpen: false)]
            case (_, _): continue
            }
        }
        return []
    }

    private subscript(contents: StoredContents) -> CompiledGraph {
        guard let place = Int(String(decoding: contents.body, as: UTF8.self)) else {
            preconditionFailure("bodies are places")
        }
        return pieces[place]
    }

    /// A scheduler that goes on with what a store has.
    package func restored(
        _ state: StoredState,
        _ configuration: Scheduler.Configuration,
        at now: Moment
    ) throws(RestoreError) -> Scheduler {
        try Scheduler(
            configuration: configuration,
            restoring: state,
            graphs: state.graphs.map { $0.contents.first.map { self[$0] } },
            additions: state.graphs.map { graph in
                graph.contents.dropFirst().map {
                    CompiledAddition(first: $0.first, graph: self[$0], group: groups[$0.body])
                }
            },
            at: now
        )
    }
}
