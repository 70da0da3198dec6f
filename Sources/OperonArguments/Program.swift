package import ArgumentParser
import OperonPorts
import OperonRuntime
import OperonTerminal

/// The main function that all programs share: parses the arguments, runs the command, and turns
/// every error into a message and an exit code.
package enum Program<Command: ParsableCommand> {
    /// `name` is printed before every error message; `nil`: the message stands alone. `check`
    /// inspects the arguments before they are parsed. `rewrite` changes them before that.
    /// `usageStatus` is the exit code for arguments that cannot be parsed. `isJSON` tells whether
    /// the arguments ask for errors in JSON. `nearest` finds the known word that an unknown one may
    /// stand for.
    package static func run(
        name: String? = nil,
        rewrite: ([String]) -> [String] = { $0 },
        usageStatus: ([String]) -> Int32 = { _ in ExitStatus.usage },
        isJSON: ([String]) -> Bool = { _ in false },
        nearest: (_ word: String, _ known: [String]) -> String?,
        check: ([String]) throws(Failure) -> Void = { _ throws(Failure) in }
    ) async {
        // Must come before any thread or process is started.
        Environment.conceal()
        OwnProcess.raiseDescriptors()
        let arguments = rewrite(Array(CommandLine.arguments.dropFirst()))
        let report = ErrorReport(name: name, isJSON: isJSON(arguments))
        do {
            try check(arguments)
            var command = try Command.parseAsRoot(arguments)
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
            LostOutput.endIfLost(name)
        } catch let failure as Failure {
            end(failure, report)
        } catch let error as PortError {
            end(Failure(ExitStatus.of(error), error.message), report)
        } catch let error as StateDirectoryError {
            let code = error.isHeld ? ExitStatus.held : ExitStatus.usage
            end(Failure(code, error.message), report)
        } catch let error as ControlGroupError {
            end(Failure(ExitStatus.usage, error.message), report)
        } catch let error as SecretPlaceError {
            end(Failure(ExitStatus.usage, error.message), report)
        } catch let error as OperationUserError {
            end(Failure(ExitStatus.usage, error.message), report)
        } catch let error as WorkerOfferError {
            end(Failure(ExitStatus.usage, error.message), report)
        } catch let code as ExitCode {
            LostOutput.endIfLost(name, code.rawValue)
            Command.exit(withError: code)
        } catch {
            end(for: error, usageStatus(arguments), report) {
                UnknownOption.sentence(arguments, of: Command.self, nearest: nearest)
            }
        }
    }

    private static func end(_ failure: Failure, _ report: ErrorReport) -> Never {
        LineQueue.flushKept()
        FileOutput.standardError.write(Array(report.text(failure).utf8))
        Command.exit(withError: ExitCode(failure.code))
    }

    /// Prints help and the version to standard output, and explains a wrong call on standard error.
    /// `unknownOption` is called for a wrong call only: it takes longer than printing the version.
    private static func end(
        for error: any Error,
        _ usageStatus: Int32,
        _ report: ErrorReport,
        unknownOption: () -> String?
    ) -> Never {
        // An error message may quote a URL that was given in the wrong place.
        let message = Mask.passwords(in: Command.fullMessage(for: error))
        guard Command.exitCode(for: error).isSuccess else {
            let text = ErrorReport.sentences(ofParser: message, unknownOption: unknownOption())
            end(Failure(usageStatus, text), report)
        }
        if !message.isEmpty { FileOutput.standardOutput.print(message) }
        LostOutput.endIfLost()
        Command.exit(withError: ExitCode(ExitStatus.success))
    }
}

/// Standard output that takes nothing any more.
package enum LostOutput {
    /// Ends the program if a part of its standard output was lost: quietly like SIGPIPE if its
    /// reader has gone away, with an error if the disk is full. `name` is printed before the error.
    ///
    /// - Parameter code: The exit code otherwise. Those that a run or a wait ends with become that
    ///   of lost output, so that no script takes a part of the output for all of it. Others stay.
    package static func endIfLost(_ name: String? = nil, _ code: Int32 = ExitStatus.success) {
        if FileOutput.standardOutput.isClosed { OwnProcess.endAsUnread() }
        guard let failure = FileOutput.standardOutput.failure else { return }
        LineQueue.flushKept()
        let begin = name.map { "\($0): " } ?? ""
        FileOutput.standardError.print("\(begin)Standard output cannot be written: \(failure).")
        OwnProcess.end(ExitStatus.outcomes.contains(code) ? ExitStatus.outputLost : code)
    }
}

/// Hides passwords in messages.
package enum Mask {
    /// The text with `***` in place of the password of every URL in it, but for that of our own
    /// examples.
    package static func passwords(in text: String) -> String {
        // Matches up to the last “@” of the word, because a password that was not encoded may
        // contain one.
        text.replacing(/(:\/\/[^:@\/\s]*):[^\s]*@/) { match in
            match.0 == "://user:password@" ? String(match.0) : "\(match.1):***@"
        }
    }
}
