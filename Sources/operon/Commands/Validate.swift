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
        printLine("\(TerminalText.line(file)) is valid: \(parts.joined(separator: ", "))")
    }

    private func checkTrigger() throws {
        let environment = Environment.current
        let zones = TimeZoneDirectory(path: environment["TZDIR"] ?? TimeZoneDirectory.defaultPath)
        let trigger: TriggerDescription
        do {
            trigger = try TriggerFile.read(path: graphFile.file)
            try TriggerCheck.check(trigger, GraphFileCodec(), zones: zones)
        } catch let error as GraphFileError {
            throw Failure(ExitStatus.usage, error.description)
        } catch {
            throw Failure(ExitStatus.usage, "\(graphFile.file): \(error)")
        }
        let name = TerminalText.line(trigger.name)
        printLine(
            "\(graphFile.file): trigger “\(name)” is valid: it fires on “\(trigger.source.kind)”"
        )
    }

    private static func count(_ count: Int, _ one: String, _ many: String) -> String {
        count == 1 ? "1 \(one)" : "\(count) \(many)"
    }
}
