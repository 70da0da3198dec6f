import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

struct Cancel: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Cancel an operation, a graph or all of a queue.",
        usage: "operon cancel <graph>[/<operation>] | --queue <name> [<options>]",
        discussion: """
            What waits is cancelled at once; what runs is asked to stop. Dependents run all the \
            same, since a cancelled operation counts as finished, unless --cascade cancels them too.
            """
    )

    @OptionGroup var target: TargetArguments

    @Flag(help: "Cancel what depends on it, too.")
    var cascade = false

    @Option(help: ArgumentHelp("Why, for whoever asks later.", valueName: "text"))
    var reason = ""

    @OptionGroup var waiting: WaitingArguments

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        let selector = try target.selector
        var request = CancelRequest()
        request.cascade = cascade
        request.reason = reason
        request.wait = waiting.seconds
        try await ClientSession.run(coordinator, about: selector.asked) { session in
            let view = try await session.client.cancel(selector, request)
            try session.console.tell(view) {
                $0.cancelled(view, selector.subject, cascade: cascade)
            }
        }
    }
}

/// Whether a command returns when it is accepted, or when it is effective.
struct WaitingArguments: ParsableArguments {
    @Flag(help: "Return when it is effective: nothing of it starts any more.")
    var wait = false

    @Option(
        help:
            ArgumentHelp(
                "With --wait: how long at most, \(DurationArgument.example); then exit code 4. "
                    + "Default: 1h."
            )
    )
    var timeout: DurationArgument?

    /// The longest time for which a coordinator lets a command wait, in seconds.
    private static let secondsMax = 3_600.0

    func validate() throws {
        if timeout != nil, !wait { throw ValidationError("--timeout goes with --wait") }
        if let timeout, timeout.duration > .seconds(Self.secondsMax) {
            throw ValidationError("--timeout takes an hour at most here")
        }
    }

    /// The value that the request carries.
    var seconds: Double? {
        guard wait else { return nil }
        return timeout?.duration.seconds ?? Self.secondsMax
    }
}
