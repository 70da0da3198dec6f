import OperonModel

extension StoreBatch {
    /// The same in several batches of so many records; with the last of them what attempts left,
    /// and what listeners are told.
    func parts(of size: Int) -> [StoreBatch] {
        var graphs = self.graphs[...]
        var parts: [StoreBatch] = stride(from: 0, to: records.count, by: size).map { start in
            let records = records[start..<min(start + size, records.count)]
            var part = StoreBatch(wall: wall, records: Array(records))
            let count = records.count { $0.hasContents }
            part.graphs = Array(graphs.prefix(count))
            graphs = graphs.dropFirst(count)
            return part
        }
        // Before the attempts that are theirs.
        parts[0].workers = workers
        parts[parts.count - 1].graphs += graphs
        parts[parts.count - 1].results = results
        parts[parts.count - 1].events = events
        return parts
    }
}

extension StoreRecord {
    fileprivate var hasContents: Bool {
        switch self {
        case .graphAdded, .operationsAdded: true
        default: false
        }
    }
}
