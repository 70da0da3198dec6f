import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

struct Priority: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "priority",
        abstract: "Change the priority of an operation that has not started.",
        usage: "operon priority <graph>/<operation> <level> [<options>]"
    )

    @Argument(help: ArgumentHelp(Selectors.operationHelp), transform: Selectors.operation)
    var operation: OperationSelector

    @Argument(help: "veryLow, low, normal, high or veryHigh.")
    var level: Named<QueuePriority>

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        let subject = ClientSession.Subject.operation(operation)
        try await ClientSession.run(coordinator, about: subject) { session in
            let view = try await session.change { () async throws(ClientError) in
                try await session.client.setPriority(of: operation, to: level.value)
            }
            try session.console.tell(view, names: [view.selector]) { $0.prioritised(view) }
        }
    }
}
