import Glibc

/// What users other than its owner may do with a file or a directory.
package struct FileRights: Hashable, Sendable {
    private let mode: mode_t
    private let owner: uid_t

    /// Of what a path leads to; `nil`: that cannot be looked at.
    package init?(_ path: String) {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return nil }
        mode = status.st_mode
        owner = status.st_uid
    }

    /// Whether a secret in this file is none: others can read it. The group may read a file that
    /// root lends to it, as PostgreSQL has it for keys. What is no file, such as a pipe, is whoever
    /// made it.
    package var tellsSecrets: Bool {
        guard mode & S_IFMT == S_IFREG else { return false }
        let lent: mode_t = owner == 0 && geteuid() != 0 ? 0o040 : 0
        return mode & 0o077 & ~lent != 0
    }

    /// Whether others can change it, or what is in it.
    package var isWritableByOthers: Bool { mode & 0o022 != 0 }

    /// Whether everybody can read it.
    package var isReadableByAll: Bool { mode & 0o004 != 0 }

    /// As for chmod(1): `644`.
    package var text: String { String(mode & 0o7777, radix: 8) }
}
