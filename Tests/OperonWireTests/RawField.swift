/// A field of an encoded message, to change and to put together again.
struct RawField {
    var number: UInt64
    /// 0 a varint, 1 eight bytes, 2 a length and bytes, 5 four bytes. Others are groups or invalid.
    var form: UInt64
    var value: UInt64 = 0
    var content: [UInt8] = []

    /// `nil`: these bytes are not fields one after another.
    static func all(of bytes: [UInt8]) -> [RawField]? {
        var fields: [RawField] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            guard let tag = varint(&rest) else { return nil }
            var field = RawField(number: tag >> 3, form: tag & 7)
            switch field.form {
            case 0:
                guard let value = varint(&rest) else { return nil }
                field.value = value
            case 1, 2, 5:
                let count = field.form == 1 ? 8 : field.form == 5 ? 4 : varint(&rest)
                guard let count, count <= UInt64(rest.count) else { return nil }
                field.content = Array(rest.prefix(Int(count)))
                rest = rest.dropFirst(Int(count))
            case _: return nil
            }
            fields.append(field)
        }
        return fields
    }

    var bytes: [UInt8] {
        var bytes = Self.varint(number << 3 | form)
        switch form {
        case 0: bytes += Self.varint(value)
        case 2: bytes += Self.varint(UInt64(content.count)) + content
        case _: bytes += content
        }
        return bytes
    }

    private static func varint(_ bytes: inout ArraySlice<UInt8>) -> UInt64? {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 64, by: 7) {
            guard let byte = bytes.popFirst() else { return nil }
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
        }
        return nil
    }

    static func varint(_ value: UInt64) -> [UInt8] {
        var bytes: [UInt8] = []
        var value = value
        while value > 0x7F {
            bytes.append(UInt8(truncatingIfNeeded: value) | 0x80)
            value >>= 7
        }
        return bytes + [UInt8(value)]
    }
}
