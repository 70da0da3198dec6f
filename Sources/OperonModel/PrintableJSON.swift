/// JSON that is safe to print on a terminal.
///
/// JSON encoders do not escape characters that act on terminals or mislead readers: DEL, the C1
/// controls (U+009B begins an escape sequence, like ESC [) and the bidirectional controls
/// (“Trojan Source”, https://trojansource.codes). This type escapes them, which changes nothing
/// for programs.
package enum PrintableJSON {
    /// - Parameter json: valid JSON in UTF-8. These characters can only occur in its strings, where
    ///   every character may be written as `\uXXXX` (RFC 8259, 7).
    package static func escaped(_ json: [UInt8]) -> [UInt8] {
        // Most JSON is clean; it is returned without a copy.
        guard json.contains(where: { $0 == 0x7F || $0 == 0xC2 || $0 == 0xD8 || $0 == 0xE2 })
        else { return json }
        var out: [UInt8] = []
        out.reserveCapacity(json.count + 64)
        var index = 0
        while index < json.count {
            if let (scalar, count) = active(json[index...]) {
                out += escape(scalar)
                index += count
            } else {
                out.append(json[index])
                index += 1
            }
        }
        return out
    }

    /// The control character at the start of these bytes, and its length in bytes.
    private static func active(_ bytes: ArraySlice<UInt8>) -> (scalar: UInt16, count: Int)? {
        func byte(_ offset: Int) -> UInt8 {
            let index = bytes.startIndex + offset
            return index < bytes.endIndex ? bytes[index] : 0
        }
        switch (byte(0), byte(1), byte(2)) {
        case (0x7F, _, _): return (0x7F, 1)
        // U+0080 to U+009F.
        case (0xC2, 0x80...0x9F, _): return (UInt16(byte(1)), 2)
        // U+061C, the Arabic letter mark.
        case (0xD8, 0x9C, _): return (0x061C, 2)
        // U+200E and U+200F; U+2028 to U+202E; U+2066 to U+2069.
        case (0xE2, 0x80, 0x8E...0x8F), (0xE2, 0x80, 0xA8...0xAE):
            return (0x2000 + UInt16(byte(2) - 0x80), 3)
        case (0xE2, 0x81, 0xA6...0xA9): return (0x2040 + UInt16(byte(2) - 0x80), 3)
        case _: return nil
        }
    }

    private static func escape(_ scalar: UInt16) -> [UInt8] {
        let digits = Array("0123456789abcdef".utf8)
        return [UInt8(ascii: "\\"), UInt8(ascii: "u")]
            + [12, 8, 4, 0].map { digits[Int(scalar >> $0 & 15)] }
    }
}
