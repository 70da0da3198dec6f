/// The process that an operation is.
package struct CommandDetail: Hashable, Sendable, Codable {
    package var arguments: [String]
    /// `nil`: the one in which the worker started.
    package var directory: String?
    /// The names of variables that are set for it. Their values may be secrets.
    package var environment: [String]

    package init(_ command: CommandDescription) {
        arguments = command.arguments
        directory = command.directory
        environment = (Array(command.environment.keys) + command.secrets.keys).sorted()
    }
}

/// When an operation is retried after its own failures.
package struct RetryDetail: Hashable, Sendable, Codable {
    /// How many more attempts may follow the first.
    package var limit: Int
    /// The pause before the first retry, in seconds.
    package var delay: Double

    package init(_ policy: RetryPolicy) {
        limit = Int(policy.limit)
        delay = policy.delay.seconds
    }
}
