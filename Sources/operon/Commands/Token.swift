import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

struct Token: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token",
        abstract: "Create, list and revoke the tokens of a coordinator.",
        discussion: """
            These commands need a token with the role administer, or the socket of your own \
            coordinator.
            """,
        subcommands: [TokenCreate.self, TokenList.self, TokenRevoke.self]
    )
}

/// A role on the command line.
extension AccessRole: ExpressibleByArgument {
    public init?(argument: String) { self.init(name: argument) }
}

struct TokenCreate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Create a token, and print it once.",
        usage: "operon token create <name> --role <role> [<options>]",
        discussion: """
            The token is valid at once. The coordinator keeps only its SHA-256, so nobody can \
            print it again. To give it to a command: --token-file, or OPERON_TOKEN_FILE.
            """
    )

    @Argument(help: "The name, which is recorded with each change: letters, digits, or any of ._@-")
    var name: String

    @Option(
        help: ArgumentHelp(
            "view, submit, operate or administer; each allows what those before it allow.",
            valueName: "role"
        )
    )
    var role: AccessRole

    @Option(
        help: ArgumentHelp(
            "The only queues that it may submit to, separated by commas. For the role submit.",
            valueName: "queues"
        )
    )
    var queues: String?

    @Option(
        help: ArgumentHelp(
            "How long it is valid, such as 12h or 30d. Default: until it is revoked.",
            valueName: "duration"
        )
    )
    var expires: DurationArgument?

    @OptionGroup var coordinator: ClientArguments

    func validate() throws {
        guard queues == nil || role == .submit else {
            throw ValidationError("--queues is for --role submit")
        }
        if let expires, expires.duration < .seconds(1) {
            throw ValidationError("--expires must be at least 1s")
        }
    }

    func run() async throws {
        var request = TokenRequest(name: name, role: role)
        request.queues = queues?.split(separator: ",", omittingEmptySubsequences: false)
            .map(String.init)
        request.expiresInSeconds = expires.map { Int($0.duration.components.seconds) }
        try await ClientSession.run(coordinator) { [request] session in
            let view = try await session.change { () async throws(ClientError) in
                try await session.client.createToken(request)
            }
            switch session.console.format {
            case .text, .quiet: session.console.write([TerminalText.line(view.token ?? "")])
            case .json: try session.console.show(view) { _ in [] }
            }
            session.console.say(session.console.speech.created(view))
        }
    }
}

struct TokenList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the tokens: role, end, and who created them.",
        usage: "operon token list [<options>]"
    )

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        try await ClientSession.run(coordinator) { session in
            let tokens = try await session.client.tokens()
            try session.console.show(Tokens(tokens: tokens), names: tokens.map(\.name)) {
                $0.tokens(tokens)
            }
            if tokens.isEmpty {
                session.console.say([
                    "There are no tokens. To create one: operon token create NAME --role ROLE"
                ])
            }
        }
    }

    private struct Tokens: Encodable {
        let tokens: [TokenView]
    }
}

struct TokenRevoke: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke",
        abstract: "Revoke a token: it is refused from now on.",
        usage: "operon token revoke <name> [<options>]",
        discussion: """
            Sessions of browsers and streams that began with it end. Graphs that it submitted keep \
            running, and its triggers keep firing. A token of the coordinator's --tokens file is \
            revoked by removing its line.
            """
    )

    @Argument(help: "The name of the token.")
    var name: String

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        try await ClientSession.run(coordinator) { session in
            let view = try await session.change { () async throws(ClientError) in
                try await session.client.revokeToken(name)
            }
            try session.console.tell(view, names: [view.name]) { $0.revoked(view) }
        }
    }
}
