import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

struct Resume: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "Resume a suspended operation, graph or queue.",
        usage: "operon resume <graph>[/<operation>] | --queue <name> [<options>]"
    )

    @OptionGroup var target: TargetArguments

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        try await Self.resume(try target.selector, coordinator)
    }

    static func resume(
        _ selector: TargetSelector,
        _ coordinator: ClientArguments
    ) async throws {
        try await ClientSession.run(coordinator, about: selector.asked) { session in
            let view = try await session.change { () async throws(ClientError) in
                try await session.client.resume(selector)
            }
            try session.console.tell(view) { $0.resumed(view, selector.subject) }
        }
    }
}
