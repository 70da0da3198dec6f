import ArgumentParser
import OperonArguments
import OperonCore
import OperonGraphFile
import OperonModel
import OperonRuntime
import OperonTerminal

struct Validate: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "validate",
        abstract: "Check a graph file or a trigger file without running anything.",
        usage: "operon validate <file> [<options>]",
        discussion: "Prints every problem with its line and column; the exit code is then 2."
    )

    @OptionGroup var graphFile: GraphFileArguments

    @Option(help: "text, json or quiet.")
    var output: OutputFormat = .text

    /// What a valid file contains, in JSON.
    private struct Valid: Encodable {
        var file: String
        /// `graph` or `trigger`.
        var kind: String
        var name: String
        var operations: Int?
        var dependencies: Int?
        var queues: Int?
        /// The kind of the source of a trigger.
        var source: String?
    }

    private var console: Console { Console(format: output, environment: Environment.current) }

    func run() throws {
        let graph: LoadedGraph
        do {
            graph = try graphFile.load()
        } catch {
            guard TriggerFile.isMeant(by: graphFile.file) else { throw error }
            try checkTrigger()
            return
        }
        let topology = graph.compiled.topology
        var parts = [Self.count(topology.operationCount, "operation", "operations")]
        if topology.edgeCount > 0 {
            parts.append(Self.count(topology.edgeCount, "dependency", "dependencies"))
        }
        let queues = graph.compiled.queues.count
        if queues > 1 { parts.append(Self.count(queues, "queue", "queues")) }
        let file = graphFile.file == "-" ? "standard input" : graphFile.file
        var valid = Valid(file: file, kind: "graph", name: graph.description.name)
        valid.operations = topology.operationCount
        valid.dependencies = topology.edgeCount
        valid.queues = queues
        try console.show(valid) { _ in
            ["\(TerminalText.line(file)) is valid: \(parts.joined(separator: ", "))"]
        }
    }

    private func checkTrigger() throws {
        let environment = Environment.current
        let zones = TimeZoneDirectory(path: environment["TZDIR"] ?? TimeZoneDirectory.defaultPath)
        let trigger: TriggerDescription
        do {
            trigger = try TriggerFile.read(path: graphFile.file) { name in
                do throws(TimeZoneDirectory.Problem) {
                    _ = try zones.zone(name)
                    return nil
                } catch {
                    return error.description
                }
            }
            try TriggerCheck.check(trigger, GraphFileCodec())
        } catch let error as GraphFileError {
            throw Failure(error)
        } catch {
            throw Failure(ExitStatus.usage, "\(graphFile.file): \(error)")
        }
        let name = TerminalText.line(trigger.name)
        var valid = Valid(file: graphFile.file, kind: "trigger", name: trigger.name)
        valid.source = trigger.source.kind
        try console.show(valid) { _ in
            ["\(graphFile.file): trigger “\(name)” is valid: it fires on “\(trigger.source.kind)”"]
        }
    }

    private static func count(_ count: Int, _ one: String, _ many: String) -> String {
        count == 1 ? "1 \(one)" : "\(count) \(many)"
    }
}
