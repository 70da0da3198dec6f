import ArgumentParser
import FoundationEssentials
import OperonArguments
import OperonModel
import OperonPorts
import OperonTerminal

struct Output: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "output",
        abstract: "Print the output of an operation.",
        usage: "operon output <graph>/<operation> [<options>]",
        discussion: """
            A pipe gets the bytes unchanged. With --output json, JSON is printed as it is, and any \
            other output as {"contentType": …, "base64": …}. Exit code 6: there is no output.
            """
    )

    @Argument(help: ArgumentHelp(Selectors.operationHelp), transform: Selectors.operation)
    var operation: OperationSelector

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        try await ClientSession.run(coordinator, about: .operation(operation)) { session in
            guard let payload = try await session.client.output(of: operation) else {
                let detail = try await session.client.operation(operation)
                let text = session.console.speech.noOutput(detail.operation)
                throw Failure(ExitStatus.noSuchObject, text)
            }
            try Self.print(payload, session.console)
        }
    }

    private static func print(_ payload: Payload, _ console: Console) throws {
        let isJSON = payload.contentType == Payload.json
        let isText = isJSON || payload.contentType.hasPrefix("text/")
        if console.format == .quiet { return }
        if console.format == .json, !isJSON {
            return try console.writeJSON(Bytes(payload))
        }
        guard console.output.isTerminal else {
            console.write(payload.bytes)
            if console.format == .json { console.write([UInt8(ascii: "\n")]) }
            return
        }
        guard isText else {
            let type = TerminalText.line(payload.contentType)
            throw Failure(
                ExitStatus.usage,
                "The output is \(payload.bytes.count) bytes of \(type): redirect it to a file or "
                    + "pipe."
            )
        }
        console.write(console.data.log(String(decoding: payload.bytes, as: UTF8.self)))
    }

    private struct Bytes: Encodable {
        let contentType: String
        let base64: String

        init(_ payload: Payload) {
            contentType = payload.contentType
            base64 = Data(payload.bytes).base64EncodedString()
        }
    }
}
