import ArgumentParser
import OperonArguments
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTerminal

struct Complete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "complete",
        abstract: "Complete an external operation.",
        usage: """
            operon complete <graph>/<operation> [--value <json> | --fail <message> | --cancel] \
            [<options>]
            """,
        discussion: """
            For operations with external: true, which no worker runs: they wait for a person or \
            another system, for example for an approval. The operation succeeds, with the output \
            of --value or without one, unless you give --fail or --cancel. After --fail it is \
            tried again if its retry allows another attempt.

            The first completion of an attempt counts; later ones are refused. With --attempt, the \
            completion is also refused if another attempt is waiting.
            """
    )

    @Argument(help: ArgumentHelp(Selectors.operationHelp), transform: Selectors.operation)
    var operation: OperationSelector

    @Option(
        help: ArgumentHelp(
            "The output for operations that depend on it; - reads standard input.",
            valueName: "json"
        )
    )
    var value: String?

    @Option(help: ArgumentHelp("It failed, with this message.", valueName: "message"))
    var fail: String?

    @Flag(help: "It was cancelled.")
    var cancel = false

    @Option(help: ArgumentHelp("With --cancel: the reason, for others to read.", valueName: "text"))
    var reason: String?

    @Option(
        help: ArgumentHelp(
            "Only this attempt, for example 1.17; operon show prints its id.",
            valueName: "id"
        ),
        transform: { text in
            guard let id = AttemptID(text) else {
                throw ValidationError("the id of an attempt is two numbers, for example 1.17")
            }
            return id
        }
    )
    var attempt: AttemptID?

    @OptionGroup var coordinator: ClientArguments

    func validate() throws {
        let given = [value != nil, fail != nil, cancel].count { $0 }
        guard given <= 1 else {
            throw ValidationError("--value, --fail and --cancel cannot be combined")
        }
        guard reason == nil || cancel else { throw ValidationError("--reason needs --cancel") }
    }

    func run() async throws {
        let completion = try self.completion()
        try await ClientSession.run(coordinator, about: .operation(operation)) { session in
            let view = try await session.client.complete(
                operation,
                attempt: attempt,
                with: completion
            )
            try session.console.tell(view, names: [view.selector]) { $0.completed(view) }
        }
    }

    private func completion() throws -> OperonModel.Completion {
        if let fail { return .failed(.thrown(type: "Failure", message: fail, payload: [])) }
        if cancel { return .cancelled(reason: reason ?? "") }
        guard let value else { return .succeeded(.empty) }
        let bytes =
            value == "-"
            ? try UserFile.readStandardInput(bytesMax: Limits().payloadBytes) : Array(value.utf8)
        do throws(JSONCheck.Malformed) {
            try JSONCheck.check(bytes)
        } catch {
            let example = "Text needs quotation marks, as in --value '\"yes\"'."
            throw Failure(ExitStatus.usage, "The output is not JSON: \(error). \(example)")
        }
        return .succeeded(Payload(bytes: bytes))
    }
}
