import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

struct Show: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show an operation: dependencies, attempts and outcome.",
        usage: "operon show <graph>/<operation> [<options>]"
    )

    @Argument(help: ArgumentHelp(Selectors.operationHelp), transform: Selectors.operation)
    var operation: OperationSelector

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        try await ClientSession.run(coordinator, about: .operation(operation)) { session in
            let detail = try await session.client.operation(operation)
            try session.console.show(detail, names: [detail.operation.selector]) {
                $0.operation(detail)
            }
        }
    }
}
