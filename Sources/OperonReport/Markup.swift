/// Text of HTML and SVG. Whatever comes from outside is written as text, never as markup.
struct Markup: Sendable {
    private(set) var bytes: [UInt8] = []

    /// Appends what this module wrote itself.
    mutating func raw(_ text: StaticString) {
        bytes += text.description.utf8
    }

    mutating func number(_ number: Int) { bytes += String(number).utf8 }

    /// A coordinate, to a tenth: finer than any screen shows it.
    mutating func number(_ number: Double) {
        let tenths = Int((number * 10).rounded())
        if tenths < 0 { bytes.append(UInt8(ascii: "-")) }
        self.number(Int(tenths.magnitude / 10))
        if tenths.magnitude % 10 > 0 {
            bytes.append(UInt8(ascii: "."))
            self.number(Int(tenths.magnitude % 10))
        }
    }

    mutating func append(_ other: Markup) { bytes += other.bytes }

    /// Appends text from anywhere, as the content of an element or as the value of an attribute in
    /// double quotes. Control characters, which neither language has, are shown as their pictures
    /// (U+2400…); line ends and tabs stay.
    mutating func text(_ text: some StringProtocol) {
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": bytes += "&amp;".utf8
            case "<": bytes += "&lt;".utf8
            case ">": bytes += "&gt;".utf8
            case "\"": bytes += "&quot;".utf8
            case "'": bytes += "&#39;".utf8
            case "\n", "\t": bytes.append(UInt8(truncatingIfNeeded: scalar.value))
            default:
                bytes +=
                    UTF8.encode(Self.visible(scalar))
                    ?? UTF8.encodedReplacementCharacter
            }
        }
    }

    private static func visible(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        switch scalar.value {
        case 0..<0x20: Unicode.Scalar(0x2400 + scalar.value) ?? "\u{FFFD}"
        case 0x7F: "\u{2421}"
        // C1 controls; marks that turn the direction of what follows; what is no character.
        case 0x80..<0xA0, 0x202A...0x202E, 0x2066...0x2069, 0xFFFE, 0xFFFF: "\u{FFFD}"
        default: scalar
        }
    }
}
