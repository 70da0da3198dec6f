/// The SHA-256 hash that identifies an output by its content, whichever operation produced it.
package struct ContentHash: Hashable, Sendable {
    /// The size of a hash in bytes.
    @inlinable package static var byteCount: Int { 32 }

    /// Four words of eight bytes, most significant byte first.
    @usableFromInline let words: SIMD4<UInt64>

    /// `nil` unless there are `byteCount` bytes.
    @inlinable package init?(bytes: some Collection<UInt8>) {
        guard bytes.count == ContentHash.byteCount else { return nil }
        var words = SIMD4<UInt64>()
        var place = 0
        for byte in bytes {
            words[place / 8] = words[place / 8] << 8 | UInt64(byte)
            place += 1
        }
        self.words = words
    }

    package var bytes: [UInt8] {
        (0..<ContentHash.byteCount).map { (place: Int) -> UInt8 in
            let word: UInt64 = words[place / 8]
            let shift = 56 - place % 8 * 8
            return UInt8(truncatingIfNeeded: word >> shift)
        }
    }
}

/// An output that is too large for a dispatch. The coordinator keeps it until a worker fetches it.
package struct OutputReference: Hashable, Sendable {
    /// The operation that produced the output.
    package var operation: OperationID
    /// At least 1.
    package var byteCount: Int
    package var hash: ContentHash
    package var contentType: String

    package init(
        operation: OperationID,
        byteCount: Int,
        hash: ContentHash,
        contentType: String = Payload.json
    ) {
        self.operation = operation
        self.byteCount = byteCount
        self.hash = hash
        self.contentType = contentType
    }
}

/// A worker's request for a piece of an output. It is open until its answer arrives. Every beat
/// lists the open requests, so a request survives any lost message.
package struct OutputRequest: Hashable, Sendable {
    /// Counts the requests of one incarnation, from 1.
    package var number: UInt64
    /// The attempt that needs the output as an input.
    package var held: HeldAttempt
    /// The operation that produced the output.
    package var operation: OperationID
    package var offset: Int
    /// In bytes, at least 1. The answer may be shorter.
    package var length: Int

    package init(
        number: UInt64,
        held: HeldAttempt,
        operation: OperationID,
        offset: Int,
        length: Int
    ) {
        self.number = number
        self.held = held
        self.operation = operation
        self.offset = offset
        self.length = length
    }
}

/// The answer to a request for a piece of an output.
package struct OutputChunk: Hashable, Sendable {
    /// The number of the request.
    package var number: UInt64
    package var content: Content

    package enum Content: Hashable, Sendable {
        /// The bytes from the offset of the request on; at least one.
        case bytes([UInt8])
        /// The attempt no longer belongs to the worker.
        case gone
        /// The coordinator has no such output.
        case missing
        /// The answer was sent before this message. If it has not arrived, it is lost.
        case sent
    }

    package init(number: UInt64, content: Content) {
        self.number = number
        self.content = content
    }
}
