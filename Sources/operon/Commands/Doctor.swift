import ArgumentParser
import OperonAMQP
import OperonArguments
import OperonModel
import OperonTerminal

struct Doctor: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check whether a broker is usable, and list who is connected.",
        usage: "operon doctor [<options>]",
        discussion: """
            Tries everything that a coordinator, or with --role worker a worker, needs of the \
            broker, and a few things that it does not need. It is safe on a running cluster: it \
            sends nothing to workers, and leaves behind only the exchanges that any coordinator \
            declares.

            Exit codes: 0 no problem, perhaps warnings; 2 the command line was wrong; 5 the broker \
            cannot be reached or refuses something.
            """
    )

    @OptionGroup var broker: BrokerArguments

    @Option(help: "Whose permissions to try: coordinator or worker.")
    var role: BrokerProbe.Role = .coordinator

    @Option(help: ArgumentHelp("How long each answer may take.", valueName: "seconds"))
    var timeout: Double = 10

    @Option(help: "text, json or quiet.")
    var output: OutputFormat = .text

    func validate() throws {
        guard timeout > 0, timeout <= 3_600 else {
            throw ValidationError("--timeout must be more than 0 and at most an hour")
        }
    }

    func run() async throws {
        let configuration = try AMQPConfiguration(
            url: try broker.requiredURL(environment: Environment.current),
            prefix: broker.prefix
        )
        let checks = DoctorChecks(
            configuration: configuration,
            role: role,
            limit: .seconds(timeout)
        )
        let report = await checks.run()
        let output = FileOutput.standardOutput
        switch self.output {
        case .text:
            let style = TerminalStyle(
                environment: Environment.current,
                isTerminal: output.isTerminal
            )
            let lines = report.lines(style: style).map { $0 + "\n" }
            output.write(Array(lines.joined().utf8))
        case .json: output.write(report.json)
        case .quiet: break
        }
        // Whatever failed, the cause is the broker or the way to it.
        if report.mark == .failure { throw ExitCode(ExitStatus.unreachable) }
    }
}

extension BrokerProbe.Role: ExpressibleByArgument {}
