import ArgumentParser
import OperonArguments
import OperonModel
import OperonSystem
import OperonTerminal

/// Where the coordinator is, and how to print its answers: the same for every command that calls a
/// coordinator.
struct ClientArguments: ParsableArguments {
    @OptionGroup var address: AddressArguments

    @Option(help: "text, json or quiet.")
    var output: OutputFormat = .text
}

/// Where the coordinator is.
struct AddressArguments: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The coordinator: unix:PATH, http://host:port, or https:// for TLS.",
            discussion: """
                Default: the variable OPERON_COORDINATOR, else the socket of the coordinator that \
                you started without --listen: operon.sock in $XDG_STATE_HOME/operon or \
                ~/.local/state/operon.
                """,
            valueName: "url"
        )
    )
    var coordinator: String?

    @Option(
        help: ArgumentHelp(
            "A file whose first line is your token.",
            discussion: """
                Default: the variable OPERON_TOKEN_FILE, else, for a TCP address of this machine, \
                the file token beside that socket.
                """
        ),
        completion: .file()
    )
    var tokenFile: String?

    @Option(
        help: ArgumentHelp(
            "Certificates (PEM) to check the coordinator's certificate with.",
            discussion: "Default: the variable OPERON_CA_FILE, else those of the system."
        ),
        completion: .file()
    )
    var caFile: String?

    func address(environment: [String: String]) throws(Failure) -> ClientAddress {
        func variable(_ name: String) -> String? {
            environment[name].flatMap { $0.isEmpty ? nil : $0 }
        }
        let file = tokenFile ?? variable("OPERON_TOKEN_FILE")
        return ClientAddress(
            url: coordinator ?? variable("OPERON_COORDINATOR"),
            token: try file.map { file throws(Failure) in
                try SecretFile.firstLine(of: file, what: "token")
            },
            caFile: caFile ?? variable("OPERON_CA_FILE"),
            environment: environment
        )
    }
}

/// The address and the token of the coordinator to call.
struct ClientAddress: Hashable, Sendable {
    /// The URL of the coordinator; `nil`: the socket of this user's coordinator.
    var url: String?
    /// The access token; `nil`: on this machine, the token of this user's coordinators.
    var token: String?
    var caFile: String?
    /// The environment that names both.
    var environment: [String: String]
}
