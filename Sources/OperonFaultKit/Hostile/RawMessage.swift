/// Writes Protocol Buffers field by field, without the generated code: what another program, a
/// hostile one or one of the future, might send. The field numbers are those of operon.proto and
/// store.proto.
package struct RawMessage: Sendable {
    package private(set) var bytes: [UInt8] = []

    package init(_ fields: (inout RawMessage) -> Void = { _ in }) { fields(&self) }

    package mutating func integer(_ field: UInt64, _ value: UInt64) {
        varint(field << 3)
        varint(value)
    }

    /// As int32, int64 and enums are written: ten bytes when negative.
    package mutating func integer(_ field: UInt64, signed value: Int64) {
        integer(field, UInt64(bitPattern: value))
    }

    /// As sint32 and sint64 are written.
    package mutating func zigzag(_ field: UInt64, _ value: Int64) {
        integer(field, UInt64(bitPattern: (value << 1) ^ (value >> 63)))
    }

    package mutating func fixed(_ field: UInt64, _ value: UInt64) {
        varint(field << 3 | 1)
        for byte in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: value >> (8 * byte))) }
    }

    package mutating func string(_ field: UInt64, _ text: String) { data(field, Array(text.utf8)) }

    package mutating func data(_ field: UInt64, _ data: [UInt8]) {
        varint(field << 3 | 2)
        varint(UInt64(data.count))
        bytes += data
    }

    package mutating func message(
        _ field: UInt64,
        _ fields: (inout RawMessage) -> Void = { _ in }
    ) {
        data(field, RawMessage(fields).bytes)
    }

    /// Bytes as they are.
    package mutating func append(_ raw: [UInt8]) { bytes += raw }

    private mutating func varint(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }
}
