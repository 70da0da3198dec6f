import COpenSSL

/// One key of AES-256-GCM (NIST SP 800-38D), by the system's libcrypto. Its context is made once,
/// because that costs more than sealing a short message.
///
/// Messages are short and come one by one. ChaCha20-Poly1305, whose code uses wide vectors, makes a
/// link of a chain of operations 8 % slower than this on a processor of 2025, though both are as
/// fast when nothing but they runs.
///
/// `@unchecked Sendable`: it is used by one thread at a time, as its owner ensures.
@safe package final class SealCipher: @unchecked Sendable {
    /// The size of a key in bytes.
    package static let keyBytes = 32
    /// The same key never takes a nonce twice. On the wire it is the lane, three bytes of zero, and
    /// the number, with the most significant byte first.
    package struct Nonce {
        let lane: UInt8
        let number: UInt64

        package init(lane: UInt8, number: UInt64) {
            self.lane = lane
            self.number = number
        }

        fileprivate var bytes: InlineArray<12, UInt8> {
            var bytes = InlineArray<12, UInt8>(repeating: 0)
            bytes[0] = lane
            for place in 0..<8 {
                bytes[4 + place] = UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * place))
            }
            return bytes
        }
    }

    /// By how many bytes a sealed text is longer than its plain text.
    package static let tagBytes = 16

    private let context: OpaquePointer?

    /// - Parameter key: `keyBytes` bytes.
    package init(key: [UInt8], isForSealing: Bool) {
        precondition(key.count == Self.keyBytes, "a key has 32 bytes")
        LibCrypto.prepare()
        unsafe context = EVP_CIPHER_CTX_new()
        let isReady = unsafe EVP_CipherInit_ex(
            context,
            EVP_aes_256_gcm(),
            nil,
            key,
            nil,
            isForSealing ? 1 : 0
        )
        precondition(isReady == 1, "libcrypto has no AES-256-GCM")
    }

    deinit { unsafe EVP_CIPHER_CTX_free(context) }

    /// Whether the context is ready for the message of this nonce.
    private func start(with nonce: Nonce) -> Bool {
        let bytes = nonce.bytes
        return unsafe bytes.span.withUnsafeBufferPointer { bytes in
            unsafe EVP_CipherInit_ex(context, nil, nil, nil, bytes.baseAddress, -1) == 1
        }
    }

    /// The header in clear, followed by the sealed text and the tag, which covers the header as
    /// well.
    ///
    /// - Parameter text: Less than 1 GiB.
    package func sealed(_ text: [UInt8], behind header: [UInt8], nonce: Nonce) -> [UInt8] {
        let total = header.count + text.count + Self.tagBytes
        return unsafe [UInt8](unsafeUninitializedCapacity: total) { output, count in
            guard let start = output.baseAddress else { return }
            var written: CInt = 0
            unsafe start.update(from: header, count: header.count)
            let place = unsafe start + header.count
            let isDone =
                unsafe self.start(with: nonce)
                && EVP_EncryptUpdate(context, nil, &written, header, CInt(header.count)) == 1
                && (text.isEmpty
                    || EVP_EncryptUpdate(context, place, &written, text, CInt(text.count)) == 1)
                && EVP_EncryptFinal_ex(context, place + text.count, &written) == 1
                && EVP_CIPHER_CTX_ctrl(
                    context,
                    EVP_CTRL_AEAD_GET_TAG,
                    CInt(Self.tagBytes),
                    place + text.count
                ) == 1
            precondition(isDone, "libcrypto cannot seal")
            count = total
        }
    }

    /// The text behind a header of `headerBytes` bytes; `nil` if any byte of the whole was changed,
    /// or if it was sealed under another key or nonce.
    package func opened(_ bytes: [UInt8], headerBytes: Int, nonce: Nonce) -> [UInt8]? {
        let textBytes = bytes.count - headerBytes - Self.tagBytes
        guard textBytes >= 0, textBytes <= CInt.max, headerBytes >= 0 else { return nil }
        var isDone = false
        let text = unsafe [UInt8](unsafeUninitializedCapacity: max(1, textBytes)) { output, count in
            var written: CInt = 0
            isDone = unsafe bytes.withUnsafeBufferPointer { bytes in
                guard let start = bytes.baseAddress else { return false }
                let tag = unsafe UnsafeMutableRawPointer(
                    mutating: start + headerBytes + textBytes
                )
                return
                    unsafe self.start(with: nonce)
                    && EVP_CIPHER_CTX_ctrl(
                        context,
                        EVP_CTRL_AEAD_SET_TAG,
                        CInt(Self.tagBytes),
                        tag
                    ) == 1
                    && EVP_DecryptUpdate(context, nil, &written, start, CInt(headerBytes)) == 1
                    && (textBytes == 0
                        || EVP_DecryptUpdate(
                            context,
                            output.baseAddress,
                            &written,
                            start + headerBytes,
                            CInt(textBytes)
                        ) == 1)
                    && EVP_DecryptFinal_ex(context, nil, &written) == 1
            }
            // What is not authentic is never read.
            count = isDone ? textBytes : 0
        }
        return isDone ? text : nil
    }
}
