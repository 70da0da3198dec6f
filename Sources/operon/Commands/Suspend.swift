import ArgumentParser
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTerminal

struct Suspend: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "suspend",
        abstract: "Suspend an operation, a graph or a queue.",
        usage: "operon suspend <graph>[/<operation>] | --queue <name> [<options>]",
        discussion: """
            A suspended operation does not start, nor do the operations of a suspended graph or \
            queue. Running operations keep running. The suspension ends with operon resume, or at \
            the date of --until.
            """
    )

    @OptionGroup var target: TargetArguments

    @OptionGroup var suspension: SuspensionArguments

    @OptionGroup var waiting: WaitingArguments

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        try await suspension.run(coordinator, try target.selector, wait: waiting.seconds)
    }
}

/// The reason and the end of a suspension.
struct SuspensionArguments: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "When it ends: a date such as 2026-05-01T08:30:00Z, or a duration from now, "
                + "\(DurationArgument.example).",
            valueName: "moment"
        )
    )
    var until: MomentArgument?

    @Option(help: ArgumentHelp("The reason, for others to read.", valueName: "text"))
    var reason = ""

    func validate() throws {
        guard let until, until.time <= SystemClock.wall() else { return }
        throw ValidationError("--until \(TimeText(until.time)) is in the past")
    }

    /// What is asked of the coordinator.
    var request: SuspendRequest {
        var request = SuspendRequest()
        request.reason = reason
        request.until = until.map { TimeText($0.time) }
        return request
    }

    /// Runs `suspend` and `queue suspend`.
    func run(
        _ coordinator: ClientArguments,
        _ selector: TargetSelector,
        wait: Double?
    ) async throws {
        var request = self.request
        request.wait = wait
        try await ClientSession.run(coordinator, about: selector.asked) { session in
            let view = try await session.change { () async throws(ClientError) in
                try await session.client.suspend(selector, request)
            }
            try session.console.tell(view) {
                $0.suspended(view, selector.subject, until: request.until)
            }
        }
    }
}
