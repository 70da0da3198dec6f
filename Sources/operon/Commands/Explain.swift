import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

struct Explain: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show every reason why an operation is not running.",
        usage: "operon explain <graph>/<operation> [<options>]",
        discussion: """
            For a pending operation, also shows the chain of dependencies to one that waits for no \
            other; for a skipped one, the chain to the operation that caused the skip.
            """
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
