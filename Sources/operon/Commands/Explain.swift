import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

struct Explain: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Say why an operation is not running: every reason at once.",
        usage: "operon explain <graph>/<operation> [<options>]",
        discussion: "Of one that was skipped it says why, back to the operation where it began."
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
