import ArgumentParser
import OperonAMQP
import OperonArguments
import OperonModel
import OperonTerminal

struct Doctor: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Find out whether a broker can be used, and who is there.",
        usage: "operon doctor [<options>]",
        discussion: """
            Tries what a coordinator, or with --role worker a worker, needs of the broker. It \
            disturbs nobody: nothing it does reaches a worker, and it leaves nothing behind but \
            the exchanges that any coordinator declares.

            Exit codes: 0 nothing is in the way, though there may be warnings; 2 the call was \
            wrong; 5 the broker cannot be reached or refuses something.
            """
    )

    @OptionGroup var broker: BrokerArguments

    @Option(help: "Whose permissions are tried: coordinator or worker.")
    var role: BrokerProbe.Role = .coordinator

    @Option(help: ArgumentHelp("How long any answer may take.", valueName: "seconds"))
    var timeout: Double = 10

    @Option(help: "text, json or quiet.")
    var output: OutputFormat = .text

    func validate() throws {
        guard timeout > 0, timeout <= 3_600 else {
            throw ValidationError("--timeout takes a number over 0, an hour at most")
        }
    }

    func run() async throws {
        let configuration = try AMQPConfiguration(
            url: try broker.requiredURL(environment: Environment.current),
            prefix: broker.prefix
        )
        let examination = Examination(
            configuration: configuration,
            role: role,
            limit: .seconds(timeout)
        )
        let report = await examination.run()
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
