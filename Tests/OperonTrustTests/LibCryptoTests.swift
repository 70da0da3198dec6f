import COpenSSL
import Glibc
import OperonSystem
import Testing

/// libcrypto frees nothing when a process exits, whatever was the first to use it: other threads
/// may still use it, or free the same.
struct LibCryptoTests {
    enum Use: Int, CaseIterable, Codable, Sendable {
        case hash, code, sealing, signing, checking, agreeing, deriving

        func perform() {
            let key = [UInt8](repeating: 7, count: 32)
            switch self {
            case .hash: _ = SHA256.hash(of: key)
            case .code: _ = SHA256.authenticationCode(for: key, key: key)
            case .sealing: _ = SealCipher(key: key, isForSealing: true)
            case .signing: _ = Ed25519.signature(of: key, by: key)
            case .checking: _ = Ed25519.isValid(key + key, of: key, by: key)
            case .agreeing: _ = X25519.secret(of: key, with: key)
            case .deriving: _ = HKDF.key(from: key, salt: key, purpose: "", byteCount: 32)
            }
        }
    }

    @Test("libcrypto is not cleaned up when a process exits", arguments: Use.allCases)
    func exit(use: Use) async {
        await #expect(processExitsWith: .exitCode(0)) { [use] in
            // What is registered first runs last, so after a clean-up by libcrypto.
            atexit {
                let isUsable = OPENSSL_init_crypto(0, nil) == 1
                _exit(isUsable ? 0 : 3)
            }
            use.perform()
            Glibc.exit(0)
        }
    }
}
