/// Strings as JSON writes them (RFC 8259, 7).
package enum JSONString {
    /// Appends a text in quotation marks, with only the escapes that JSON requires. An escape has
    /// its short form if there is one.
    package static func append(_ text: String, to out: inout [UInt8]) {
        let digits = Array("0123456789abcdef".utf8)
        out.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): out += [UInt8(ascii: "\\"), byte]
            case 0x08: out += "\\b".utf8
            case 0x09: out += "\\t".utf8
            case 0x0A: out += "\\n".utf8
            case 0x0C: out += "\\f".utf8
            case 0x0D: out += "\\r".utf8
            case 0..<0x20:
                out += "\\u00".utf8
                out += [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            default: out.append(byte)
            }
        }
        out.append(UInt8(ascii: "\""))
    }

    /// A text in quotation marks.
    package static func quoted(_ text: String) -> [UInt8] {
        var out: [UInt8] = []
        append(text, to: &out)
        return out
    }
}
