import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

struct Explain: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Show every reason why an operation is not running, or a trigger not firing.",
        usage: "operon explain (<graph>/<operation> | trigger/<name>) [<options>]",
        discussion: """
            For a pending operation, also shows the chain of dependencies to one that waits for no \
            other; for a skipped one, the chain to the operation that caused the skip. For a \
            trigger, shows why it has not fired, or has fired and submitted nothing.
            """
    )

    @Argument(help: ArgumentHelp(Selectors.operationHelp), transform: Selectors.operation)
    var operation: OperationSelector

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        try await ClientSession.run(coordinator, about: subject) { session in
            if isTrigger, let explanation = try await explainTrigger(session.client) {
                return try session.console.show(
                    explanation,
                    names: explanation.reasons.map(\.code)
                ) { $0.explanation(explanation) }
            }
            let explanation = try await session.client.explain(operation)
            try session.console.show(explanation, names: explanation.reasons.map(\.code)) {
                $0.explanation(explanation)
            }
        }
    }

    private var isTrigger: Bool { operation.graph == "trigger" }

    private var subject: ClientSession.Subject {
        isTrigger ? .trigger(operation.operation) : .operation(operation)
    }

    /// `nil`: there is no such trigger, but a graph named “trigger”.
    private func explainTrigger(
        _ client: any CoordinatorClient
    ) async throws -> TriggerExplanation? {
        do throws(ClientError) {
            return try await client.explain(trigger: operation.operation)
        } catch {
            guard error.code == .notFound, (try? await client.graph(operation.graph)) != nil else {
                throw error
            }
            return nil
        }
    }
}
