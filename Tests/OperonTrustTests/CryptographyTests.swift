import OperonSystem
import Testing

/// The examples of the RFCs, and what they warn of.
struct CryptographyTests {
    @Test("a signature is that of RFC 8032, 7.1, test 2")
    func signature() {
        let privateKey = bytes("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
        let publicKey = bytes("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
        let signature = bytes(
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
                + "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
        )
        #expect(Ed25519.publicKey(of: privateKey) == publicKey)
        #expect(Ed25519.signature(of: [0x72], by: privateKey) == signature)
        #expect(Ed25519.isValid(signature, of: [0x72], by: publicKey))
        #expect(!Ed25519.isValid(signature, of: [0x73], by: publicKey))
    }

    /// By each of these keys libcrypto takes this signature for one in eight of all messages, or
    /// for more: with it anybody could sign for whoever pins such a key.
    @Test(
        "nothing is signed by a key of a small order",
        arguments: [
            "0000000000000000000000000000000000000000000000000000000000000000",
            "0100000000000000000000000000000000000000000000000000000000000000",
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        ],
        [0x00, 0x80] as [UInt8]
    )
    func smallOrder(y: String, sign: UInt8) {
        var publicKey = bytes(y)
        publicKey[31] |= sign
        // The neutral point, and zero.
        let signature = [1] + [UInt8](repeating: 0, count: 63)
        for message in UInt8.min...UInt8.max {
            #expect(!Ed25519.isValid(signature, of: [message], by: publicKey))
        }
    }

    @Test("a common secret is that of RFC 7748, 6.1")
    func secret() {
        let privateKey = bytes("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
        let other = bytes("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")
        let secret = bytes("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742")
        #expect(X25519.secret(of: privateKey, with: other) == secret)
        #expect(X25519.secret(of: privateKey, with: Array(repeating: 0, count: 32)) == nil)
    }

    @Test("a derived key is that of RFC 5869, A.3")
    func derived() {
        let key = HKDF.key(
            from: Array(repeating: 0x0b, count: 22),
            salt: [],
            purpose: "",
            byteCount: 42
        )
        let expected = "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d20"
        #expect(key == bytes(expected + "1395faa4b61a96c8"))
    }

    /// McGrew and Viega, The Galois/Counter Mode of Operation, appendix B, test cases 13 and 14.
    @Test(
        "a sealed text is that of the authors of GCM",
        arguments: [
            ("", "530f8afbc74536b9a963b4f1c4cb738b"),
            (
                "00000000000000000000000000000000",
                "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"
            ),
        ]
    )
    func sealed(text: String, expected: String) {
        let key = [UInt8](repeating: 0, count: SealCipher.keyBytes)
        let nonce = SealCipher.Nonce(lane: 0, number: 0)
        let sealed = SealCipher(key: key, isForSealing: true)
            .sealed(bytes(text), behind: [], nonce: nonce)
        #expect(sealed == bytes(expected))
        let opened = SealCipher(key: key, isForSealing: false)
            .opened(sealed, headerBytes: 0, nonce: nonce)
        #expect(opened == bytes(text))
    }

    /// The bytes of hexadecimal digits.
    private func bytes(_ digits: String) -> [UInt8] {
        let digits = digits.compactMap(\.hexDigitValue)
        return stride(from: 0, to: digits.count, by: 2).map { place in
            UInt8(digits[place] << 4 | digits[place + 1])
        }
    }
}
