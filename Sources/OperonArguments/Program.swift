package import ArgumentParser
import OperonPorts
import OperonRuntime
import OperonTerminal

/// How every program of ours begins and ends: parses, runs, and turns whatever went wrong into
/// words and an exit code.
package enum Program<Command: ParsableCommand> {
    /// `name` begins every sentence about a failure; `nil`: the sentence stands alone. `check`
    /// looks at the arguments before they are parsed.
    package static func run(
        name: String? = nil,
        check: ([String]) throws(Failure) -> Void = { _ throws(Failure) in }
    ) async {
        // Before any thread, and before anything is started.
        Environment.conceal()
        OwnProcess.raiseDescriptors()
        do {
            try check(Array(CommandLine.arguments.dropFirst()))
            var command = try Command.parseAsRoot()
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
            endIfUnwritten(name)
        } catch let failure as Failure {
            end(failure.code, name, failure.message)
        } catch let error as PortError {
            end(ExitStatus.of(error), name, error.message)
        } catch let code as ExitCode {
            if code.isSuccess { endIfUnwritten(name) }
            Command.exit(withError: code)
        } catch {
            end(for: error)
        }
    }

    /// A file that was to get the output, and has only a part of it, is no success.
    private static func endIfUnwritten(_ name: String?) {
        guard let failure = FileOutput.standardOutput.failure else { return }
        end(ExitStatus.failed, name, "standard output cannot be written: \(failure)")
    }

    private static func end(_ code: Int32, _ name: String?, _ message: String) -> Never {
        let begin = name.map { "\($0): " } ?? ""
        LineQueue.flushKept()
        FileOutput.standardError.write(Array("\(begin)\(Mask.passwords(in: message))\n".utf8))
        Command.exit(withError: ExitCode(code))
    }

    /// Help and the version go to standard output; a wrong call is explained on standard error.
    private static func end(for error: any Error) -> Never {
        // A URL in the wrong place is quoted by whoever complains of it.
        let message = Mask.passwords(in: Command.fullMessage(for: error))
        let isHelp = Command.exitCode(for: error).isSuccess
        let output = isHelp ? FileOutput.standardOutput : FileOutput.standardError
        if !message.isEmpty { output.print(message) }
        if isHelp { endIfUnwritten(nil) }
        Command.exit(withError: ExitCode(isHelp ? ExitStatus.success : ExitStatus.usage))
    }
}

/// Keeps passwords out of what is printed.
package enum Mask {
    /// The text with `***` in place of the password of every URL in it.
    package static func passwords(in text: String) -> String {
        // Up to the last “@” of the word: a password that was not encoded may have one too.
        text.replacing(/(:\/\/[^:@\/\s]*):[^\s]*@/) { "\($0.1):***@" }
    }
}
