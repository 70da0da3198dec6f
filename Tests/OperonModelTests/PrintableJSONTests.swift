import OperonModel
import Testing

@Suite struct PrintableJSONTests {
    private static func escaped(_ text: String) -> String {
        String(decoding: PrintableJSON.escaped(Array(text.utf8)), as: UTF8.self)
    }

    @Test func `what only a terminal acts on is escaped`() {
        let active: [UInt32] =
            [0x7F, 0x061C, 0x200E, 0x200F] + Array(0x80...0x9F) + Array(0x2028...0x202E)
            + Array(0x2066...0x2069)
        for value in active {
            guard let scalar = Unicode.Scalar(value) else { continue }
            var digits = String(value, radix: 16)
            digits = String(repeating: "0", count: 4 - digits.count) + digits
            #expect(Self.escaped("\"a\(scalar)b\"") == "\"a\\u\(digits)b\"")
        }
    }

    @Test func `every other character stays as it is`() {
        var text = "\""
        for value in UInt32(0x20)...0x2FFF {
            guard let scalar = Unicode.Scalar(value), !(0x7F...0x9F).contains(value),
                value != 0x061C, !(0x200E...0x200F).contains(value),
                !(0x2028...0x202E).contains(value), !(0x2066...0x2069).contains(value)
            else { continue }
            text.unicodeScalars.append(scalar)
        }
        text += "👩‍🚀\""
        #expect(Self.escaped(text) == text)
        // What is cut within a character, as it never is in JSON, is no reason to trap.
        #expect(PrintableJSON.escaped([0xE2, 0x80]) == [0xE2, 0x80])
        #expect(PrintableJSON.escaped([0xC2]) == [0xC2])
    }
}
