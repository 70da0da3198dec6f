package import ArgumentParser
package import Logging
import OperonRuntime
import OperonTerminal

/// How a program that is left alone says what it does.
package struct LogArguments: ParsableArguments {
    @Flag(help: "Log graphs, workers and connections, not only problems.")
    package var verbose = false

    @Option(help: "text, a sentence a line; or json, an object a line, with more said.")
    package var logFormat: LogFormat = .text

    package enum LogFormat: String, ExpressibleByArgument, CaseIterable, Sendable {
        case text
        case json
    }

    package init() {}

    /// A logger of this name, and what says sentences for people, both to the standard error.
    package func make(
        _ name: String
    ) -> (logger: Logger, say: @Sendable (_ sentence: String) -> Void) {
        switch logFormat {
        case .text:
            let say: @Sendable (String) -> Void = { line in
                let text = "\(name): " + TerminalText.line(line) + "\n"
                FileOutput.standardError.write(Array(text.utf8))
            }
            let level: Logger.Level = verbose ? .debug : .warning
            return (Logger(label: name) { _ in PlainLog(level: level, write: say) }, say)
        case .json:
            let level: Logger.Level = verbose ? .debug : .info
            let logger = Logger(label: name) { label in
                JSONLog(label: label, level: level) { FileOutput.standardError.write($0) }
            }
            return (logger, { logger.notice("\($0)") })
        }
    }
}
