import Foundation
import Testing

/// Commands that a page names within a sentence exist, with the options that they have there.
/// Blocks of commands are run by `PageTests` and others.
@Suite struct NamedCommandTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// Not CHANGELOG.md: an earlier release had commands that are gone.
    private static func pages() throws -> [String] {
        let folders = ["docs", "Sources/Operon/Operon.docc", "deploy"]
        return try ["README.md", "CONTRIBUTING.md", "SECURITY.md"]
            + folders.flatMap { folder in
                let all = try FileManager.default.subpathsOfDirectory(
                    atPath: root.appendingPathComponent(folder).path
                )
                return all.filter { $0.hasSuffix(".md") }.sorted().map { "\(folder)/\($0)" }
            }
    }

    @Test func `every command within a sentence is one that there is`() async throws {
        let programs = try await Self.programs()
        var count = 0
        for page in try Self.pages() {
            let text = try String(
                contentsOf: Self.root.appendingPathComponent(page),
                encoding: .utf8
            )
            for line in NamedCommand.named(in: text) {
                count += 1
                let problem = line.problem(programs)
                #expect(problem == nil, "\(page): `\(line.words.joined(separator: " "))`")
            }
        }
        // Fewer would say that they are not found.
        #expect(count > 200, "\(count)")
    }

    @Test func `what a program does not have is found`() async throws {
        let programs = try await Self.programs()
        for (text, problem) in [
            ("`operon run FILE`", nil), ("`operon queue set NAME --max 4`", nil),
            ("`operon graph --format svg`", nil), ("`operon-worker -j 4`", nil),
            ("`operon\nsubmit -- make --fast`", nil), ("`operon map -- tar --gone`", nil),
            ("`operon walk FILE`", "there is no “walk”"),
            ("`operon queue walk`", "there is no “walk”"),
            ("`operon run --faster`", "there is no “--faster”"),
            ("`operon run --jobs=4`", "there is no “--jobs”"),
            ("`operon-worker -q`", "there is no “-q”"),
        ] {
            let lines = NamedCommand.named(in: text)
            #expect(lines.count == 1, "\(text)")
            #expect(lines.first?.problem(programs) == problem, "\(text)")
        }
        #expect(NamedCommand.named(in: "```\n`operon walk`\n```\n`operonx walk`").isEmpty)
    }

    private static func programs() async throws -> [String: Command] {
        var programs: [String: Command] = [:]
        try await Workspace.run { workspace in
            for name in ["operon", "operon-worker"] {
                let help = try await workspace.start(name, ["--experimental-dump-help"]).end()
                programs[name] = try JSONDecoder()
                    .decode(Help.self, from: Data(help.output.utf8)).command
            }
        }
        return programs
    }
}

/// The help of ArgumentParser for programs.
private struct Help: Decodable {
    var command: Command
}

private final class Command: Decodable, Sendable {
    struct Argument: Decodable {
        struct Name: Decodable {
            var kind: String
            var name: String
        }

        var names: [Name]?
    }

    let commandName: String
    let subcommands: [Command]?
    let defaultSubcommand: String?
    let arguments: [Argument]?

    var options: Set<String> {
        let names = (arguments ?? []).flatMap { $0.names ?? [] }
        return Set(names.map { ($0.kind == "long" ? "--" : "-") + $0.name })
    }
}

/// A command line within a sentence.
private struct NamedCommand {
    var words: [String]

    static func named(in page: String) -> [NamedCommand] {
        page.replacing(#/```.*?```/#.dotMatchesNewlines(), with: "")
            .matches(of: #/`(operon(?:-worker)?\s[^`]+)`/#)
            .map { NamedCommand(words: $0.1.split { $0.isWhitespace }.map(String.init)) }
    }

    /// The first word that the program does not know.
    func problem(_ programs: [String: Command]) -> String? {
        guard var command = programs[words[0]] else { return "there is no “\(words[0])”" }
        var rest = words.dropFirst().prefix { $0 != "--" }
        while let subcommands = command.subcommands, !subcommands.isEmpty, let word = rest.first {
            if let next = subcommands.first(where: { $0.commandName == word }) {
                command = next
                rest = rest.dropFirst()
                continue
            }
            let standard = subcommands.first { $0.commandName == command.defaultSubcommand }
            // In place of a subcommand, a sentence may have `COMMAND` or `…`.
            if standard == nil, word.allSatisfy({ $0.isLowercase }) {
                return "there is no “\(word)”"
            }
            guard let standard else { break }
            command = standard
        }
        let options = command.options.union(["--help", "--version"])
        let unknown = rest.lazy.filter { $0.contains(#/^--?[a-z]/#) }
            .compactMap { $0.split(separator: "=").first.map(String.init) }
            .first { !options.contains($0) }
        return unknown.map { "there is no “\($0)”" }
    }
}
