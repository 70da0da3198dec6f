import OperonSystem
import Testing

/// Against values that others have published.
@Suite struct SHA256Tests {
    private func digits(_ bytes: [UInt8]) -> String {
        bytes.map { byte in
            let digits = String(byte, radix: 16)
            return digits.count == 1 ? "0" + digits : digits
        }.joined()
    }

    // FIPS 180-4, in the examples of NIST's Cryptographic Standards and Guidelines.
    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
    ]) func `a hash is that of the standard`(text: String, hash: String) {
        #expect(digits(SHA256.hash(of: Array(text.utf8))) == hash)
    }

    // RFC 4231, test cases 1, 2 and 6; the key of the last is longer than a block.
    @Test(arguments: [
        (
            [UInt8](repeating: 0x0B, count: 20), "Hi There",
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        ),
        (
            Array("Jefe".utf8), "what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        ),
        (
            [UInt8](repeating: 0xAA, count: 131),
            "Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        ),
    ]) func `an authentication code is that of the standard`(
        key: [UInt8],
        message: String,
        code: String
    ) {
        #expect(digits(SHA256.authenticationCode(for: Array(message.utf8), key: key)) == code)
    }

    @Test func `an empty key is the empty key, whatever key was used before`() {
        _ = SHA256.authenticationCode(for: [1], key: [2])
        #expect(
            digits(SHA256.authenticationCode(for: [], key: []))
                == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"
        )
    }

    @Test func `hashes are equal if every byte is`() {
        let hash = SHA256.hash(of: [1])
        var other = hash
        #expect(SHA256.isEqual(hash, other))
        other[31] ^= 1
        #expect(!SHA256.isEqual(hash, other))
        #expect(!SHA256.isEqual(hash, Array(hash.dropLast())))
        #expect(SHA256.isEqual([], []))
    }
}
