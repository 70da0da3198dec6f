package import ArgumentParser
import OperonPorts
import OperonRuntime
import OperonTerminal

/// The main function that all programs share: parses the arguments, runs the command, and turns
/// every error into a message and an exit code.
package enum Program<Command: ParsableCommand> {
    /// `name` is printed before every error message; `nil`: the message stands alone. `check`
    /// inspects the arguments before they are parsed. `usageStatus` is the exit code for arguments
    /// that cannot be parsed.
    package static func run(
        name: String? = nil,
        usageStatus: ([String]) -> Int32 = { _ in ExitStatus.usage },
        check: ([String]) throws(Failure) -> Void = { _ throws(Failure) in }
    ) async {
        // Must come before any thread or process is started.
        Environment.conceal()
        OwnProcess.raiseDescriptors()
        let arguments = Array(CommandLine.arguments.dropFirst())
        do {
            try check(arguments)
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
        } catch let error as StateDirectoryError {
            end(error.isHeld ? ExitStatus.held : ExitStatus.usage, name, error.message)
        } catch let error as ControlGroupError {
            end(ExitStatus.usage, name, error.message)
        } catch let error as WorkerOfferError {
            end(ExitStatus.usage, name, error.message)
        } catch let code as ExitCode {
            if code.isSuccess { endIfUnwritten(name) }
            Command.exit(withError: code)
        } catch {
            end(for: error, usageStatus(arguments))
        }
    }

    /// Incomplete output, as when the disk of a redirected file is full, is a failure.
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

    /// Prints help and the version to standard output, and explains a wrong call on standard error.
    private static func end(for error: any Error, _ usageStatus: Int32) -> Never {
        // An error message may quote a URL that was given in the wrong place.
        let message = Mask.passwords(in: Command.fullMessage(for: error))
        let isHelp = Command.exitCode(for: error).isSuccess
        let output = isHelp ? FileOutput.standardOutput : FileOutput.standardError
        if !message.isEmpty { output.print(message) }
        if isHelp { endIfUnwritten(nil) }
        Command.exit(withError: ExitCode(isHelp ? ExitStatus.success : usageStatus))
    }
}

/// Hides passwords in messages.
package enum Mask {
    /// The text with `***` in place of the password of every URL in it.
    package static func passwords(in text: String) -> String {
        // Matches up to the last “@” of the word, because a password that was not encoded may
        // contain one.
        text.replacing(/(:\/\/[^:@\/\s]*):[^\s]*@/) { "\($0.1):***@" }
    }
}
