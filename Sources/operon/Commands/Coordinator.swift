import ArgumentParser
import OperonArguments
import OperonModel

/// `operon coordinator`: keeps graphs, dispatches their operations to workers, answers clients.
struct Coordinator: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "coordinator",
        abstract: "Keep graphs, and send their operations to workers over a broker.",
        usage: "operon coordinator --broker <url> [<options>]",
        discussion: """
            The coordinator keeps all graphs in one file. If it is stopped or killed, operations \
            on workers keep running, and it resumes where it left off when it starts again. Each \
            prefix of a broker, and each file, has one coordinator.

            SIGTERM or Ctrl-C stops it. That cancels no operation.
            """
    )

    @OptionGroup var broker: BrokerArguments
    @OptionGroup var trust: CoordinatorTrustArguments
    @OptionGroup var arguments: CoordinatorArguments

    func run() async throws {
        let environment = Environment.current
        let url = try broker.requiredURL(environment: environment)
        let session = try CoordinatorSession(arguments, environment: environment)
        try await session.run(on: .broker(url: url, prefix: broker.prefix, trust))
    }
}

/// `operon up`: a coordinator and a worker in one process, without a broker.
struct Up: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "up",
        abstract: "Run a coordinator and a worker in this process, without a broker.",
        usage: "operon up [<options>]",
        discussion: """
            For one machine. Submit to it from another terminal: operon submit FILE. See it in a \
            browser: operon page. The page is on a free port of this machine, and needs a login. \
            With --listen, this port is not opened.

            After SIGTERM or Ctrl-C, running operations have --drain-timeout to finish. Those that \
            have not finished by then, or at a second signal, are stopped, and run again at the \
            next start of operon up.
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
            "How long running operations have to finish after a signal.",
            valueName: "seconds"
        )
    )
    var drainTimeout = 30.0

    @OptionGroup var offer: OfferArguments

    @OptionGroup var secrets: SecretArguments

    @OptionGroup var arguments: CoordinatorArguments

    func validate() throws {
        if let slots, !(1...Limits().slots).contains(slots) {
            throw ValidationError("--slots must be from 1 to \(Limits().slots)")
        }
        try DrainTimeout.check(drainTimeout)
    }

    func run() async throws {
        let environment = Environment.current
        let session = try CoordinatorSession(arguments, hasPage: true, environment: environment)
        let worker = CoordinatorSession.OwnWorker(
            slots: slots ?? Environment.processorCount,
            resources: offer.amounts,
            labels: offer.workerLabels,
            controlGroups: offer.controlGroups,
            secrets: secrets.places(environment),
            drain: .seconds(drainTimeout)
        )
        try await session.run(on: .thisProcess(worker))
    }
}
