/// The least privileges that a user of the broker needs for a role, as patterns of RabbitMQ's
/// permissions. `deploy/rabbitmq/definitions` grants the same, and SECURITY.md lists them.
package struct BrokerRights: Hashable, Sendable {
    package let configure: String
    package let write: String
    package let read: String

    package init(_ role: BrokerProbe.Role, prefix: String) {
        let prefix = Self.escaped(prefix)
        switch role {
        case .coordinator:
            configure =
                "^\(prefix)(coordinator$|(events|beats)(\\.|$)|dispatch$|broadcast$|asks\\.)"
            write = "^(\(prefix)((events|beats)(\\.|$)|dispatch$|broadcast$)|amq\\.default$)"
            read = "^\(prefix)(coordinator$|(events|beats)(\\.|$)|asks\\.)"
        case .worker:
            configure = "^\(prefix)worker\\."
            write = "^\(prefix)(worker\\.|events$|beats$)"
            read = "^\(prefix)(worker\\.|dispatch$|broadcast$)"
        }
    }

    /// A part of a regular expression that matches exactly this text.
    private static func escaped(_ text: String) -> String {
        text.map { "].[*^$+?(){}|\\".contains($0) ? "\\\($0)" : "\($0)" }.joined()
    }
}
