import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

struct Explain: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show every reason why an operation is not running.",
        usage: "operon explain <graph>/<operation> [<options>]",
        discussion: "For a skipped operation, shows the chain back to the operation that caused it."
    )

    @Argument(help: ArgumentHelp(Selectors.operationHelp), transform: Selectors.operation)
    var operation: OperationSelector

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        try await ClientSession.run(coordinator, about: .operation(operation)) { session in
            let explanation = try await session.client.explain(operation)
            try session.console.show(explanation, names: explanation.reasons.map(\.code)) {
                $0.explanation(explanation)
            }
        }
    }
}
