/// Base64 as in RFC 4648, section 4.
package enum Base64 {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8
    )

    /// Appends the encoding of `bytes`, padded.
    package static func append(_ bytes: ArraySlice<UInt8>, to text: inout [UInt8]) {
        var index = bytes.startIndex
        while index < bytes.endIndex {
            let left = bytes.endIndex - index
            let group =
                UInt32(bytes[index]) << 16
                | (left > 1 ? UInt32(bytes[index + 1]) << 8 : 0)
                | (left > 2 ? UInt32(bytes[index + 2]) : 0)
            text.append(alphabet[Int(group >> 18)])
            text.append(alphabet[Int(group >> 12 & 63)])
            text.append(left > 1 ? alphabet[Int(group >> 6 & 63)] : UInt8(ascii: "="))
            text.append(left > 2 ? alphabet[Int(group & 63)] : UInt8(ascii: "="))
            index += 3
        }
    }
}

extension Base64 {
    /// Decodes text that `append` wrote; `nil` for any other text.
    package static func decode(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        guard text.count % 4 == 0 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 4 * 3)
        var group: UInt32 = 0
        var digits = 0
        var padding = 0
        for character in text {
            guard padding == 0 || character == UInt8(ascii: "=") else { return nil }
            group <<= 6
            if character == UInt8(ascii: "=") {
                padding += 1
            } else {
                guard let value = value(of: character) else { return nil }
                group |= value
            }
            digits += 1
            guard digits == 4 else { continue }
            guard padding < 3 else { return nil }
            for index in 0..<(3 - padding) {
                bytes.append(UInt8(truncatingIfNeeded: group >> (16 - 8 * UInt32(index))))
            }
            group = 0
            digits = 0
        }
        return bytes
    }

    private static func value(of character: UInt8) -> UInt32? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character - UInt8(ascii: "a")) + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character - UInt8(ascii: "0")) + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
