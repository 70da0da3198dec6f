import ArgumentParser
import OperonArguments
import OperonModel
import OperonPorts
import OperonReport
import OperonRuntime
import OperonTerminal

struct Report: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "report",
        abstract: "Write a page about a graph that a coordinator keeps.",
        usage: "operon report <graph> [<file>] [<options>]",
        discussion: """
            The page is one HTML file without scripts, which can be sent: what failed, with logs, \
            the graph with its critical path, a timeline, and a table. A graph that still runs is \
            shown as it is now. The file is replaced if it exists.
            """
    )

    @Argument(help: ArgumentHelp(Selectors.graphHelp), transform: Selectors.graph)
    var graph: String

    @Argument(
        help: """
            The file to write; - is standard output. Default: the name of the graph with .html, \
            here.
            """,
        completion: .file(extensions: ["html"])
    )
    var file: String?

    @OptionGroup var coordinator: ClientArguments

    private struct Written: Encodable {
        let path: String
        let bytes: Int
    }

    func run() async throws {
        if let file, file != "-" { try ReportFile.output(at: file).check() }
        try await ClientSession.run(coordinator, about: .graph(graph)) { session in
            let view = try await session.client.graph(graph)
            let path = file ?? Self.fileName(of: view)
            let bytes = try await Interruptible.run {
                try await GraphReport.read(view, session.client).page().html()
            }
            if path == "-" { return session.console.write(bytes) }
            try ReportFile.output(at: path).write(bytes)
            let written = Written(path: path, bytes: bytes.count)
            try session.console.tell(written, names: [path]) { text in
                text.wroteReport(of: view, path, bytes.count)
            }
        }
    }

    /// A name of a graph may have anything in it.
    private static func fileName(of view: GraphView) -> String {
        let safe = view.name.map { character in
            character.isLetter || character.isNumber || "._-".contains(character) ? character : "-"
        }
        let name = String(safe.prefix(64).drop { $0 == "." })
        return (name.isEmpty ? "graph-\(view.id)" : name) + ".html"
    }
}
