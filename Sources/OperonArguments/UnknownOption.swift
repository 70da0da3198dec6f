import ArgumentParser
import FoundationEssentials

/// Finds an option that a command does not have. The parser reports a missing argument first, and
/// takes the value of an unknown option for an argument, so its message can hide the mistake.
enum UnknownOption {
    /// The parser's description of a command.
    private struct Help: Decodable {
        struct Command: Decodable {
            var arguments: [Argument]?
        }

        struct Argument: Decodable {
            struct Name: Decodable {
                var kind: String
                var name: String

                var text: String { (kind == "long" ? "--" : "-") + name }
            }

            var kind: String
            var parsingStrategy: String
            var names: [Name]?
        }

        var command: Command
    }

    /// - Parameters:
    ///   - root: The program, of which `arguments` name a command.
    ///   - nearest: The one of some words that a person may have meant; `nil`: none.
    /// - Returns: The parser's sentence about the first unknown option; `nil`: there is none.
    static func sentence(
        _ arguments: [String],
        of root: any ParsableCommand.Type,
        nearest: (_ word: String, _ known: [String]) -> String?
    ) -> String? {
        let (command, rest) = leaf(arguments, of: root)
        let json = Array(command._dumpHelp().utf8)
        guard let help = try? JSONDecoder().decode(Help.self, from: Data(json)) else { return nil }
        let known = help.command.arguments ?? []
        // Options behind the first word are those of somebody else's command.
        guard !known.contains(where: { $0.parsingStrategy == "allRemainingInput" }),
            let word = first(in: rest, unlessIn: known)
        else { return nil }
        let names = known.flatMap { $0.names ?? [] }.filter { $0.kind == "long" }.map(\.name)
        let meant = nearest(String(word.drop { $0 == "-" }), names)
        let hint = meant.map { " Did you mean '--\($0)'?" }
        return "Unknown option '\(word)'." + (hint ?? "")
    }

    private static func leaf(
        _ arguments: [String],
        of root: any ParsableCommand.Type
    ) -> (command: any ParsableCommand.Type, rest: ArraySlice<String>) {
        var command = root
        var rest = arguments[...]
        while true {
            let configuration = command.configuration
            if let next = configuration.subcommands.first(where: { $0._commandName == rest.first })
            {
                command = next
                rest = rest.dropFirst()
            } else if let next = configuration.defaultSubcommand {
                command = next
            } else {
                return (command, rest)
            }
        }
    }

    private static func first(
        in arguments: ArraySlice<String>,
        unlessIn known: [Help.Argument]
    ) -> String? {
        var takesValue: [String: Bool] = [:]
        for argument in known {
            for name in argument.names ?? [] { takesValue[name.text] = argument.kind == "option" }
        }
        var words = arguments.prefix { $0 != "--" }
        while let word = words.popFirst() {
            guard word.hasPrefix("-"), word != "-", Double(word) == nil else { continue }
            let name = String(word.prefix { $0 != "=" })
            if let takes = takesValue[name] {
                if takes, name == word { words = words.dropFirst() }
                continue
            }
            // Short options can be joined with each other and with a value.
            if !word.hasPrefix("--"), takesValue[String(word.prefix(2))] != nil { continue }
            return name
        }
        return nil
    }
}
