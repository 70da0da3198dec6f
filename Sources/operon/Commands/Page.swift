import ArgumentParser
import OperonArguments
import OperonModel
import OperonPorts
import OperonTerminal

struct Page: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "page",
        abstract: "Print the address of the coordinator's page, for a browser.",
        usage: "operon page [<options>]",
        discussion: """
            The page shows graphs, queues, workers and triggers while they change. Where a login \
            is needed, the address logs one browser in, with your rights, once and within two \
            minutes.

            operon up has the page on a free port of this machine. Any other coordinator needs a \
            TCP address, such as --listen 127.0.0.1:7350: a browser cannot reach a socket.
            """
    )

    @OptionGroup var coordinator: ClientArguments

    private struct Address: Encodable {
        let url: String
        /// Missing: the address can be used any number of times.
        let expiresInSeconds: Double?
    }

    func run() async throws {
        let address = try coordinator.address.address(environment: Environment.current)
        try await ClientSession.run(coordinator) { session in
            let code = try await session.client.sessionCode()
            // The address that was given may be that of a socket that is forwarded to here.
            let given = address.url.flatMap { $0.hasPrefix("http") ? $0 : nil }
            guard let place = given ?? code?.page else {
                throw Failure(
                    ExitStatus.usage,
                    "The coordinator listens on a socket, which a browser cannot reach: start it "
                        + "with --listen 127.0.0.1:7350."
                )
            }
            let page = place.hasSuffix("/") ? place : place + "/"
            let found = Address(
                url: code.map { page + "#code=" + $0.code } ?? page,
                expiresInSeconds: code?.expiresInSeconds
            )
            try session.console.show(found, names: [found.url]) { _ in [found.url] }
        }
    }
}
