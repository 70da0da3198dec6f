import ArgumentParser
import OperonTerminal

/// The command line. Parses, hands over, and turns whatever went wrong into an exit code.
@main
struct Operon: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "operon",
        abstract: "Run graphs of operations, on this machine or on a cluster.",
        discussion: """
            Exit codes: 0 everything succeeded; 1 an operation failed; 2 the input or the call \
            was wrong; 3 cancelled; 5 the broker cannot be reached; 6 no such object; \
            7 no failure, but operations were skipped for want of a success; 8 another \
            coordinator holds the prefix; 130 and 143 this process got the signal.
            """,
        version: Version.text,
        subcommands: [Run.self, Validate.self, Graph.self, Completion.self]
    )

    static func main() async {
        do {
            var command = try parseAsRoot()
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
        } catch let failure as Failure {
            FileOutput.standardError.write(Array((failure.message + "\n").utf8))
            exit(withCode: failure.code)
        } catch let code as ExitCode {
            exit(withCode: code.rawValue)
        } catch {
            finish(error)
        }
    }

    /// Help and the version go to standard output; a wrong call is explained on standard error.
    private static func finish(_ error: any Error) -> Never {
        let message = fullMessage(for: error)
        let isHelp = exitCode(for: error).isSuccess
        let output = isHelp ? FileOutput.standardOutput : FileOutput.standardError
        if !message.isEmpty { output.write(Array((message + "\n").utf8)) }
        exit(withCode: isHelp ? 0 : ExitStatus.usage)
    }

    private static func exit(withCode code: Int32) -> Never {
        exit(withError: ExitCode(code))
    }
}

/// What a command says when it cannot do what was asked: sentences for a person, and an exit code.
struct Failure: Error {
    let code: Int32
    let message: String

    init(_ code: Int32, _ message: String) {
        self.code = code
        self.message = message
    }
}

/// The exit codes that a script may rely on.
enum ExitStatus {
    static let success: Int32 = 0
    static let failed: Int32 = 1
    static let usage: Int32 = 2
    static let cancelled: Int32 = 3
    static let unreachable: Int32 = 5
    static let noSuchObject: Int32 = 6
    static let skipped: Int32 = 7
    static let prefixHeld: Int32 = 8
    static let interrupted: Int32 = 130
    static let terminated: Int32 = 143
}
