import COpenSSL

/// Signatures with Ed25519 (RFC 8032), by the system's libcrypto.
package enum Ed25519 {
    /// The size of a private key and of a public key in bytes.
    package static let keyBytes = 32
    /// The size of a signature in bytes.
    package static let signatureBytes = 64

    /// The public key of a private key of `keyBytes` bytes.
    package static func publicKey(of privateKey: [UInt8]) -> [UInt8] {
        unsafe RawKey(kind: EVP_PKEY_ED25519, privateKey: privateKey).publicKey
    }

    /// The signature of a message. Equal keys and messages give equal signatures.
    package static func signature(of message: [UInt8], by privateKey: [UInt8]) -> [UInt8] {
        let key = unsafe RawKey(kind: EVP_PKEY_ED25519, privateKey: privateKey)
        let context = unsafe EVP_MD_CTX_new()
        defer { unsafe EVP_MD_CTX_free(context) }
        return unsafe [UInt8](unsafeUninitializedCapacity: signatureBytes) { signature, count in
            count = signatureBytes
            let isDone = unsafe message.withUnsafeBufferPointer { message in
                unsafe EVP_DigestSignInit(context, nil, nil, nil, key.pointer) == 1
                    && EVP_DigestSign(
                        context,
                        signature.baseAddress,
                        &count,
                        message.baseAddress,
                        message.count
                    ) == 1
            }
            precondition(isDone && count == signatureBytes, "libcrypto has no Ed25519")
        }
    }

    /// Whether the holder of the private key made this signature of the message. No signature is
    /// valid by a public key of a small order: it has no private key, and libcrypto takes one
    /// signature for one in eight of all messages, or for more (RFC 8032, 5.1.7, lets it).
    package static func isValid(
        _ signature: [UInt8],
        of message: [UInt8],
        by publicKey: [UInt8]
    ) -> Bool {
        guard signature.count == signatureBytes, !isOfSmallOrder(publicKey),
            let key = unsafe RawKey(kind: EVP_PKEY_ED25519, publicKey: publicKey)
        else { return false }
        let context = unsafe EVP_MD_CTX_new()
        defer { unsafe EVP_MD_CTX_free(context) }
        return unsafe message.withUnsafeBufferPointer { message in
            unsafe signature.withUnsafeBufferPointer { signature in
                unsafe EVP_DigestVerifyInit(context, nil, nil, nil, key.pointer) == 1
                    && EVP_DigestVerify(
                        context,
                        signature.baseAddress,
                        signature.count,
                        message.baseAddress,
                        message.count
                    ) == 1
            }
        }
    }

    /// Whether eight times the point is the neutral one.
    private static func isOfSmallOrder(_ publicKey: [UInt8]) -> Bool {
        var y = publicKey
        if let last = y.indices.last { y[last] &= 0x7f }
        return pointsOfSmallOrder.contains(y)
    }

    /// All points of an order up to 8 by their y, in each encoding that libcrypto takes. The bit of
    /// the sign of x is left out.
    private static let pointsOfSmallOrder: Set<[UInt8]> = {
        let prime: [UInt8] = [0xed] + Array(repeating: 0xff, count: keyBytes - 2) + [0x7f]
        func small(_ value: UInt8) -> [UInt8] {
            [value] + Array(repeating: 0, count: keyBytes - 1)
        }
        func besidePrime(_ lowest: UInt8) -> [UInt8] { [lowest] + prime.dropFirst() }
        return [
            small(0), small(1), besidePrime(0xec), prime, besidePrime(0xee),
            [
                0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef,
                0x98, 0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88,
                0x6d, 0x53, 0xfc, 0x05,
            ],
            [
                0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10,
                0x67, 0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77,
                0x92, 0xac, 0x03, 0x7a,
            ],
        ]
    }()
}

