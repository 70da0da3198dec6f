/// A part of what an attempt printed, in one piece.
package struct LogView: Hashable, Sendable {
    package var operation: OperationName
    package var attempt: String
    /// Counts the attempts of the operation from 1.
    package var number: UInt32
    /// How many bytes the attempt printed before `bytes`.
    package var offset: UInt64
    package var bytes: [UInt8]
    /// How many bytes directly before `bytes` are missing; 0: none.
    package var missedBytes: UInt64

    package init(
        operation: OperationName,
        attempt: AttemptID,
        number: UInt32,
        offset: UInt64,
        bytes: [UInt8],
        missedBytes: UInt64 = 0
    ) {
        self.operation = operation
        self.attempt = attempt.description
        self.number = number
        self.offset = offset
        self.bytes = bytes
        self.missedBytes = missedBytes
    }

    /// The bytes as text; what is not UTF-8 is replaced.
    package var text: String { String(decoding: bytes, as: UTF8.self) }
}

extension LogView: Codable {
    private enum Key: String, CodingKey {
        case operation, attempt, number, offset, text, base64, isTail, missedBytes
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        operation = try container.decode(OperationName.self, forKey: .operation)
        attempt = try container.decode(String.self, forKey: .attempt)
        number = try container.decode(UInt32.self, forKey: .number)
        offset = try container.decode(UInt64.self, forKey: .offset)
        missedBytes = try container.decodeIfPresent(UInt64.self, forKey: .missedBytes) ?? 0
        if let base64 = try container.decodeIfPresent(String.self, forKey: .base64) {
            guard let decoded = Base64.decode(Array(base64.utf8)[...]) else {
                throw DecodingError.dataCorruptedError(
                    forKey: .base64,
                    in: container,
                    debugDescription: "no base64"
                )
            }
            bytes = decoded
        } else {
            bytes = Array(try container.decode(String.self, forKey: .text).utf8)
        }
    }

    /// Bytes that are not UTF-8 are also written in base64, so that nothing is lost.
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        let text = text
        try container.encode(operation, forKey: .operation)
        try container.encode(attempt, forKey: .attempt)
        try container.encode(number, forKey: .number)
        try container.encode(offset, forKey: .offset)
        try container.encode(text, forKey: .text)
        if !text.utf8.elementsEqual(bytes) {
            var base64: [UInt8] = []
            Base64.append(bytes[...], to: &base64)
            try container.encode(String(decoding: base64, as: UTF8.self), forKey: .base64)
        }
        try container.encode(missedBytes > 0, forKey: .isTail)
        if missedBytes > 0 { try container.encode(missedBytes, forKey: .missedBytes) }
    }
}
