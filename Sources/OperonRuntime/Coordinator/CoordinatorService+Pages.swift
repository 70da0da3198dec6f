import OperonCore
import OperonModel
import OperonPorts

/// A page of operations while it is searched for, a slice at a time: between the slices, the
/// coordinator decides. A search that finds little visits all operations of a graph.
struct PageSearch<Place: Sendable>: Sendable {
    /// Where the next slice begins; `nil`: the search has ended.
    private(set) var place: Place?
    private(set) var views: [OperationView] = []
    /// Where the next page begins; `nil`: this is the last one.
    private(set) var next: Place?
    private var bytes = 0
    private let limit: Int

    /// The most operations that are visited in one slice: a few milliseconds.
    static var sliceOperations: Int { ProgressFeed.sliceOperations }

    /// The most bytes of errors in one page, apart from the last error: each may contain a long
    /// error that code threw.
    private static var bytesMax: Int { 8 << 20 }

    init(from place: Place, limit: Int) {
        self.place = place
        self.limit = limit
    }

    /// Whether the page has no room for another operation, such as the one at this place, where the
    /// next page then begins.
    mutating func isFull(at place: Place) -> Bool {
        guard views.count >= limit || bytes >= Self.bytesMax else { return false }
        (next, self.place) = (place, nil)
        return true
    }

    mutating func append(_ view: OperationView) {
        bytes += view.error?.byteCount ?? 0
        views.append(view)
    }

    /// Ends a slice.
    ///
    /// - Parameter place: Where the search goes on; `nil`: there is nothing more.
    mutating func pause(at place: Place?) { self.place = place }
}

extension CoordinatorService {
    /// Searches a slice of the operations of a graph. A place is a number in it, or among those
    /// that the query names.
    func search(
        _ graph: GraphID,
        _ query: OperationQuery,
        _ before: PageSearch<Int>
    ) throws(ClientError) -> PageSearch<Int> {
        guard !catalog.isDropped(graph) else { throw .dropped(graph) }
        var search = before
        guard let start = search.place else { return search }
        let operations = catalog[graph].operations
        let count = query.numbers?.count ?? operations.count
        let end = min(start + PageSearch<Int>.sliceOperations, count)
        for place in start..<max(start, end) {
            let index = query.numbers?[place] ?? UInt32(place)
            guard Int(index) < operations.count else { continue }
            let id = OperationID(graph: graph, index: index)
            if let state = query.state, scheduler.state(of: id) != state { continue }
            if let outcome = query.outcome, scheduler.outcome(of: id)?.kind != outcome { continue }
            if let queue = query.queue, operations.queue(of: Int(index)) != queue { continue }
            if let prefix = query.namePrefix, !operations.name(of: Int(index)).begins(with: prefix)
            {
                continue
            }
            if search.isFull(at: place) { return search }
            search.append(view(of: id))
        }
        search.pause(at: end < count ? end : nil)
        return search
    }

    /// Searches a slice of the operations of a queue.
    func search(
        queue name: String,
        _ query: QueueOperationQuery,
        _ before: PageSearch<OperationID>
    ) throws(ClientError) -> PageSearch<OperationID> {
        guard scheduler.unfinishedCount(ofQueue: name) != nil else { throw .noQueue(name) }
        var search = before
        guard let start = search.place else { return search }
        let rest = scheduler.visit(
            queue: name,
            from: start,
            finished: query.wantsFinished,
            most: PageSearch<OperationID>.sliceOperations
        ) { id in
            if let state = query.state, scheduler.state(of: id) != state { return true }
            if let outcome = query.outcome, scheduler.outcomeKind(of: id) != outcome {
                return true
            }
            if let prefix = query.namePrefix {
                guard catalog.name(of: id).name.begins(with: prefix) else { return true }
            }
            if search.isFull(at: id) { return false }
            search.append(view(of: id))
            return true
        }
        search.pause(at: rest)
        return search
    }
}

extension String {
    /// Whether the bytes begin with these. Names are compared by their bytes everywhere.
    fileprivate func begins(with prefix: String) -> Bool { utf8.starts(with: prefix.utf8) }
}
