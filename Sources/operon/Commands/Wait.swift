import ArgumentParser
import OperonArguments
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTerminal

struct Wait: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "wait",
        abstract: "Wait until a graph has finished.",
        usage: "operon wait <graph> [<options>]",
        discussion: """
            The exit code tells the outcome of the graph, as for operon run; 4 if the wait timed \
            out. An open graph finishes only after operon graph close.
            """
    )

    @Argument(help: ArgumentHelp(Selectors.graphHelp), transform: Selectors.graph)
    var graph: String

    @Option(help: "Stop waiting after this long, \(DurationArgument.example).")
    var timeout: DurationArgument?

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        try await ClientSession.run(coordinator, about: .graph(graph)) { session in
            let view = try await session.client.graph(graph)
            let waiting = Waiting(session, isAsked: true)
            throw ExitCode(try await waiting.run(view, within: timeout?.duration))
        }
    }
}

/// Waits for the end of a graph and prints nothing before.
struct Waiting: Sendable {
    private let session: ClientSession
    /// Whether the command asked for the graph itself: it is then printed in every format.
    private let isAsked: Bool

    init(_ session: ClientSession, isAsked: Bool = false) {
        self.session = session
        self.isAsked = isAsked
    }

    /// The exit code of the graph, or the exit code of a wait that timed out.
    ///
    /// - Parameter view: The graph as the coordinator showed it last.
    func run(_ view: GraphView, within limit: Duration?) async throws -> Int32 {
        let sentence = session.console.speech.waitLeft(view)
        return try await Detaching.run(session.console, ends: true, saying: { [sentence] }) {
            try await wait(for: view, within: limit)
        }
    }

    private func wait(for view: GraphView, within limit: Duration?) async throws -> Int32 {
        let graph = String(view.id)
        async let _: Void = remind(view)
        let ended = try await Timeout.within(limit) { try await end(of: graph) }
        guard let ended else {
            // The time is over, whether or not the coordinator answers now.
            let view = (try? await session.client.graph(graph)) ?? view
            if isAsked, session.console.format == .json {
                try session.console.show(view) { _ in [] }
            }
            throw Failure(ExitStatus.timedOut, session.console.speech.stillRunning(view))
        }
        if session.console.format == .text {
            let failed = try await session.failures(of: ended, on: session.console.errors)
            session.console.say(
                session.console.speech.failures(failed, of: ended.counts.failed)
                    + session.console.speech.ended(ended)
            )
        } else if isAsked {
            try session.console.show(ended) { _ in [] }
        }
        return ended.exitCode ?? ExitStatus.success
    }

    /// How often it is asked whether the graph waits for people: who answers takes longer, and a
    /// request costs the coordinator less than a millisecond.
    private static let reminderInterval = Duration.seconds(10)

    /// Says once that the graph waits for people, who may not know it.
    private func remind(_ view: GraphView) async {
        guard session.console.format == .text else { return }
        var view = view
        while session.console.speech.waitsForPeople(view) == nil {
            // The coordinator tells a wait nothing before the end.
            do {
                try await Task.sleep(for: Self.reminderInterval)
                view = try await session.client.graph(String(view.id))
            } catch is CancellationError {
                return
            } catch {
                // The wait itself says that nobody answers.
                continue
            }
        }
        if let sentence = session.console.speech.waitsForPeople(view), !Task.isCancelled {
            session.console.say([sentence])
        }
    }

    /// The graph, when it has finished.
    func end(of graph: String) async throws -> GraphView {
        OwnProcess.giveWay()
        // The coordinator sends nothing of what happens before the end.
        let ends = Set(ClusterEvent.Kind.allCases.filter(\.mayEndGraph))
        try await Following(session).run(graph: graph, kinds: ends) {
            try await hasEnded(graph)
        } _: { _ in
            try await hasEnded(graph)
        }
        return try await session.patiently { try await session.client.graph(graph) }
    }

    private func hasEnded(_ graph: String) async throws -> Bool {
        try await session.patiently { try await session.client.graph(graph) }.status.isFinished
    }
}
