package import OperonModel

/// The last bytes of what a process prints, in the order in which they arrived.
///
/// A ring buffer that grows only as needed. However much is printed, memory is bounded by twice
/// `limit`, because arrays grow by doubling.
struct LogTail: Sendable {
    private let limit: Int
    private var ring: [UInt8] = []
    /// The index of the oldest byte, once the ring is full.
    private var oldest = 0
    /// The number of bytes before those that are kept.
    private(set) var dropped: UInt64 = 0

    /// - Parameter limit: The most bytes to keep, at least 0.
    init(limit: Int) {
        self.limit = max(0, limit)
    }

    /// The number of bytes that are kept.
    var count: Int { ring.count }

    /// The bytes that are kept, oldest first.
    var bytes: [UInt8] {
        guard oldest > 0 else { return ring }
        return Array(ring[oldest...]) + ring[..<oldest]
    }

    /// Keeps the end of `chunk`; drops the oldest bytes for it.
    mutating func append(_ chunk: ArraySlice<UInt8>) {
        // Bytes that cannot be kept are not copied.
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

/// The first and the last bytes of what an attempt prints, as it prints them.
///
/// Memory is bounded by twice the limit, like that of `LogTail`.
struct LogBuffer: Sendable {
    private let headLimit: Int
    private var head: [UInt8] = []
    private var tail: LogTail

    /// - Parameter limit: The most bytes to keep, at least 0.
    init(limit: Int) {
        headLimit = KeptLog.headBytes(of: max(0, limit))
        tail = LogTail(limit: limit - headLimit)
    }

    mutating func append(_ chunk: ArraySlice<UInt8>) {
        let first = chunk.prefix(headLimit - head.count)
        head += first
        tail.append(chunk.dropFirst(first.count))
    }

    /// How many bytes were appended.
    var end: UInt64 { UInt64(head.count + tail.count) + tail.dropped }

    var kept: KeptLog {
        guard tail.dropped > 0 else { return KeptLog(tail: head + tail.bytes) }
        return KeptLog(head: head, missing: tail.dropped, tail: tail.bytes)
    }
}

/// Bytes that a running attempt printed.
package struct PrintedPiece: Hashable, Sendable {
    package let stream: LogStream
    /// How many bytes of this stream came before.
    package let offset: UInt64
    /// How many bytes of both streams came before.
    package let position: UInt64
    package let bytes: [UInt8]
}

extension LogChunk {
    init(_ held: HeldAttempt, _ piece: PrintedPiece) {
        self.init(
            held: held,
            stream: piece.stream,
            offset: piece.offset,
            position: piece.position,
            bytes: piece.bytes
        )
    }
}
