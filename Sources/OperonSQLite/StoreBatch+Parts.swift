import OperonModel

extension StoreBatch {
    /// Splits the batch into batches of records that change at most `size` rows together, if each
    /// of them does. The last batch has the results of attempts and the events.
    ///
    /// - Parameter weight: How many rows a record changes.
    func parts(of size: Int, weighing weight: (StoreRecord) -> Int = { _ in 1 }) -> [StoreBatch] {
        var parts: [StoreBatch] = [StoreBatch(wall: wall)]
        var weightOfLast = 0
        var nextGraph = 0
        for record in records {
            let new = weight(record)
            if weightOfLast > 0, weightOfLast + new > size {
                parts.append(StoreBatch(wall: wall))
                weightOfLast = 0
            }
            weightOfLast += new
            parts[parts.count - 1].records.append(record)
            guard record.hasContents, nextGraph < graphs.count else { continue }
            parts[parts.count - 1].graphs.append(graphs[nextGraph])
            nextGraph += 1
        }
        // Workers come before the attempts that refer to them.
        parts[0].workers = workers
        parts[parts.count - 1].graphs += graphs[nextGraph...]
        parts[parts.count - 1].results = results
        parts[parts.count - 1].events = events
        return parts
    }
}

extension StoreRecord {
    /// The record in pieces of at most `size` operations.
    func pieces(of size: Int) -> [StoreRecord] {
        guard case .rangeFinished(let range, let outcome) = self, range.count > size else {
            return [self]
        }
        return stride(from: range.startIndex, to: range.endIndex, by: size).map { first in
            let indices = first..<first + min(UInt32(size), range.endIndex - first)
            return .rangeFinished(OperationRange(graph: range.graph, indices: indices), outcome)
        }
    }

    fileprivate var hasContents: Bool {
        switch self {
        case .graphAdded, .operationsAdded: true
        default: false
        }
    }
}
