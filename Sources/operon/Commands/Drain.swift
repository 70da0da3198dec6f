import ArgumentParser
import OperonArguments
import OperonModel
import OperonPorts
import OperonTerminal

struct Drain: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "drain",
        abstract: "Let a worker take no more operations, finish those that run, and exit.",
        usage: "operon drain <worker> [<options>]"
    )

    @Argument(help: "The name or id of a worker.")
    var worker: String

    @Flag(help: "Return when the worker has exited.")
    var wait = false

    @Option(help: "With --wait: the longest wait, \(DurationArgument.example); then exit code 4.")
    var timeout: DurationArgument?

    @OptionGroup var coordinator: ClientArguments

    func validate() throws {
        if worker.isEmpty { throw ValidationError("the name of the worker is empty") }
        if timeout != nil, !wait { throw ValidationError("--timeout needs --wait") }
    }

    func run() async throws {
        try await ClientSession.run(coordinator, about: .worker(worker)) { session in
            // Subscribes before the drain, so that no event about the worker's leaving is missed.
            let events =
                wait
                ? try await session.client.events(after: nil, graph: nil, kinds: [.workerLost])
                : nil
            let view = try await session.client.drain(worker: worker)
            try session.console.tell(view, names: [view.name]) { $0.draining(view) }
            guard let events else { return }
            let limit = timeout?.duration
            let hasLeft = try await Timeout.within(limit) {
                try await Self.hasLeft(view, session, events)
            }
            guard hasLeft != nil else {
                throw Failure(
                    ExitStatus.timedOut,
                    "Worker “\(TerminalText.line(view.name))” is still there; it leaves when it"
                        + " has finished its operations."
                )
            }
            session.console.say(["Worker “\(TerminalText.line(view.name))” has left."])
        }
    }

    /// Returns when the worker is no longer listed.
    private static func hasLeft(
        _ worker: WorkerView,
        _ session: ClientSession,
        _ events: AsyncThrowingStream<ClientEvent, any Error>
    ) async throws -> Bool {
        func isThere() async throws -> Bool {
            try await session.client.workers().contains {
                $0.id == worker.id && $0.status != "gone"
            }
        }
        guard try await isThere() else { return true }
        for try await _ in events {
            guard try await isThere() else { return true }
        }
        throw ClientError(.unreachable, "The coordinator closed the connection.")
    }
}
