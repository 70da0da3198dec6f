import ArgumentParser
import OperonArguments
import OperonTerminal

struct Top: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "top",
        abstract: "Show the cluster on one screen: graphs, what runs, and why things wait.",
        usage: "operon top [<options>]",
        discussion: """
            Needs a terminal. Arrow keys choose a graph or an operation. Enter shows the \
            operations of a graph, e explains why an operation does not run, c cancels after a \
            question, Esc goes back, q ends the command.
            """
    )

    @Option(help: "The time between two updates, \(DurationArgument.example).")
    var interval: DurationArgument?

    @OptionGroup var address: AddressArguments

    func validate() throws {
        if let interval, interval.duration < .milliseconds(100) {
            throw ValidationError("--interval must be at least 100ms")
        }
    }

    func run() async throws {
        guard FileOutput.standardOutput.isTerminal else {
            throw Failure(
                ExitStatus.usage,
                "operon top needs a terminal. For scripts: operon status, operon list"
            )
        }
        let interval = interval?.duration ?? .seconds(1)
        try await ClientSession.run(address, .text) { session in
            try await TopSession(session, interval: interval).run()
        }
    }
}
