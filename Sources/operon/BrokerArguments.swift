import ArgumentParser
import Foundation

/// Where the broker is. A URL may come from a file or the environment, so that its password shows
/// in no list of processes.
struct BrokerArguments: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The broker: amqp://user:password@host:5672/vhost, or amqps:// for TLS.",
            discussion: "Default: the variable OPERON_BROKER, if it is set.",
            valueName: "url"
        )
    )
    var broker: String?

    @Option(help: "A file whose first line is the broker's URL.", completion: .file())
    var brokerFile: String?

    @Option(help: "Begins the names of all queues and exchanges; one coordinator per prefix.")
    var prefix = "operon."

    var isNamed: Bool { broker != nil || brokerFile != nil }

    func validate() throws {
        if broker != nil, brokerFile != nil {
            throw ValidationError("--broker and --broker-file exclude each other")
        }
    }

    /// The URL; `nil`: none was named.
    func url(environment: [String: String]) throws -> String? {
        if let broker { return broker }
        if let brokerFile {
            let text: String
            do {
                text = try String(contentsOfFile: brokerFile, encoding: .utf8)
            } catch {
                throw Failure(
                    ExitStatus.usage,
                    "\(brokerFile) cannot be read: \(error.localizedDescription)"
                )
            }
            let line = text.split(whereSeparator: \.isNewline).first.map(String.init) ?? ""
            let url = line.trimmingCharacters(in: .whitespaces)
            guard !url.isEmpty else {
                throw Failure(ExitStatus.usage, "\(brokerFile) has no URL in its first line")
            }
            return url
        }
        guard let url = environment["OPERON_BROKER"], !url.isEmpty else { return nil }
        return url
    }
}
