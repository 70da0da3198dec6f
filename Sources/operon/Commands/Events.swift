import ArgumentParser
import OperonArguments
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTerminal

struct Events: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "events",
        abstract: "Print past events, and with --follow new ones.",
        usage: "operon events [<options>]",
        discussion: """
            Each event has a number; --after continues after one. With --output json, each event \
            is one line.
            """
    )

    @Flag(name: .shortAndLong, help: "Print new events until Ctrl-C.")
    var follow = false

    @Option(
        help: ArgumentHelp(
            "Only events after this number. Default: the last \(Events.lastCount); with --follow, "
                + "new ones.",
            valueName: "number"
        )
    )
    var after: UInt64?

    @Option(
        help: ArgumentHelp("Only events of this graph.", valueName: "graph"),
        transform: Selectors.graph
    )
    var graph: String?

    @OptionGroup var coordinator: ClientArguments

    static let lastCount: UInt64 = 50

    func run() async throws {
        let subject = graph.map { ClientSession.Subject.graph($0) }
        try await ClientSession.run(coordinator, about: subject) { session in
            guard follow else { return try await printKept(session) }
            let last = LastEvent(after)
            let code = try await Detaching.run(session.console, saying: { last.sentences }) {
                try await followOn(session, last)
                return ExitStatus.unreachable
            }
            throw ExitCode(code)
        }
    }

    /// Prints the events so far. All events are read, because the number of a graph's last event is
    /// not known.
    private func printKept(_ session: ClientSession) async throws {
        let id = try await graphID(session)
        guard let last = try await session.client.status().lastEvent else { return }
        let start = after ?? (id == nil && last > Self.lastCount ? last - Self.lastCount : 0)
        guard start < last else { return }
        for try await batch in try await session.client.events(EventQuery(after: start)) {
            let events = batch.compactMap(\.event)
            let wanted = events.filter {
                $0.first <= last && (id == nil || $0.isGap || $0.graph == id)
            }
            Self.print(wanted, session.console)
            if events.contains(where: { $0.last >= last }) { return }
        }
    }

    private func graphID(_ session: ClientSession) async throws -> UInt32? {
        guard let graph else { return nil }
        return try await session.client.graph(graph).id
    }

    private func followOn(_ session: ClientSession, _ last: LastEvent) async throws {
        OwnProcess.giveWay()
        OwnProcess.endWhenUnread()
        let id = try await graphID(session).map { String($0) }
        // Whether a coordinator answers at all.
        let latest = try await session.client.status().lastEvent
        try await Following(session).run(
            after: after ?? latest,
            graph: id,
            batches: { batch in
                Self.print(batch, session.console)
                if let end = batch.last { last.sequence = end.last }
                return false
            }
        )
    }

    /// Prints the events with one write, but for a gap, which goes to people in its place.
    private static func print(_ batch: [ClientEvent], _ console: Console) {
        var lines: [UInt8] = []
        for item in batch {
            switch item {
            case .event(let event):
                lines += line(event, console)
                lines.append(UInt8(ascii: "\n"))
            case .gap(let first, let last):
                console.write(lines)
                lines = []
                console.say([console.speech.gap(first, last)])
            }
        }
        console.write(lines)
    }

    private static func line(_ event: EventView, _ console: Console) -> [UInt8] {
        switch console.format {
        case .text: Array(console.data.event(event).utf8)
        case .json: EventJSON.line(event)
        case .quiet: Array(String(event.sequence).utf8)
        }
    }
}
