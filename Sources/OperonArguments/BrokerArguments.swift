package import ArgumentParser
import OperonRuntime
import OperonSystem

/// The address of the broker. The URL may come from a file or the environment, so that no process
/// list shows its password.
package struct BrokerArguments: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The broker: amqp://user:password@host:5672/vhost, or amqps:// for TLS.",
            discussion: "Default: the variable OPERON_BROKER.",
            valueName: "url"
        )
    )
    package var broker: String?

    @Option(help: "A file whose first line is the broker's URL.", completion: .file())
    package var brokerFile: String?

    @Option(help: "The prefix of all names on the broker; each prefix has one coordinator.")
    package var prefix = "operon."

    package init() {}

    /// Whether the command line names a broker; the environment may name another one.
    package var isNamed: Bool { broker != nil || brokerFile != nil }

    package func validate() throws {
        if broker != nil, brokerFile != nil {
            throw ValidationError("--broker and --broker-file cannot be combined")
        }
    }

    /// The URL of the broker; `nil`: none was named.
    ///
    /// - Throws: `Failure` for a file without a URL.
    package func url(environment: [String: String]) throws(Failure) -> String? {
        if let broker { return broker }
        if let brokerFile { return try SecretFile.firstLine(of: brokerFile, what: "URL") }
        guard let url = environment[Self.variable], !url.isEmpty else { return nil }
        return url
    }

    /// The URL of the broker, for a program that cannot run without one.
    ///
    /// - Throws: `Failure` for a file without a URL, and if no broker was named.
    package func requiredURL(environment: [String: String]) throws(Failure) -> String {
        guard let url = try url(environment: environment) else {
            throw Failure(
                ExitStatus.usage,
                "Give the URL of the broker: --broker, --broker-file or \(Self.variable)."
            )
        }
        return url
    }

    private static let variable = OwnProcess.brokerVariable
}
