#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The token of a user, by which the user's commands and programs are known to a coordinator of
/// the same user over TCP. It is made at the first start of one that needs it.
package enum OwnToken {
    /// Bytes of randomness in a token: as many as a key of AES-256 has.
    private static let randomBytes = 32
    private static let fileBytesMax = 4_096

    /// The token in a file that nobody else may read; makes both if there is none.
    /// - Throws: that the file or its directory is not safe, or cannot be written.
    package static func loadOrMake(_ path: String) throws(HTTPServerError) -> String {
        if let token = try load(path) { return token }
        let end = path.lastIndex(of: "/") ?? path.startIndex
        try StateFolder.make(String(path[..<end]))
        var generator = SystemRandomNumberGenerator()
        let token = (0..<randomBytes).map { _ in
            let byte = UInt8.random(in: .min ... .max, using: &generator)
            return (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }.joined()
        let new = path + ".new-\(getpid())"
        // Of a process of the same number that died here.
        _ = unsafe unlink(new)
        defer { _ = unsafe unlink(new) }
        try write(token + "\n", to: new)
        // A link appears whole, and never in the place of one that another process made meanwhile.
        if unsafe link(new, path) == 0 { return token }
        if errno == EEXIST, let token = try load(path) { return token }
        throw HTTPServerError(.file, "\(path) cannot be made: \(SystemWords.lastError()).")
    }

    /// `nil`: there is none.
    /// - Throws: that others may read it, or that it is no token.
    package static func load(_ path: String) throws(HTTPServerError) -> String? {
        guard unsafe access(path, F_OK) == 0 else { return nil }
        let bytes: [UInt8]
        do throws(SecretFile.Problem) {
            bytes = try SecretFile.read(path, bytesMax: fileBytesMax)
        } catch {
            switch error {
            case .readableByOthers:
                throw HTTPServerError(
                    .unsafe,
                    "Others can read your token in \(path), so it protects nothing: remove the "
                        + "file, and start the coordinator again, which makes another one."
                )
            case .tooLarge: throw HTTPServerError(.file, "\(path) is too large for a token.")
            case .system(let why):
                throw HTTPServerError(.file, "Your token in \(path) cannot be read: \(why).")
            }
        }
        let token = String(decoding: bytes, as: UTF8.self).trimmingSpaces
        guard token.utf8.count >= AccessTokens.tokenBytesMin,
            token.utf8.allSatisfy({ (33...126).contains($0) })
        else {
            throw HTTPServerError(
                .file,
                "\(path) holds no token: remove it, and start the coordinator again."
            )
        }
        return token
    }

    private static func write(_ text: String, to path: String) throws(HTTPServerError) {
        let number = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard number >= 0 else {
            throw HTTPServerError(.file, "\(path) cannot be made: \(SystemWords.lastError()).")
        }
        defer { close(number) }
        let bytes = Array(text.utf8)
        let count = unsafe bytes.withUnsafeBytes { buffer in
            unsafe writeBytes(number, buffer.baseAddress, buffer.count)
        }
        guard count == bytes.count, fsync(number) == 0 else {
            throw HTTPServerError(.file, "\(path) cannot be written: \(SystemWords.lastError()).")
        }
    }
}

/// The system's `write`, whose name a method here has too.
@unsafe private func writeBytes(
    _ number: Int32,
    _ start: UnsafeRawPointer?,
    _ count: Int
) -> Int {
    unsafe write(number, start, count)
}
