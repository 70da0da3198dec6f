import ArgumentParser
import FoundationEssentials
import OperonModel

/// A command after `--`, which becomes a graph of one operation.
struct SingleCommandArguments: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The name of the operation and its graph; by default that of the program.",
            valueName: "name"
        )
    )
    var name: String?

    @Option(help: ArgumentHelp("The queue of the command.", valueName: "name"))
    var queue: String?

    @Option(help: ArgumentHelp("The priority of the command.", valueName: "priority"))
    var priority: Named<QueuePriority>?

    @Option(
        help: ArgumentHelp(
            """
            An operation that the command waits for; may be repeated. With --graph, one of that \
            graph may have its name alone.
            """,
            valueName: "graph/operation"
        )
    )
    var after: [String] = []

    @Argument(
        parsing: .postTerminator,
        help: ArgumentHelp("The program and its arguments.", valueName: "command")
    )
    var command: [String] = []

    /// - Parameters:
    ///   - file: The graph file, of which exactly one is given, or the command.
    ///   - graph: The open graph that the operations are added to.
    func check(file: String?, graph: String?) throws {
        guard (file == nil) != command.isEmpty else {
            throw ValidationError(
                file == nil
                    ? "name a graph file, or a command after --"
                    : "a graph file and a command cannot be combined"
            )
        }
        guard !command.isEmpty else {
            let isGiven = name != nil || queue != nil || priority != nil || !after.isEmpty
            guard isGiven else { return }
            throw ValidationError(
                "--name, --queue, --priority and --after are for a command after --"
            )
        }
        guard command[0] != "" else { throw ValidationError("the name of the program is empty") }
        // In an open graph, an operation needs no graph in front of its name.
        if graph == nil { for name in after { _ = try Selectors.operation(name) } }
    }

    /// - Parameter graph: The open graph that it is added to.
    func graph(in graph: String?) -> GraphDescription {
        let program = command[0].split(separator: "/").last.map(String.init) ?? command[0]
        let name = name ?? program
        var operation = OperationDescription(
            name: name,
            work: .command(
                CommandDescription(
                    arguments: command,
                    directory: FileManager.default.currentDirectoryPath
                )
            )
        )
        if let queue { operation.queue = queue }
        operation.priority = priority?.value
        operation.dependencies = after.map { name in
            // In its own graph, an operation is named without the graph.
            guard let graph, name.hasPrefix(graph + "/") else {
                return DependencyDescription(name, .unlessFailed)
            }
            return DependencyDescription(String(name.dropFirst(graph.count + 1)), .unlessFailed)
        }
        return GraphDescription(name: name, operations: [operation])
    }
}
