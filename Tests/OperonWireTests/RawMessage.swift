/// Writes Protocol Buffers field by field, without the generated code: what another program, or one
/// of the future, might send. The numbers are those of operon.proto.
struct RawMessage {
    private(set) var bytes: [UInt8] = []

    init(_ fields: (inout RawMessage) -> Void = { _ in }) { fields(&self) }

    mutating func integer(_ field: UInt64, _ value: UInt64) {
        varint(field << 3)
        varint(value)
    }

    /// As int32, int64 and enums are written: ten bytes when negative.
    mutating func integer(_ field: UInt64, signed value: Int64) {
        integer(field, UInt64(bitPattern: value))
    }

    /// As sint32 and sint64 are written.
    mutating func zigzag(_ field: UInt64, _ value: Int64) {
        integer(field, UInt64(bitPattern: (value << 1) ^ (value >> 63)))
    }

    mutating func fixed(_ field: UInt64, _ value: UInt64) {
        varint(field << 3 | 1)
        for byte in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: value >> (8 * byte))) }
    }

    mutating func string(_ field: UInt64, _ text: String) { data(field, Array(text.utf8)) }

    mutating func data(_ field: UInt64, _ data: [UInt8]) {
        varint(field << 3 | 2)
        varint(UInt64(data.count))
        bytes += data
    }

    mutating func message(_ field: UInt64, _ fields: (inout RawMessage) -> Void = { _ in }) {
        data(field, RawMessage(fields).bytes)
    }

    /// Bytes as they are.
    mutating func append(_ raw: [UInt8]) { bytes += raw }

    private mutating func varint(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    // MARK: - Ours

    /// An envelope of a coordinator with the header in order.
    static func coordinator(_ body: (inout RawMessage) -> Void) -> [UInt8] {
        RawMessage { envelope in
            envelope.integer(1, 1)
            envelope.fixed(3, 42)
            envelope.integer(4, 1)
            envelope.integer(5, 1)
            body(&envelope)
        }.bytes
    }

    /// An envelope of a worker with the header in order.
    static func worker(_ body: (inout RawMessage) -> Void) -> [UInt8] {
        RawMessage { envelope in
            envelope.integer(1, 1)
            envelope.fixed(3, 42)
            envelope.integer(4, 1)
            envelope.integer(5, 1)
            envelope.message(6) { sender in
                sender.string(1, "w")
                sender.fixed(2, 7)
                sender.integer(3, 1)
            }
            body(&envelope)
        }.bytes
    }

    /// An input of an operation that is fetched from 2/6, with one thing that may be wrong.
    mutating func reference(
        byteCount: UInt64 = 1,
        hashBytes: Int = 32,
        hasOutput: Bool = false
    ) {
        message(10) { input in
            input.string(1, "i")
            if hasOutput { input.message(2) }
            input.message(3) { reference in
                reference.integer(1, 2)
                reference.integer(2, 6)
                reference.integer(3, byteCount)
                reference.data(4, [UInt8](repeating: 1, count: hashBytes))
            }
        }
    }

    /// The attempt 1.5 at the operation 2/6.
    mutating func held(_ field: UInt64 = 1) {
        message(field) { held in
            held.integer(1, 1)
            held.integer(2, 5)
            held.integer(3, 2)
            held.integer(4, 6)
        }
    }
}
