package import OperonModel
import OperonSystem

extension ContentHash {
    /// The hash of these bytes; takes at most some milliseconds per mebibyte.
    package init(of bytes: [UInt8]) {
        guard let hash = ContentHash(bytes: SHA256.hash(of: bytes)) else {
            preconditionFailure("a SHA-256 has as many bytes as it is said to have")
        }
        self = hash
    }
}
