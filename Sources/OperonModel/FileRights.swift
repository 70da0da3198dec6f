/// What users other than its owner may do with a file or a directory.
package struct FileRights: Hashable, Sendable {
    private let mode: UInt32
    private let owner: UInt32
    private let user: UInt32

    private static let typeBits: UInt32 = 0o170000
    private static let regularFile: UInt32 = 0o100000
    private static let root: UInt32 = 0

    /// - Parameters:
    ///   - mode: the type and the permissions, as stat(2) gives them.
    ///   - owner: the numeric id of the user who owns the file.
    ///   - user: the numeric id of the user that this process runs as.
    package init(mode: UInt32, owner: UInt32, user: UInt32) {
        self.mode = mode
        self.owner = owner
        self.user = user
    }

    /// Whether other users can read the file, so that a secret in it is exposed. The group may read
    /// a file that root owns: PostgreSQL allows the same for keys. Anything but a regular file,
    /// such as a pipe, counts as safe: its creator decides who reads it.
    package var tellsSecrets: Bool {
        guard mode & Self.typeBits == Self.regularFile else { return false }
        let lent: UInt32 = owner == Self.root && user != Self.root ? 0o040 : 0
        return mode & 0o077 & ~lent != 0
    }

    /// Whether this process may trust the owner: itself, or root, which can do everything anyway.
    /// Root trusts files of all users, because root names the files itself.
    package var hasTrustedOwner: Bool { owner == user || owner == Self.root || user == Self.root }

    /// Whether other users can change the file, or the contents of the directory.
    package var isWritableByOthers: Bool { mode & 0o022 != 0 }

    /// Whether all users can read it.
    package var isReadableByAll: Bool { mode & 0o004 != 0 }

    /// The permissions as chmod(1) takes them, such as `644`.
    package var text: String { String(mode & 0o7777, radix: 8) }
}
