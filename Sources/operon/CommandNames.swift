import ArgumentParser
import OperonArguments
import OperonGraphFile
import OperonTerminal

/// Suggests similar commands when the first word is not a command. The parser would report it as an
/// unexpected argument.
enum CommandNames {
    /// Words that other tools use for commands that have another name here.
    private static let synonyms = [
        "ls": "list", "ps": "list", "graphs": "list", "start": "run", "exec": "run",
        "apply": "submit", "stop": "cancel", "kill": "cancel", "abort": "cancel", "rm": "cancel",
        "pause": "suspend", "hold": "suspend", "unpause": "resume", "continue": "resume",
        "describe": "show", "inspect": "show", "why": "explain", "log": "logs", "tail": "logs",
        "htop": "top", "browser": "page", "web": "page", "ui": "page", "dashboard": "page",
        "rerun": "retry", "restart": "retry", "failed": "dead",
        "queues": "queue", "keys": "key", "lock": "key", "locks": "key",
        "depend": "dependency", "dependencies": "dependency", "serve": "coordinator",
        "check": "validate", "lint": "validate", "triggers": "trigger", "cron": "trigger",
        "schedule": "trigger", "tokens": "token", "login": "token",
    ]

    /// - Throws: `Failure` for the first word that should be a command and is not.
    static func check(_ arguments: [String]) throws(Failure) {
        var command: any ParsableCommand.Type = Operon.self
        var path = "operon"
        for word in arguments {
            let configuration = command.configuration
            let known = configuration.subcommands
            // A command with subcommands has only the options `--help` and `--version`.
            guard !known.isEmpty, configuration.defaultSubcommand == nil, !word.hasPrefix("-")
            else { return }
            if word == "help", path == "operon" { continue }
            guard let next = known.first(where: { $0._commandName == word }) else {
                throw unknown(word, of: path, known.map { $0._commandName })
            }
            command = next
            path += " " + word
        }
    }

    private static func unknown(_ word: String, of path: String, _ names: [String]) -> Failure {
        let meant = synonyms[word].flatMap { names.contains($0) ? $0 : nil }
        let hint = (meant ?? Suggestion.nearest(to: word, among: names)).map {
            "Did you mean “\(path) \($0)”?"
        }
        return Failure(
            ExitStatus.usage,
            "There is no command “\(path) \(TerminalText.line(word))”.\n"
                + (hint ?? "To list the commands: \(path) --help")
        )
    }
}