/// Agreement on a secret with X25519 (RFC 7748), by the system's libcrypto.
package enum X25519 {
    /// The size of a private key, of a public key and of a secret in bytes.
    package static let keyBytes = 32

    /// The public key of a private key of `keyBytes` bytes.
    package static func publicKey(of privateKey: [UInt8]) -> [UInt8] {
        unsafe RawKey(kind: EVP_PKEY_X25519, privateKey: privateKey).publicKey
    }

    /// The secret that both sides compute; `nil` for a public key that none belongs to, or that
    /// would give a secret that everybody knows.
    package static func secret(of privateKey: [UInt8], with publicKey: [UInt8]) -> [UInt8]? {
        guard let other = unsafe RawKey(kind: EVP_PKEY_X25519, publicKey: publicKey) else {
            return nil
        }
        let own = unsafe RawKey(kind: EVP_PKEY_X25519, privateKey: privateKey)
        let context = unsafe EVP_PKEY_CTX_new(own.pointer, nil)
        defer { unsafe EVP_PKEY_CTX_free(context) }
        guard unsafe EVP_PKEY_derive_init(context) == 1,
            unsafe EVP_PKEY_derive_set_peer(context, other.pointer) == 1
        else { return nil }
        var isDone = false
        // Fails for points of a small order (RFC 7748, 6.1).
        let secret = unsafe [UInt8](unsafeUninitializedCapacity: keyBytes) { secret, count in
            count = keyBytes
            isDone = unsafe EVP_PKEY_derive(context, secret.baseAddress, &count) == 1
            if !isDone { count = 0 }
        }
        return isDone && secret.count == keyBytes ? secret : nil
    }
}

/// Keys derived from a secret with HKDF and SHA-256 (RFC 5869), by the system's libcrypto.
package enum HKDF {
    /// - Parameter byteCount: From 1 to 255 × 32.
    package static func key(
        from secret: [UInt8],
        salt: [UInt8],
        purpose: String,
        byteCount: Int
    ) -> [UInt8] {
        LibCrypto.prepare()
        let context = unsafe EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nil)
        defer { unsafe EVP_PKEY_CTX_free(context) }
        let info = Array(purpose.utf8)
        return unsafe [UInt8](unsafeUninitializedCapacity: byteCount) { key, count in
            count = byteCount
            let isDone =
                unsafe EVP_PKEY_derive_init(context) == 1
                && EVP_PKEY_CTX_set_hkdf_md(context, EVP_sha256()) == 1
                && EVP_PKEY_CTX_set1_hkdf_salt(context, salt, CInt(clamping: salt.count)) == 1
                && EVP_PKEY_CTX_set1_hkdf_key(context, secret, CInt(clamping: secret.count)) == 1
                && EVP_PKEY_CTX_add1_hkdf_info(context, info, CInt(clamping: info.count)) == 1
                && EVP_PKEY_derive(context, key.baseAddress, &count) == 1
            precondition(isDone && count == byteCount, "libcrypto has no HKDF with SHA-256")
        }
    }
}

/// A key of libcrypto.
@unsafe private final class RawKey {
    let pointer: OpaquePointer?

    init(kind: CInt, privateKey: [UInt8]) {
        LibCrypto.prepare()
        unsafe pointer = EVP_PKEY_new_raw_private_key(kind, nil, privateKey, privateKey.count)
        precondition(unsafe pointer != nil, "a private key has 32 bytes")
    }

    /// `nil` for bytes that are no key of this kind.
    init?(kind: CInt, publicKey: [UInt8]) {
        LibCrypto.prepare()
        unsafe pointer = EVP_PKEY_new_raw_public_key(kind, nil, publicKey, publicKey.count)
        if unsafe pointer == nil { return nil }
    }

    deinit { unsafe EVP_PKEY_free(pointer) }

    var publicKey: [UInt8] {
        unsafe [UInt8](unsafeUninitializedCapacity: 32) { bytes, count in
            count = 32
            let isDone = unsafe EVP_PKEY_get_raw_public_key(pointer, bytes.baseAddress, &count)
            precondition(isDone == 1 && count == 32, "a public key has 32 bytes")
        }
    }
}
