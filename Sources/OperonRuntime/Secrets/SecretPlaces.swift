import Glibc
import OperonModel

/// Where a worker finds the values of secrets. A name is looked for in the directory, then among
/// the credentials; the program is asked for names that neither has.
package struct SecretPlaces: Hashable, Sendable {
    /// A directory with a file for each secret, `--secrets`; `nil`: none.
    package var directory: String?
    /// The directory of the service manager, `$CREDENTIALS_DIRECTORY`; `nil`: none.
    package var credentials: String?
    /// A program that prints the value of the secret whose name it gets as its only argument,
    /// `--secrets-program`; `nil`: none. An absolute path.
    package var program: String?
    /// How long one value may take.
    var timeout = Duration.seconds(10)

    /// The most bytes of a value.
    package static let valueBytesMax = 64 << 10
    /// Credentials whose names begin with this are the worker's own, such as the broker's password.
    static let ownPrefix = "operon-"
    /// The variable in which systemd names the directory of credentials.
    package static let credentialsVariable = "CREDENTIALS_DIRECTORY"

    package init() {}

    package var isEmpty: Bool { directory == nil && credentials == nil && program == nil }

    /// Refuses places that cannot be used, or that other users may read or change.
    package func check() throws(SecretPlaceError) {
        if let directory { try Self.check(directory: directory) }
        guard let program else { return }
        guard program.hasPrefix("/") else {
            throw SecretPlaceError("“\(program)” is not an absolute path (--secrets-program).")
        }
        guard unsafe access(program, X_OK) == 0 else {
            throw SecretPlaceError("“\(program)” cannot be executed: \(SystemError.text(errno)).")
        }
    }

    private static func check(directory: String) throws(SecretPlaceError) {
        var status = stat()
        guard unsafe stat(directory, &status) == 0 else {
            let why = SystemError.text(errno)
            throw SecretPlaceError("The secrets in “\(directory)” cannot be used: \(why).")
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw SecretPlaceError("“\(directory)” is not a directory of secrets.")
        }
        let rights = FileRights(mode: status.st_mode, owner: status.st_uid, user: geteuid())
        guard rights.hasTrustedOwner else {
            throw SecretPlaceError("The secrets in “\(directory)” belong to another user.")
        }
        guard status.st_mode & othersMask == 0 else {
            throw SecretPlaceError(
                "Other users may use the secrets in “\(directory)” (mode \(rights.text)): "
                    + "chmod g-w,o= \(directory)"
            )
        }
    }

    /// The group may look into it: what the files say is checked for each of them.
    private static let othersMask: mode_t = 0o027
}

/// Why a worker cannot use secrets: a sentence for the person who starts it.
package struct SecretPlaceError: Error, Hashable, Sendable, CustomStringConvertible {
    package let message: String

    init(_ message: String) { self.message = message }

    package var description: String { message }
}

/// Reads values from files.
enum SecretValue {
    /// Why there is no value. No case has a part of one.
    enum Failure: Error, Hashable {
        case absent
        /// The system lacks something that it may have again later.
        case short(SystemError)
        /// What is wrong, as a clause.
        case unusable(String)
    }

    /// The value in the file of this name: its text without one newline at its end.
    static func value(of name: String, in directory: String) throws(Failure) -> String {
        // A FIFO in its place must not block the thread, and a link must not lead elsewhere.
        let number = unsafe open(
            "\(directory)/\(name)",
            O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
        )
        guard number >= 0 else {
            let error = SystemError.current("reading a secret")
            if error.code == ENOENT { throw .absent }
            if error.isShortage { throw .short(error) }
            if error.code == ELOOP { throw .unusable("its file is a symbolic link") }
            throw .unusable("its file cannot be opened (\(SystemError.text(error.code)))")
        }
        let file = Descriptor(owning: number)
        var status = stat()
        guard unsafe fstat(number, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw .unusable("it is not a file")
        }
        let rights = FileRights(mode: status.st_mode, owner: status.st_uid, user: geteuid())
        guard rights.hasTrustedOwner, !rights.tellsSecrets, !rights.isWritableByOthers else {
            throw .unusable("other users may use its file (mode \(rights.text))")
        }
        return try value(of: try read(file))
    }

    /// The text of a value as a file or a program gives it.
    static func value(of bytes: [UInt8]) throws(Failure) -> String {
        let value = bytes.last == UInt8(ascii: "\n") ? bytes.dropLast() : bytes[...]
        guard value.count <= SecretPlaces.valueBytesMax else {
            throw .unusable("it has more than \(SecretPlaces.valueBytesMax) bytes")
        }
        guard !value.isEmpty else { throw .unusable("it is empty") }
        guard !value.contains(0) else { throw .unusable("it contains a NUL byte") }
        guard let text = String(validating: value, as: UTF8.self) else {
            throw .unusable("it is not UTF-8")
        }
        return text
    }

    /// At most two bytes more than a value may have: its newline, and one that shows that it is too
    /// long.
    private static func read(_ file: borrowing Descriptor) throws(Failure) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: SecretPlaces.valueBytesMax + 2)
        var count = 0
        while count < bytes.count {
            let number = file.number
            let part = unsafe bytes.withUnsafeMutableBytes { buffer in
                unsafe Glibc.read(number, buffer.baseAddress! + count, buffer.count - count)
            }
            if part < 0, errno == EINTR { continue }
            guard part >= 0 else {
                throw .unusable("its file cannot be read (\(SystemError.text(errno)))")
            }
            if part == 0 { break }
            count += part
        }
        return Array(bytes[..<count])
    }
}
