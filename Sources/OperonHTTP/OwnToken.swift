import OperonSystem

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The token that identifies the user's commands and programs to the user's own coordinator over
/// TCP. The first coordinator that needs it creates it.
package enum OwnToken {
    /// Bytes of randomness in a token: as many as an AES-256 key has.
    private static let randomBytes = 32
    private static let fileBytesMax = 4_096

    /// The token in a file that only this user can read. Creates both if they do not exist.
    /// - Throws: an error if the file or its directory is not safe, or cannot be written.
    package static func loadOrMake(_ path: String) throws(HTTPServerError) -> String {
        if let token = try load(path) { return token }
        let end = path.lastIndex(of: "/") ?? path.startIndex
        try StateFolder.make(String(path[..<end]))
        let token = drawn()
        let new = path + ".new-\(getpid())"
        // Left by a process with the same number that died here.
        _ = unsafe unlink(new)
        defer { _ = unsafe unlink(new) }
        try SecretText.write(token + "\n", toNew: new)
        // A link makes the complete file visible at once, and never replaces one that another
        // process has created meanwhile.
        if unsafe link(new, path) == 0 { return token }
        if errno == EEXIST, let token = try load(path) { return token }
        throw HTTPServerError(.file, "\(path) cannot be created: \(SystemWords.lastError()).")
    }

    /// A new token.
    static func drawn() -> String {
        var generator = SystemRandomNumberGenerator()
        return HexText.text(
            (0..<randomBytes).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        )
    }

    /// `nil` if there is no file.
    /// - Throws: an error if others can read the file, or if it does not contain a token.
    package static func load(_ path: String) throws(HTTPServerError) -> String? {
        guard unsafe access(path, F_OK) == 0 else { return nil }
        let bytes: [UInt8]
        do throws(SecretFile.Problem) {
            bytes = try SecretFile.read(path, bytesMax: fileBytesMax)
        } catch {
            guard case .readableByOthers = error else {
                throw HTTPServerError(error, "token", in: path)
            }
            throw HTTPServerError(
                .unsafe,
                "Others can read your token in \(path), so it protects nothing: remove the "
                    + "file, and start the coordinator again; it creates a new one."
            )
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
}

/// Secrets, as files for this user alone.
enum SecretText {
    /// Creates a file with a text and puts it on the disk.
    /// - Throws: an error if there is a file, or if it cannot be written.
    static func write(_ text: String, toNew path: String) throws(HTTPServerError) {
        let number = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard number >= 0 else {
            throw HTTPServerError(.file, "\(path) cannot be created: \(SystemWords.lastError()).")
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

/// The system's `write`; a method here has the same name.
@unsafe private func writeBytes(
    _ number: Int32,
    _ start: UnsafeRawPointer?,
    _ count: Int
) -> Int {
    unsafe write(number, start, count)
}
