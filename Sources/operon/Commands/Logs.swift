import ArgumentParser
import OperonArguments
import OperonModel
import OperonPorts
import OperonTerminal

struct Logs: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "logs",
        abstract: "Print the log of an operation.",
        usage: "operon logs <graph>/<operation> [<options>]",
        discussion: """
            The end of the log of each attempt is kept. On a terminal, escape sequences are \
            removed and other control characters escaped; a pipe gets the log unchanged, except \
            for bytes that are not UTF-8.
            """
    )

    @Argument(help: ArgumentHelp(Selectors.operationHelp), transform: Selectors.operation)
    var operation: OperationSelector

    @Flag(name: .shortAndLong, help: "Continue until the operation has finished.")
    var follow = false

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        try await ClientSession.run(coordinator, about: .operation(operation)) { session in
            guard follow else {
                return try Self.print(try await session.client.log(of: operation), session.console)
            }
            let name = TerminalText.line("\(operation.graph)/\(operation.operation)")
            let code = try await Detaching.run(
                session.console,
                saying: { ["To continue: operon logs --follow \(name)"] }
            ) {
                try await follow(session)
                return ExitStatus.success
            }
            throw ExitCode(code)
        }
    }

    private func follow(_ session: ClientSession) async throws {
        // The stream begins with the logs of earlier attempts.
        for try await log in try await session.client.followLog(of: operation) {
            try Self.print([log], session.console)
        }
    }

    private static func print(_ logs: [LogView], _ console: Console) throws {
        for log in logs {
            switch console.format {
            case .json: try console.writeJSON(log)
            case .quiet: break
            case .text:
                if logs.count > 1 {
                    console.say([console.speech.attemptHead(log)])
                }
                if let bytes = log.missedBytes {
                    console.say([console.speech.missedLog(bytes)])
                }
                guard !log.text.isEmpty else { continue }
                if console.output.isTerminal {
                    console.write(console.data.log(log.text))
                } else {
                    console.output.write(Array(log.text.utf8))
                }
            }
        }
    }
}
