import ArgumentParser
import OperonArguments
import OperonGraphFile
import OperonModel
import OperonPorts
import OperonTerminal

/// One command that calls a coordinator: its client, its output, and how it fails.
struct ClientSession: Sendable {
    let client: any CoordinatorClient & AccessClient
    let console: Console
    let news: LinkNews

    /// What the command named, so that an error about a wrong name can suggest a right one.
    enum Subject: Sendable {
        case graph(String)
        case operation(OperationSelector)
        /// Several operations; the error is about the first one that does not exist.
        case operations([OperationSelector])
        case queue(String)
        case key(String)
        case worker(String)
        case trigger(String)
    }

    /// Connects to the coordinator and runs the command.
    ///
    /// - Throws: `Failure` with the exit code that describes the error.
    static func run(
        _ arguments: ClientArguments,
        about subject: Subject? = nil,
        _ body: (ClientSession) async throws -> Void
    ) async throws {
        try await run(arguments.address, arguments.output, about: subject, body)
    }

    /// Connects to the coordinator and runs a command that prints in this format.
    static func run(
        _ arguments: AddressArguments,
        _ format: OutputFormat,
        about subject: Subject? = nil,
        _ body: (ClientSession) async throws -> Void
    ) async throws {
        let environment = Environment.current
        let address = try arguments.address(environment: environment)
        let console = Console(format: format, environment: environment)
        let news = LinkNews { console.say([$0]) }
        do {
            try await ClientFactory.with(address, news) { client in
                let session = ClientSession(client: client, console: console, news: news)
                do {
                    try await body(session)
                } catch let error as ClientError where error.code == .notFound {
                    let hint = await session.hint(about: subject)
                    throw Failure(ExitStatus.noSuchObject, sentence(error) + hint)
                }
            }
        } catch let error as ClientError {
            let hint = error.code == .unauthorized ? tokenHint : ""
            throw Failure(exitCode(of: error), sentence(error) + hint)
        }
    }

    /// The exit code of a program whose coordinator refused or failed.
    static func exitCode(of error: ClientError) -> Int32 {
        switch error.code {
        case .notFound: ExitStatus.noSuchObject
        case .timedOut: ExitStatus.timedOut
        case .unreachable, .unavailable, .internal: ExitStatus.unreachable
        case .invalid, .conflict, .tooLarge, .unauthorized, .forbidden: ExitStatus.usage
        }
    }

    private static let tokenHint =
        "\nGive the file that has your token: --token-file FILE, or OPERON_TOKEN_FILE"

    private static func sentence(_ error: ClientError) -> String {
        // Each problem of a graph has a line of its own.
        error.message.split(separator: "\n").map { TerminalText.line(String($0)) }
            .joined(separator: "\n")
    }

    /// Asks for a change, which is answered when it is on the coordinator's disk, and tells the
    /// user if that disk delays the answer.
    func change<Answer: Sendable>(
        _ request: () async throws(ClientError) -> Answer
    ) async throws(ClientError) -> Answer {
        async let _: Void = tellStoreTrouble()
        return try await request()
    }

    /// Says once that a change waits for the coordinator's disk, and when it need not any more.
    private func tellStoreTrouble() async {
        var pause = Self.storePause
        var isTold = false
        // Nobody tells a request why it has no answer yet, so this polls.
        while (try? await Task.sleep(for: pause)) != nil {
            pause = min(pause * 2, Self.storePauseMax)
            guard let store = try? await client.status().store, !Task.isCancelled else { continue }
            let isWaiting = store != ClusterView.well
            guard isWaiting != isTold else { continue }
            isTold = isWaiting
            let sentence =
                isWaiting
                ? "The coordinator waits for its store: \(store)"
                : "The coordinator's store takes records again."
            console.say([TerminalText.line(sentence)])
        }
    }

    private static let storePause = Duration.seconds(5)
    private static let storePauseMax = Duration.seconds(60)

    // MARK: - Names that are nearly right

    /// How many names are searched for a similar one.
    private static let namesMax = 1_000

    /// A probable correction, or where to look; empty if there is none.
    private func hint(about subject: Subject?) async -> String {
        switch subject {
        case .graph(let name): return await hint(aboutGraph: name)
        case .operations(let operations):
            for operation in operations where (try? await client.operation(operation)) == nil {
                return await hint(about: .operation(operation))
            }
            return ""
        case .operation(let operation):
            if (try? await client.graph(operation.graph)) == nil {
                return await hint(aboutGraph: operation.graph)
            }
            var query = OperationQuery()
            query.limit = Self.namesMax
            let page = try? await client.operations(of: operation.graph, query)
            let names = page?.operations.map(\.name) ?? []
            let name = RepeatedNames.group(ofEach: operation.operation) ?? operation.operation
            return near(name, among: names, prefix: operation.graph + "/")
                ?? "\nTo list the operations: operon operations "
                + "\(TerminalText.line(operation.graph))"
        case .queue(let name):
            let names = (try? await client.queues())?.map(\.name) ?? []
            return near(name, among: names) ?? "\nTo list the queues: operon queue list"
        case .key(let name):
            let names = (try? await client.keys())?.map(\.name) ?? []
            return near(name, among: names) ?? "\nTo list the keys: operon key list"
        case .worker(let name):
            let names = (try? await client.workers())?.map(\.name) ?? []
            return near(name, among: names) ?? "\nTo list the workers: operon workers"
        case .trigger(let name):
            let names = (try? await client.triggers())?.map(\.name) ?? []
            return near(name, among: names) ?? "\nTo list the triggers: operon trigger list"
        case nil: return ""
        }
    }

    private func hint(aboutGraph name: String) async -> String {
        var query = GraphQuery()
        query.limit = Self.namesMax
        // Without an answer, the existing names are unknown.
        guard let graphs = (try? await client.graphs(query))?.graphs else { return "" }
        guard !graphs.isEmpty else {
            return "\nThere are no graphs yet. To submit one: operon submit FILE"
        }
        return near(name, among: graphs.map(\.name)) ?? "\nTo list the graphs: operon list"
    }

    private func near(_ name: String, among known: [String], prefix: String = "") -> String? {
        Suggestion.nearest(to: name, among: known).map {
            "\nDid you mean “\(TerminalText.line(prefix + $0))”?"
        }
    }
}
