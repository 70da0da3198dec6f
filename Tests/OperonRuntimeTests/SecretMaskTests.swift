import OperonCore
import Testing

@testable import OperonRuntime

/// What is masked in the output of attempts with secrets.
@Suite struct SecretMaskTests {
    private func masked(_ pieces: [String], _ secrets: String...) throws -> [String] {
        var stream = MaskedStream(try #require(SecretMask(secrets)))
        var passed = pieces.map { stream.append(Array($0.utf8)[...]) }
        passed.append(stream.finish())
        return passed.map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func `a value is masked, also in the middle of a word and twice`() throws {
        let text = "a=canary-1;b=canary-1\nxcanary-1y"
        #expect(try masked([text], "canary-1").joined() == "a=***;b=***\nx***y")
    }

    @Test func `a value that is printed in pieces is masked`() throws {
        #expect(try masked(["a=can", "ary-", "1.\n"], "canary-1") == ["a=", "", "***.\n", ""])
    }

    @Test func `bytes are held back only while they may begin a value`() throws {
        let passed = try masked(["password: ", "cana", "da\n", "can"], "canary-1")
        #expect(passed == ["password: ", "", "canada\n", "", "can"])
    }

    @Test func `values that overlap or follow each other are one run of asterisks`() throws {
        #expect(try masked(["<abcdabcdabcd>"], "abcdabcd").joined() == "<***>")
        #expect(try masked(["<12345678abcdefgh>"], "12345678", "abcdefgh").joined() == "<***>")
        #expect(try masked(["<abcdefghijkl>"], "abcdefgh", "efghijkl").joined() == "<***>")
        #expect(try masked(["<abcdefghijkl>"], "abcdefgh", "cdefghijkl").joined() == "<***>")
    }

    @Test func `a value of fewer than eight bytes is not masked`() throws {
        #expect(SecretMask(["1234567", ""]) == nil)
        #expect(try masked(["1234567 12345678"], "1234567", "12345678").joined() == "1234567 ***")
    }

    /// What the mask means, without pieces: every byte of every occurrence, and one replacement for
    /// each run of them.
    private func model(_ text: [UInt8], _ secrets: [String]) -> [UInt8] {
        var isCovered = [Bool](repeating: false, count: text.count)
        for secret in secrets.map({ Array($0.utf8) }) where text.count >= secret.count {
            for start in 0...text.count - secret.count
            where text[start..<start + secret.count].elementsEqual(secret) {
                for place in start..<start + secret.count { isCovered[place] = true }
            }
        }
        var result: [UInt8] = []
        for (place, byte) in text.enumerated() {
            if !isCovered[place] {
                result.append(byte)
            } else if place == 0 || !isCovered[place - 1] {
                result += SecretMask.replacement
            }
        }
        return result
    }

    @Test(arguments: 0..<4)
    func `five thousand texts in pieces are masked as in one piece`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var maskedCount = 0
        for _ in 0..<5_000 {
            // Few letters, so that values overlap themselves and each other.
            func word(_ count: Int) -> String {
                String((0..<count).map { _ in Bool.random(using: &random) ? "a" : "b" })
            }
            let secrets = (0...Int.random(in: 0...2, using: &random)).map { _ in
                word(Int.random(in: 8...10, using: &random))
            }
            var text: [UInt8] = []
            for _ in 0..<Int.random(in: 0...6, using: &random) {
                let plain = word(Int.random(in: 0...9, using: &random))
                text += (Int.random(in: 0..<3, using: &random) == 0 ? secrets[0] : plain).utf8
                if Int.random(in: 0..<4, using: &random) == 0 { text.append(0) }
            }
            var stream = MaskedStream(try #require(SecretMask(secrets)))
            var passed: [UInt8] = []
            var rest = text[...]
            while !rest.isEmpty {
                let piece = rest.prefix(Int.random(in: 1...7, using: &random))
                passed += stream.append(piece)
                rest = rest.dropFirst(piece.count)
            }
            passed += stream.finish()

            let expected = model(text, secrets)
            #expect(passed == expected, "\(secrets) in \(String(decoding: text, as: UTF8.self))")
            if expected != text { maskedCount += 1 }
        }
        #expect(maskedCount > 500)
    }

    @Test func `a long value costs one pass, however often its beginning is printed`() throws {
        let value = String(repeating: "a", count: 60_000) + "b"
        var stream = MaskedStream(try #require(SecretMask([value])))
        let chunk = [UInt8](repeating: UInt8(ascii: "a"), count: 65_536)
        var count = 0
        for _ in 0..<4 { count += stream.append(chunk[...]).count }
        #expect(count == 4 * chunk.count - 60_000)
        #expect(stream.append([UInt8(ascii: "b")]) == SecretMask.replacement)
    }
}
