import ArgumentParser
import OperonCore
import OperonModel
import OperonTerminal

struct Validate: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check a graph file without running anything.",
        usage: "operon validate <file> [<options>]",
        discussion: "Prints every problem with its line and column; the exit code is then 2."
    )

    @OptionGroup var graphFile: GraphFileArguments

    func run() throws {
        let graph = try graphFile.load()
        let topology = graph.compiled.topology
        let parts = [
            Self.count(topology.operationCount, "operation", "operations"),
            Self.count(topology.edgeCount, "dependency", "dependencies"),
            Self.count(graph.compiled.queues.count, "queue", "queues"),
        ]
        let name = TerminalText.line(graph.description.name)
        printLine("\(graphFile.file): “\(name)” is valid: \(parts.joined(separator: ", "))")
    }

    private static func count(_ count: Int, _ one: String, _ many: String) -> String {
        count == 1 ? "1 \(one)" : "\(count) \(many)"
    }
}
