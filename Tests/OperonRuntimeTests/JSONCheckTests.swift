import OperonModel
import Testing

@testable import OperonRuntime

/// Which bytes are JSON.
struct JSONCheckTests {
    private func isJSON(_ bytes: [UInt8]) -> Bool {
        do {
            try JSONCheck.check(bytes)
            return true
        } catch {
            return false
        }
    }

    @Test(arguments: [
        "null", "true", "false", "0", "-0", "10", "-1.5e+10", "1E-2", "0.0", "\"\"", "\"é🙂\"",
        #""\"\\\/\b\f\n\r\tÿ\ud800""#, "[]", "{}", " [ ] ", "[1,[2,{}],\"a\"]",
        #"{"a":1,"a":{"b":[]},"":null}"#, "\t\r\n{ \"a\" : [ 1 , 2 ] }\n",
    ])
    func `valid text is accepted`(text: String) {
        #expect(isJSON(Array(text.utf8)))
    }

    @Test(arguments: [
        "", " ", "nul", "nulll", "True", "01", "-", "+1", ".5", "1.", "1e", "1e+", "0x1", "NaN",
        "\"", "\"\\\"", "\"\\x\"", "\"\\u12g4\"", "\"a\nb\"", "[", "]", "[1", "[1,", "[1,]", "[,1]",
        "[1 2]", "{", "}", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "{\"a\":1,}", "{a:1}",
        "{1:1}", "{\"a\" 1}", "[}", "{]", "[1}", "1 1", "null,", "'a'", "// 1", "\u{FEFF}1",
    ])
    func `invalid text is refused`(text: String) {
        #expect(!isJSON(Array(text.utf8)))
    }

    @Test(arguments: [
        [0x80], [0xC3], [0xED, 0xA0, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xC0, 0x80],
    ])
    func `bytes that are not UTF-8 are refused with their place`(bytes: [UInt8]) throws {
        let quote = UInt8(ascii: "\"")

        let error = #expect(throws: JSONCheck.Malformed.self) {
            try JSONCheck.check([quote, UInt8(ascii: "a")] + bytes + [quote])
        }

        #expect(error?.expected == "UTF-8")
        #expect((2...2 + bytes.count).contains(error?.offset ?? -1))
    }

    @Test func `nesting is accepted up to its limit`() {
        func nested(_ levels: Int) -> [UInt8] {
            Array(
                (String(repeating: "[", count: levels) + String(repeating: "]", count: levels)).utf8
            )
        }

        #expect(isJSON(nested(JSONCheck.depthMax)))
        #expect(!isJSON(nested(JSONCheck.depthMax + 1)))
        #expect(!isJSON([UInt8](repeating: UInt8(ascii: "["), count: 1_000_000)))
    }

    @Test func `every truncation of a document is refused`() {
        let document = Array(#"{"a":[1.5e3,"x\nA",{"b":null}],"c":false}"#.utf8)

        #expect(isJSON(document))
        for length in 0..<document.count { #expect(!isJSON(Array(document[..<length]))) }
    }

    @Test func `quoted text is valid and harmless`() {
        let text = String(String.UnicodeScalarView((0..<0x80).compactMap(Unicode.Scalar.init)))

        let quoted = JSONString.quoted(text + "é🙂")

        #expect(isJSON(quoted))
        #expect(!quoted.contains { $0 < 0x20 })
    }
}
