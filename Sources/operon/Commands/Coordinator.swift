import ArgumentParser
import OperonArguments

/// `operon coordinator`: keeps graphs, dispatches their operations to workers, answers clients.
struct Coordinator: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Keep graphs and hand their operations to the workers of a broker.",
        usage: "operon coordinator --broker <url> [<options>]",
        discussion: """
            Everything that was submitted is kept in one file: a coordinator that was killed goes \
            on where it was when it is started again, and what runs on workers runs on meanwhile. \
            One coordinator per prefix of a broker, and per file.

            SIGTERM or Ctrl-C ends it; no operation is cancelled by that.
            """
    )

    @OptionGroup var broker: BrokerArguments
    @OptionGroup var arguments: CoordinatorArguments

    func run() async throws {
        let environment = Environment.current
        let url = try broker.requiredURL(environment: environment)
        let session = try CoordinatorSession(arguments, environment: environment)
        try await session.run(on: .broker(url: url, prefix: broker.prefix))
    }
}

/// `operon up`: a coordinator and a worker in one process, without a broker.
struct Up: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Coordinator, worker and API in this process: no broker is needed.",
        usage: "operon up [<options>]",
        discussion: """
            For one machine. Submit to it from another terminal: operon submit FILE.

            SIGTERM or Ctrl-C gives what runs the time of --drain-timeout to end; what has not \
            ended by then is stopped, and runs again when `operon up` does.
            """
    )

    @Option(
        name: [.customShort("j"), .customLong("slots")],
        help: ArgumentHelp(
            "How many operations run at once.",
            discussion: "Default: the number of processors.",
            valueName: "n"
        )
    )
    var slots: Int?

    @Option(
        help: ArgumentHelp(
            "Seconds that running operations may take after a signal.",
            valueName: "seconds"
        )
    )
    var drainTimeout = 30.0

    @OptionGroup var arguments: CoordinatorArguments

    func validate() throws {
        if let slots, slots < 1 { throw ValidationError("--slots must be at least 1") }
        guard drainTimeout >= 0 else { throw ValidationError("--drain-timeout is negative") }
    }

    func run() async throws {
        let environment = Environment.current
        let session = try CoordinatorSession(arguments, environment: environment)
        let slots = slots ?? Environment.processorCount
        try await session.run(on: .thisProcess(slots: slots, drain: .seconds(drainTimeout)))
    }
}
