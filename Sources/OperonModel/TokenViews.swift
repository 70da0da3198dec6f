/// What a coordinator knows of a token; never the token itself, but in the answer that creates it.
package struct TokenView: Hashable, Sendable, Codable {
    package enum Status: String, Hashable, Sendable, Codable {
        case valid
        case expired
        case revoked
    }

    package enum Source: String, Hashable, Sendable, Codable {
        /// A line of the file of tokens.
        case file
        /// It was created by a command.
        case created
    }

    package var name: String
    package var role: AccessRole
    package var status: Status
    package var source: Source
    /// The queues to which it may submit; missing: all.
    package var queues: [String]?
    /// Missing: it does not expire.
    package var expiresAt: TimeText?
    package var createdAt: TimeText?
    package var createdBy: String?
    package var revokedAt: TimeText?
    /// The text that the holder shows. Only in the answer that creates the token.
    package var token: String?

    package init(name: String, role: AccessRole, status: Status, source: Source) {
        self.name = name
        self.role = role
        self.status = status
        self.source = source
    }
}

/// A token that is to be created.
package struct TokenRequest: Hashable, Sendable, Encodable {
    package var name: String
    package var role: AccessRole
    /// `nil`: all queues.
    package var queues: [String]?
    /// `nil`: it does not expire.
    package var expiresInSeconds: Int?

    package init(name: String, role: AccessRole) {
        self.name = name
        self.role = role
    }

    /// The longest time until a token expires: a hundred years.
    package static let secondsMax = 100 * 366 * 86_400
}
