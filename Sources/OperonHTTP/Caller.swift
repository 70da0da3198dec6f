package import OperonModel

/// The sender of a request.
package struct Caller: Hashable, Sendable {
    /// Empty for the own user of the coordinator, and if no token was needed.
    package var name: String
    package var role: AccessRole
    /// The queues to which it may submit; `nil`: all.
    package var queues: [String]?
    /// SHA-256 of the token that it has shown; `nil`: none.
    @Secret package var digest: [UInt8]?

    package init(
        name: String,
        role: AccessRole,
        queues: [String]? = nil,
        digest: [UInt8]? = nil
    ) {
        self.name = name
        self.role = role
        self.queues = queues
        self.digest = digest
    }

    /// The name in the audit. No token of a file has a name with a space, and the own token has
    /// none.
    var auditName: String {
        if !name.isEmpty { return name }
        return role == .administer || digest != nil ? "own user" : "any user"
    }
}
