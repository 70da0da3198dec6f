/// The last bytes of what a process prints, in the order in which they arrived.
///
/// A ring that grows only as far as it is needed: memory is bounded by twice `limit` (arrays grow
/// by doubling), whatever is printed.
struct LogTail: Sendable {
    private let limit: Int
    private var ring: [UInt8] = []
    /// Where the oldest byte is, once the ring is full.
    private var oldest = 0
    /// How many bytes came before those that are kept.
    private(set) var dropped: UInt64 = 0

    /// `limit`: bytes kept, at least 0.
    init(limit: Int) {
        self.limit = max(0, limit)
    }

    /// What is kept, oldest first.
    var bytes: [UInt8] {
        guard oldest > 0 else { return ring }
        return Array(ring[oldest...]) + ring[..<oldest]
    }

    /// Keeps the end of `chunk`, at the cost of the oldest bytes.
    mutating func append(_ chunk: ArraySlice<UInt8>) {
        // What cannot stay is not copied.
        let kept = chunk.suffix(limit)
        dropped += UInt64(chunk.count - kept.count)

        let growth = min(limit - ring.count, kept.count)
        ring.append(contentsOf: kept.prefix(growth))

        var rest = kept.dropFirst(growth)
        dropped += UInt64(rest.count)
        while !rest.isEmpty {
            let part = rest.prefix(limit - oldest)
            ring.replaceSubrange(oldest..<oldest + part.count, with: part)
            oldest = (oldest + part.count) % limit
            rest = rest.dropFirst(part.count)
        }
    }
}
