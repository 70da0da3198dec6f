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
            operon complete <graph>/<operation> \
            [--yes | --value <json> | --fail <message> | --cancel] [<options>]
            """,
        discussion: """
            For operations with external: true, which no worker runs: they wait for a person or \
            another system, for example for an approval. On a terminal, the command shows the \
            question and asks. Elsewhere, say how the operation ends: --yes (it succeeds), --value \
            (it succeeds with this output), --fail or --cancel. After --fail it is tried again if \
            its retry allows another attempt.

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

    @Flag(name: .shortAndLong, help: "It succeeded; do not ask.")
    var yes = false

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
        guard givenCount <= 1 else {
            throw ValidationError("--value, --fail, --cancel and --yes cannot be combined")
        }
        guard reason == nil || cancel else { throw ValidationError("--reason needs --cancel") }
    }

    private var givenCount: Int { [value != nil, fail != nil, cancel, yes].count { $0 } }

    func run() async throws {
        var completion = try self.completion()
        var attempt = attempt
        let subject = ClientSession.Subject.operation(operation)
        try await ClientSession.run(coordinator, about: subject) { session in
            if givenCount == 0 {
                let detail = try await session.client.operation(operation)
                guard session.console.canAsk else {
                    throw Failure(
                        ExitStatus.usage,
                        "Nobody can be asked here: give --yes, --value, --fail or --cancel."
                    )
                }
                guard let answer = await ask(detail, session) else {
                    throw ExitCode(ExitStatus.usage)
                }
                completion = answer
                // The answer is to this attempt, and to no later one.
                attempt = attempt ?? detail.attempts.last.flatMap { AttemptID($0.id) }
            }
            let view = try await session.change { () async throws(ClientError) in
                try await session.client.complete(
                    operation,
                    attempt: attempt,
                    with: completion
                )
            }
            try session.console.tell(view, names: [view.selector]) { $0.completed(view) }
        }
    }

    /// `nil`: there was no answer.
    private func ask(
        _ detail: OperationDetail,
        _ session: ClientSession
    ) async -> OperonModel.Completion? {
        // The coordinator says what is wrong with any other.
        guard detail.operation.kind == Work.externalKind, detail.operation.state == .executing
        else { return .succeeded(.empty) }
        session.console.say(Question(detail).lines(session.console.speech.style))
        return await Question(detail).answer { FileOutput.standardError.write(Array($0.utf8)) }
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
