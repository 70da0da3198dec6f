package import ArgumentParser
package import Logging
import OperonRuntime
import OperonTerminal

/// The logging options of a long-running program.
package struct LogArguments: ParsableArguments {
    @Flag(help: "Log graphs, workers and connections too, not only problems.")
    package var verbose = false

    @Option(help: "text: a sentence per line; json: an object per line, with more detail.")
    package var logFormat: LogFormat = .text

    package enum LogFormat: String, ExpressibleByArgument, CaseIterable, Sendable {
        case text
        case json
    }

    package init() {}

    /// Creates a logger with this name and a function that prints sentences for people. Both write
    /// to standard error, and neither blocks if its reader is slow.
    package func make(
        _ name: String
    ) -> (logger: Logger, say: @Sendable (_ sentence: String) -> Void) {
        switch logFormat {
        case .text:
            @Sendable func bytes(_ line: String) -> [UInt8] {
                Array("\(name): \(TerminalText.line(line))\n".utf8)
            }
            let queue = Self.queue { bytes(Self.leftOut($0)) }
            let say: @Sendable (String) -> Void = { queue.add(bytes($0)) }
            let level: Logger.Level = verbose ? .debug : .warning
            return (Logger(label: name) { _ in PlainLog(level: level, write: say) }, say)
        case .json:
            let level: Logger.Level = verbose ? .debug : .info
            let own = JSONLog(label: name, level: level) { _ in }
            let queue = Self.queue { own.line(.warning, Self.leftOut($0)) }
            let logger = Logger(label: name) { label in
                JSONLog(label: label, level: level) { queue.add($0) }
            }
            return (logger, { logger.notice("\($0)") })
        }
    }

    private static func queue(
        leftOut: @escaping @Sendable (_ count: Int) -> [UInt8]
    ) -> LineQueue {
        let queue = LineQueue(write: { FileOutput.standardError.write($0) }, leftOut: leftOut)
        queue.keepUntilExit()
        return queue
    }

    private static func leftOut(_ count: Int) -> String {
        "\(count) lines of this log are missing here: they were not read in time"
    }
}
