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
    ///   - owner: the number of the user whose file it is.
    ///   - user: the number of the user as whom this process runs.
    package init(mode: UInt32, owner: UInt32, user: UInt32) {
        self.mode = mode
        self.owner = owner
        self.user = user
    }

    /// Whether a secret in this file is none: others can read it. The group may read a file that
    /// root lends to it, as PostgreSQL has it for keys. What is no file, such as a pipe, is whoever
    /// made it.
    package var tellsSecrets: Bool {
        guard mode & Self.typeBits == Self.regularFile else { return false }
        let lent: UInt32 = owner == Self.root && user != Self.root ? 0o040 : 0
        return mode & 0o077 & ~lent != 0
    }

    /// Whether its owner may be believed: this user, and root, who may do everything anyway. Root
    /// trusts the files of everybody: it names them itself.
    package var hasTrustedOwner: Bool { owner == user || owner == Self.root || user == Self.root }

    /// Whether others can change it, or what is in it.
    package var isWritableByOthers: Bool { mode & 0o022 != 0 }

    /// Whether everybody can read it.
    package var isReadableByAll: Bool { mode & 0o004 != 0 }

    /// As for chmod(1): `644`.
    package var text: String { String(mode & 0o7777, radix: 8) }
}
