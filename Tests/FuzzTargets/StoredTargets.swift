// It sees what is internal to the library; a release build for users does not.
#if DEBUG || OPERON_FUZZER
import OperonCore
import OperonModel
import OperonPorts
import OperonWire

@testable import OperonSQLite

extension FuzzTarget {
    /// The stored form of graphs, additions and events. The first byte chooses.
    static let contents = FuzzTarget("stored-contents", bytesMax: 4_096) { bytes in
        var input = InputReader(bytes)
        let kind = input.byte() % 3
        let stored = input.remainder()
        switch kind {
        case 0: try readGraph(stored)
        case 1: try readAddition(stored)
        default:
            guard let event = try? StoreFormat.decodeEvent(stored) else { return }
            let again = try StoreFormat.decodeEvent(try StoreFormat.encode(event))
            try require(again == event, "an event that is stored again is another one")
        }
    }

    /// The rows of a journal. The first byte chooses between records, applied to a store that has
    /// a graph, and events.
    static let journal = FuzzTarget("stored-journal", bytesMax: 4_096) { bytes in
        var input = InputReader(bytes)
        let isOfEvents = input.byte() & 1 == 1
        let stored = input.remainder()
        guard !isOfEvents else {
            guard let events = try? JournalBytes.decodeEvents(stored, from: 1) else { return }
            let again = try JournalBytes.decodeEvents(JournalBytes.encode(events), from: 1)
            return try require(again == events, "events that are stored again are others")
        }
        let wall = WallTime(nanosecondsSince1970: 1_700_000_000_000_000_000)
        guard let content = try? JournalBytes.decode(stored, at: wall) else { return }
        var batch = StoreBatch(wall: wall, records: content.records)
        batch.results = content.results
        let written = try JournalBytes.encode(batch, contents: content.contents)
        let again = try JournalBytes.decode(written, at: wall)
        try require(
            again.records == content.records && again.results == content.results
                && again.contents == content.contents,
            "a row that is stored again is another one"
        )
        var image = storeWithGraph
        // It contradicts the store, or is a part of it: nothing else may happen.
        try? image.apply(batch)
        _ = image.state
    }

    private static func readGraph(_ stored: [UInt8]) throws {
        var lazily = StoredOperations()
        _ = try? lazily.append(stored)
        for index in 0..<lazily.count {
            _ = try? lazily.description(of: index)
            _ = try? lazily.dispatchedDescription(of: index)
        }
        guard let read = try? StoreFormat.decodeGraph(stored) else { return }
        let written = try StoreFormat.encode(
            read.graph,
            failFast: read.failFast,
            parent: read.parent
        )
        let again = try StoreFormat.decodeGraph(written)
        try require(
            again.graph == read.graph && again.failFast == read.failFast
                && again.parent == read.parent,
            "a graph that is stored again is another one"
        )
        try compare(written, with: read.graph)
        // A graph that was stored is compiled again, and refused if it is damaged.
        _ = try? CompiledGraph.compile(read.graph)
    }

    /// Operations that are read one by one are those that are read at once.
    private static func compare(_ stored: [UInt8], with graph: GraphDescription) throws {
        var operations = StoredOperations()
        let header = try operations.append(stored)
        try require(
            header.name == graph.name && header.queues == graph.queues
                && header.keys == graph.keys && header.order == graph.order
                && operations.count == graph.operations.count,
            "the two readers of a stored graph disagree about it"
        )
        for (index, operation) in graph.operations.enumerated() {
            let read = try operations.description(of: index)
            let dispatched = try operations.dispatchedDescription(of: index)
            try require(
                read == operation && dispatched.work == operation.work
                    && dispatched.name == operation.name,
                "the two readers of a stored graph disagree about operation \(index)"
            )
        }
    }

    private static func readAddition(_ stored: [UInt8]) throws {
        let graph: GraphDescription
        do throws(Refusal) {
            graph = try StoreFormat.decodeAddition(stored)
        } catch {
            return
        }
        let base = CompiledAddition.Base(
            graph: GraphID(rawValue: 0),
            operationCount: 3,
            edgeCount: 2
        )
        _ = try? CompiledAddition.compile(graph, to: base) { name in
            UInt32(name).map { OperationID(graph: GraphID(rawValue: 0), index: $0 % 3) }
        }
    }

    /// A store with a graph of four operations, of which the first one runs.
    private static let storeWithGraph: StoreImage = {
        let id = GraphID(rawValue: 0)
        let first = OperationID(graph: id, index: 0)
        let attempt = AttemptID(epoch: Epoch(rawValue: 1), number: 1)
        var image = StoreImage(reign: Reign(rawValue: 7))
        image.raiseEpoch()
        var batch = StoreBatch(
            wall: WallTime(nanosecondsSince1970: 1_600_000_000_000_000_000),
            records: [
                .graphAdded(id),
                .granted(attempt, first, ordinal: 1, to: Incarnation(rawValue: 5)),
                .started(attempt, first),
            ]
        )
        batch.graphs = [
            StoredContents(
                graph: id,
                name: "g",
                isOpen: true,
                first: 0,
                operationCount: 4,
                body: [1]
            )
        ]
        do throws(StoreError) {
            try image.apply(batch)
        } catch {
            preconditionFailure("a new store takes a graph: \(error)")
        }
        return image
    }()
}
#endif
