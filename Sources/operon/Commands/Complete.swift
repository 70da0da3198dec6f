import ArgumentParser
import Foundation
import OperonArguments
import OperonModel
import OperonPorts
import OperonTerminal

struct Complete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Complete an operation that runs nowhere.",
        usage: """
            operon complete <graph>/<operation> [--value <json> | --fail <message> | --cancel] \
            [<options>]
            """,
        discussion: """
            For operations with external: true, which wait for somebody outside: an approval, an \
            answer of another system. It succeeds, with an output or without, unless --fail or \
            --cancel says otherwise. A failure is tried again as its retry says.

            The first to complete an attempt does so; every other is refused. --attempt makes sure \
            that it is the attempt that one was told of (operon show).
            """
    )

    @Argument(help: ArgumentHelp(Selectors.operationHelp), transform: Selectors.operation)
    var operation: OperationSelector

    @Option(
        help: ArgumentHelp(
            "The output that it leaves for its dependents; - for standard input.",
            valueName: "json"
        )
    )
    var value: String?

    @Option(help: ArgumentHelp("It has failed, and why.", valueName: "message"))
    var fail: String?

    @Flag(help: "It was given up: it counts as cancelled.")
    var cancel = false

    @Option(help: ArgumentHelp("With --cancel: why, for whoever asks later.", valueName: "text"))
    var reason: String?

    @Option(
        help: ArgumentHelp("The attempt that is meant, for example 1.17.", valueName: "id"),
        transform: { text in
            guard let id = AttemptID(text) else {
                throw ValidationError("an attempt is two numbers, for example 1.17")
            }
            return id
        }
    )
    var attempt: AttemptID?

    @OptionGroup var coordinator: ClientArguments

    func validate() throws {
        let given = [value != nil, fail != nil, cancel].count { $0 }
        guard given <= 1 else {
            throw ValidationError("--value, --fail and --cancel exclude each other")
        }
        guard reason == nil || cancel else { throw ValidationError("--reason goes with --cancel") }
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
        let data =
            value == "-" ? FileHandle.standardInput.readDataToEndOfFile() : Data(value.utf8)
        do {
            _ = try JSONSerialization.jsonObject(with: data, options: .fragmentsAllowed)
        } catch {
            let example = "a text needs its quotation marks, as in --value '\"yes\"'"
            throw Failure(ExitStatus.usage, "The output is no JSON: \(example).")
        }
        return .succeeded(Payload(bytes: [UInt8](data)))
    }
}
