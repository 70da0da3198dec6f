import OperonModel
import Testing

@Suite struct PercentTextTests {
    @Test func `every byte comes back`() {
        for scalar in (0...0x2FF as ClosedRange<UInt32>).compactMap(Unicode.Scalar.init) {
            let text = "a\(Character(scalar))b"
            let encoded = PercentText.encode(text)

            #expect(PercentText.decode(encoded[...]) == text)
            let isPlain = encoded.utf8.allSatisfy { byte in
                byte.isASCIILetterOrDigit || "%-._~".utf8.contains(byte)
            }
            #expect(isPlain)
        }
    }

    @Test func `only letters, digits and four marks stand for themselves`() {
        #expect(PercentText.encode("aZ09-._~") == "aZ09-._~")
        #expect(PercentText.encode("a/b?c=d&e+f g%") == "a%2Fb%3Fc%3Dd%26e%2Bf%20g%25")
        #expect(PercentText.encode("ä") == "%C3%A4")
    }

    @Test(arguments: ["%", "a%2", "%zz", "%2", "%+5", "% 5", "%-1", "%２０"])
    func `two hexadecimal digits follow each percent sign`(text: String) {
        #expect(PercentText.bytes(of: text[...]) == nil)
        #expect(PercentText.decode(text[...]) == nil)
    }

    @Test(arguments: ["%ff", "%C3", "%C0%AF", "%ED%A0%80"])
    func `a text is UTF-8, and bytes may be anything`(text: String) {
        #expect(PercentText.decode(text[...]) == nil)
        #expect(PercentText.bytes(of: text[...]) != nil)
    }

    @Test func `a plus is a space where forms are read, and a plus elsewhere`() {
        #expect(PercentText.decode("a+b%2Bc", plusIsSpace: true) == "a b+c")
        #expect(PercentText.decode("a+b%2Bc") == "a+b+c")
    }
}
