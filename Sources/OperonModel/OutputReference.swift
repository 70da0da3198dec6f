/// The SHA-256 of some bytes: what an output is known by, whoever produced it.
package struct ContentHash: Hashable, Sendable {
    /// Bytes of a hash.
    package static let byteCount = 32

    /// Four times eight bytes, the first most significant.
    private let words: SIMD4<UInt64>

    /// `nil` unless there are `byteCount` bytes.
    package init?(bytes: some Collection<UInt8>) {
        guard bytes.count == ContentHash.byteCount else { return nil }
        var words = SIMD4<UInt64>()
        for (place, byte) in bytes.enumerated() {
            words[place / 8] = words[place / 8] << 8 | UInt64(byte)
        }
        self.words = words
    }

    package var bytes: [UInt8] {
        (0..<ContentHash.byteCount).map { place in
            UInt8(truncatingIfNeeded: words[place / 8] >> UInt64(56 - place % 8 * 8))
        }
    }
}

/// An output that stays with the coordinator until a worker fetches it: too large for a dispatch.
package struct OutputReference: Hashable, Sendable {
    /// Whose output it is.
    package var operation: OperationID
    /// From 1.
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

/// A worker's request for a piece of an output. It is open until its answer has come, and every
/// beat lists those that are open, so that it survives whatever is lost.
package struct OutputRequest: Hashable, Sendable {
    /// Counts the requests of one incarnation, from 1.
    package var number: UInt64
    /// The attempt whose input it is.
    package var held: HeldAttempt
    /// Whose output it is.
    package var operation: OperationID
    package var offset: Int
    /// In bytes, from 1. The answer may be shorter.
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

/// The answer to a request.
package struct OutputChunk: Hashable, Sendable {
    /// That of the request.
    package var number: UInt64
    package var content: Content

    package enum Content: Hashable, Sendable {
        /// From the offset of the request on; at least one.
        case bytes([UInt8])
        /// The attempt is not the worker's any more.
        case gone
        /// The coordinator has no such output.
        case missing
        /// The answer was sent before this: if it has not come, it is lost.
        case sent
    }

    package init(number: UInt64, content: Content) {
        self.number = number
        self.content = content
    }
}
