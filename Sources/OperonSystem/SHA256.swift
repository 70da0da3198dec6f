import COpenSSL

/// Hashes and authentication codes of the system's libcrypto, which librabbitmq links as well.
package enum SHA256 {
    /// The size of a hash and of an authentication code in bytes.
    package static let byteCount = Int(SHA256_DIGEST_LENGTH)

    /// The SHA-256 hash (FIPS 180-4); takes at most some milliseconds per mebibyte.
    package static func hash(of bytes: [UInt8]) -> [UInt8] {
        LibCrypto.prepare()
        return unsafe [UInt8](unsafeUninitializedCapacity: byteCount) { hash, count in
            let written = unsafe bytes.withUnsafeBufferPointer { bytes in
                unsafe EVP_Digest(
                    bytes.baseAddress,
                    bytes.count,
                    hash.baseAddress,
                    nil,
                    EVP_sha256(),
                    nil
                )
            }
            precondition(written == 1, "libcrypto has no SHA-256")
            count = byteCount
        }
    }

    /// The HMAC of a message with SHA-256 (RFC 2104).
    package static func authenticationCode(for message: [UInt8], key: [UInt8]) -> [UInt8] {
        LibCrypto.prepare()
        return unsafe [UInt8](unsafeUninitializedCapacity: byteCount) { code, count in
            let written = unsafe key.withUnsafeBufferPointer { key in
                unsafe message.withUnsafeBufferPointer { message in
                    unsafe HMAC(
                        EVP_sha256(),
                        key.baseAddress,
                        CInt(clamping: key.count),
                        message.baseAddress,
                        message.count,
                        code.baseAddress,
                        nil
                    )
                }
            }
            precondition(unsafe written != nil, "libcrypto has no HMAC with SHA-256")
            count = byteCount
        }
    }

    /// Whether two hashes or codes are equal, in a time that depends on their sizes alone.
    package static func isEqual(_ one: [UInt8], _ other: [UInt8]) -> Bool {
        guard one.count == other.count else { return false }
        return unsafe one.withUnsafeBufferPointer { one in
            unsafe other.withUnsafeBufferPointer { other in
                unsafe CRYPTO_memcmp(one.baseAddress, other.baseAddress, one.count) == 0
            }
        }
    }
}
