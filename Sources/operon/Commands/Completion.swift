import ArgumentParser

struct Completion: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "completion",
        abstract: "Print a completion script for a shell.",
        discussion: """
            bash: operon completion bash > /etc/bash_completion.d/operon
            zsh:  operon completion zsh > "${fpath[1]}/_operon"
            fish: operon completion fish > ~/.config/fish/completions/operon.fish
            """
    )

    @Argument(help: "bash, zsh or fish.")
    var shell: Shell

    enum Shell: String, ExpressibleByArgument, CaseIterable {
        case bash
        case zsh
        case fish

        var completionShell: CompletionShell {
            switch self {
            case .bash: .bash
            case .zsh: .zsh
            case .fish: .fish
            }
        }
    }

    func run() throws {
        printLine(Operon.completionScript(for: shell.completionShell))
    }
}
