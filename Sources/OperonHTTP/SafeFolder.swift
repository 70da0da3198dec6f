import OperonModel
import OperonSystem

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Folders in which no other user can replace our files.
enum SafeFolder {
    /// The mode bit that inode(7) calls S_ISVTX.
    private static let sticky: mode_t = 0o1000

    /// Creates the missing folders of a path, for this user alone.
    static func make(_ path: String) throws(HTTPServerError) {
        var part = ""
        for name in path.split(separator: "/") {
            part += "/" + name
            if unsafe access(part, F_OK) == 0 { continue }
            if unsafe mkdir(part, 0o700) == 0 { continue }
            // Another process may have created it meanwhile.
            guard errno == EEXIST else {
                throw HTTPServerError(.file, "Cannot create \(part): \(SystemWords.lastError()).")
            }
        }
    }

    /// - Throws: an error if others can write there, or if it belongs to another user.
    static func check(_ path: String) throws(HTTPServerError) {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else {
            throw HTTPServerError(.file, "\(path) cannot be used: \(SystemWords.lastError()).")
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw HTTPServerError(.file, "\(path) is not a directory.")
        }
        guard isTrusted(status.st_uid) else {
            throw HTTPServerError(
                .unsafe,
                "\(path) belongs to another user, who could replace files in it: use a directory "
                    + "of your own."
            )
        }
        // In a directory with the sticky bit, such as /tmp, only the owner of a file can replace
        // it.
        let isShared = status.st_mode & 0o022 != 0 && status.st_mode & Self.sticky == 0
        guard !isShared else {
            throw HTTPServerError(
                .unsafe,
                "Others may write to \(path), and could replace files in it: "
                    + "chmod go-w \(path)"
            )
        }
    }

    static func isTrusted(_ owner: uid_t) -> Bool {
        FileRights(mode: 0, owner: UInt32(owner), user: UInt32(geteuid())).hasTrustedOwner
    }
}
