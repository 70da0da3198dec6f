import OperonModel

extension StoreBatch {
    /// Splits the batch into batches of at most `size` records. The last of them has the results of
    /// attempts and the events.
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
        // Workers come before the attempts that refer to them.
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
