package import OperonModel

/// The rows that one graph has for operations that finished together. An operation with a row of
/// its own is as that row says.
package struct FinishedRanges: Hashable, Sendable {
    /// In ascending order, without overlaps.
    package private(set) var all: [StoredRange] = []

    package init() {}

    package var isEmpty: Bool { all.isEmpty }

    /// The number of operations.
    package var count: Int { all.reduce(0) { $0 + $1.operations.count } }

    /// - Parameter new: Operations that are not among these.
    package mutating func insert(_ new: StoredRange) {
        all.insert(new, at: place(of: new.operations.startIndex))
    }

    package mutating func insert(_ others: FinishedRanges) {
        for range in others.all { insert(range) }
    }

    /// An operation as its range says; `nil`: it is in none.
    package subscript(index: UInt32) -> StoredOperation? {
        let place = place(of: index)
        guard place < all.count, all[place].operations.indices.contains(index) else { return nil }
        return all[place].operation(index)
    }

    /// The operations of ranges that are among these.
    package func indices(among indices: Range<UInt32>) -> [UInt32] {
        all[place(of: indices.lowerBound)...]
            .prefix { $0.operations.startIndex < indices.upperBound }
            .flatMap { $0.operations.indices.clamped(to: indices) }
    }

    /// All operations that have changed, by index, from those that have rows of their own.
    package func merged(with rows: [StoredOperation]) -> [StoredOperation] {
        guard !isEmpty else { return rows }
        var merged: [StoredOperation] = []
        merged.reserveCapacity(rows.count + count)
        var next = 0
        for range in all {
            while next < rows.count, rows[next].index < range.operations.startIndex {
                merged.append(rows[next])
                next += 1
            }
            for index in range.operations.indices {
                if next < rows.count, rows[next].index == index {
                    merged.append(rows[next])
                    next += 1
                } else {
                    merged.append(range.operation(index))
                }
            }
        }
        merged += rows[next...]
        return merged
    }

    /// The first range that ends after this index.
    private func place(of index: UInt32) -> Int {
        var (low, high) = (0, all.count)
        while low < high {
            let middle = (low + high) / 2
            if all[middle].operations.endIndex <= index { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
