import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

struct Cancel: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel",
        abstract: "Cancel an operation, a graph or the operations of a queue.",
        usage: "operon cancel <graph>[/<operation>] | --queue <name> [<options>]",
        discussion: """
            Waiting operations are cancelled at once; running ones are asked to stop. Operations \
            that depend on a cancelled one still run if their condition allows it, as the default \
            condition does; --cascade cancels them too.
            """
    )

    @OptionGroup var target: TargetArguments

    @Flag(help: "Of an operation: also cancel those that depend on it.")
    var cascade = false

    @Option(help: ArgumentHelp("The reason, for others to read.", valueName: "text"))
    var reason = ""

    @OptionGroup var waiting: WaitingArguments

    @OptionGroup var coordinator: ClientArguments

    func validate() throws {
        guard cascade else { return }
        // A graph or a queue is cancelled with all that it has.
        guard case .operation = try target.selector else {
            throw ValidationError("--cascade needs a single operation: GRAPH/OPERATION")
        }
    }

    func run() async throws {
        let selector = try target.selector
        var request = CancelRequest()
        request.cascade = cascade
        request.reason = reason
        request.wait = waiting.seconds
        try await ClientSession.run(coordinator, about: selector.asked) { session in
            let view = try await session.change { () async throws(ClientError) in
                try await session.client.cancel(selector, request)
            }
            try session.console.tell(view) {
                $0.cancelled(view, selector.subject, cascade: cascade)
            }
        }
    }
}

/// Whether a command returns when it is accepted, or when it is effective.
struct WaitingArguments: ParsableArguments {
    @Flag(help: "Return when all that was cancelled has finished, or nothing suspended can start.")
    var wait = false

    @Option(
        help:
            ArgumentHelp(
                "With --wait: the longest wait, \(DurationArgument.example); then exit code 4. "
                    + "Default: 1h."
            )
    )
    var timeout: DurationArgument?

    /// The longest time for which a coordinator lets a command wait, in seconds.
    private static let secondsMax = 3_600.0

    func validate() throws {
        if timeout != nil, !wait { throw ValidationError("--timeout needs --wait") }
        if let timeout, timeout.duration > .seconds(Self.secondsMax) {
            throw ValidationError("--timeout must be at most one hour here")
        }
    }

    /// The value that the request carries.
    var seconds: Double? {
        guard wait else { return nil }
        return timeout?.duration.seconds ?? Self.secondsMax
    }
}
