/// Walks over the fields of an encoded message without decoding them.
package struct FieldCursor {
    /// One field. Its value is a number or a range of bytes.
    package struct Field {
        package var number: UInt64
        /// Where the value begins. If the value has a length, this is where the length begins.
        package var start: Int
        package var value: UInt64 = 0
        package var bytes: Range<Int> = 0..<0
        /// Whether its value is a number.
        package var isNumber = false
        /// Whether its value has a length, as texts, bytes and messages have.
        package var hasLength = false
    }

    private var position: Int
    private let end: Int

    package init(_ bytes: Range<Int>) {
        position = bytes.lowerBound
        end = bytes.upperBound
    }

    /// - Parameter bytes: the bytes that the ranges refer to.
    /// - Returns: `nil` at the end.
    @inline(__always)
    package mutating func next(in bytes: [UInt8]) throws(WireError) -> Field? {
        guard position < end else { return nil }
        let key = try number(in: bytes)
        var field = Field(number: key >> 3, start: position)
        switch key & 7 {
        case 0: (field.value, field.isNumber) = (try number(in: bytes), true)
        case 1: field.bytes = try take(8)
        case 2:
            field.bytes = try take(Int(exactly: try number(in: bytes)) ?? .max)
            field.hasLength = true
        case 5: field.bytes = try take(4)
        case _: throw Self.cutOff
        }
        return field
    }

    /// Reads a number and a text with its length before it, as in a list of names; `nil` at the
    /// end.
    mutating func nextName(
        in bytes: [UInt8]
    ) throws(WireError) -> (number: Int, name: Range<Int>)? {
        guard position < end else { return nil }
        let before = Int(exactly: try number(in: bytes)) ?? .max
        return (before, try take(Int(exactly: try number(in: bytes)) ?? .max))
    }

    /// The range of the bytes whose length is at `start`.
    static func bytes(withLengthAt start: Int, in bytes: [UInt8]) throws(WireError) -> Range<Int> {
        var cursor = FieldCursor(start..<bytes.count)
        return try cursor.take(Int(exactly: try cursor.number(in: bytes)) ?? .max)
    }

    @inline(__always)
    private mutating func take(_ count: Int) throws(WireError) -> Range<Int> {
        guard count <= end - position else { throw Self.cutOff }
        defer { position += count }
        return position..<position + count
    }

    @inline(__always)
    private mutating func number(in bytes: [UInt8]) throws(WireError) -> UInt64 {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while position < end, shift < 64 {
            let byte = bytes[position]
            position += 1
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
            shift += 7
        }
        throw Self.cutOff
    }

    static var cutOff: WireError {
        WireError(.malformed, "a list of operations or names is cut off")
    }
}
