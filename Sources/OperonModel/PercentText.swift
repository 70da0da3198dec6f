/// Percent-encoding as in RFC 3986, section 2.1.
package enum PercentText {
    /// Encodes everything except letters, digits and `-._~` as `%XX`, so that any name fits between
    /// two slashes or in a query.
    package static func encode(_ text: String) -> String {
        var out: [UInt8] = []
        out.reserveCapacity(text.utf8.count)
        for byte in text.utf8 {
            if byte.isASCIILetterOrDigit || "-._~".utf8.contains(byte) {
                out.append(byte)
            } else {
                out.append(UInt8(ascii: "%"))
                out.append(hexDigit(byte >> 4))
                out.append(hexDigit(byte & 15))
            }
        }
        return String(decoding: out, as: UTF8.self)
    }

    private static func hexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
    }

    /// `nil` if a `%` is not followed by two hexadecimal digits, or if the result is not UTF-8.
    /// - Parameter plusIsSpace: read `+` as a space, as in forms; people write it in queries.
    package static func decode(_ text: Substring, plusIsSpace: Bool = false) -> String? {
        bytes(of: text, plusIsSpace: plusIsSpace).flatMap { String(validating: $0, as: UTF8.self) }
    }

    /// The bytes that an encoded text stands for; `nil` if a `%` is not followed by two hexadecimal
    /// digits.
    package static func bytes(of text: Substring, plusIsSpace: Bool = false) -> [UInt8]? {
        var out: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%") {
                guard let high = rest.popFirst().flatMap(digit),
                    let low = rest.popFirst().flatMap(digit)
                else { return nil }
                out.append(high << 4 | low)
            } else if plusIsSpace, byte == UInt8(ascii: "+") {
                out.append(UInt8(ascii: " "))
            } else {
                out.append(byte)
            }
        }
        return out
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        Character(Unicode.Scalar(byte)).hexDigitValue.map(UInt8.init)
    }
}

extension UInt8 {
    package var isASCIILetterOrDigit: Bool {
        (48...57).contains(self) || (65...90).contains(self) || (97...122).contains(self)
    }
}
