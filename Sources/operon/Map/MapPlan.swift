import OperonArguments
import OperonCore
import OperonGraphFile
import OperonModel
import OperonTerminal

/// The operations of one `operon map`: a command for each row of values.
struct MapPlan: Sendable {
    /// The graph; its operations are named `map[1]`, `map[2]` and so on, by the numbers of rows.
    private(set) var graph: GraphDescription
    /// The number of each operation's row, from 1.
    private(set) var numbers: [Int] = []
    /// Which argument of each operation is its command.
    private let commandIndex: Int

    struct Settings {
        /// How the output of a command gets here.
        var delivery: MapDelivery
        /// The variables of the worker that the commands inherit.
        var inheritEnvironment: [String]
        /// Where the commands start.
        var directory: String
        var timeout: Duration?
        var retry = RetryPolicy.never
    }

    /// The name of the graph, and of its operations before their numbers.
    static let name = "map"

    /// - Parameter isDone: whether a row needs no operation, by its number and its command.
    /// - Throws: what is wrong with the command, or with what is done.
    init(
        _ values: MapValues,
        _ settings: Settings,
        isDone: (Int, String) throws(Failure) -> Bool
    ) throws {
        let template = try CommandTemplate(values.command, sourceCount: values.sourceCount)
        graph = GraphDescription(name: Self.name)
        graph.order = .submission
        let arguments = CommandDescription.shell(settings.delivery.script) + ["sh"]
        commandIndex = arguments.count
        graph.operations.reserveCapacity(values.count)
        numbers.reserveCapacity(values.count)
        for index in 0..<values.count {
            let command = template.command(values[index], number: index + 1)
            if try isDone(index + 1, command) { continue }
            var operation = OperationDescription(
                name: "\(Self.name)[\(index + 1)]",
                work: .command(
                    CommandDescription(
                        arguments: arguments + [command, settings.delivery.argument],
                        inheritEnvironment: settings.inheritEnvironment,
                        directory: settings.directory
                    )
                )
            )
            operation.timeout = settings.timeout
            operation.retry = settings.retry
            graph.operations.append(operation)
            numbers.append(index + 1)
        }
    }

    /// The command of an operation, by its index.
    func command(_ index: Int) -> String {
        guard case .command(let command) = graph.operations[index].work else { return "" }
        return command.arguments[commandIndex]
    }

    /// Checks the graph as a whole.
    func load(failFast: Bool) throws(Failure) -> LoadedGraph {
        do throws(Refusal) {
            var compiled = try CompiledGraph.compile(graph)
            compiled.failFast = failFast
            return LoadedGraph(description: graph, compiled: compiled)
        } catch {
            throw Failure(MapExit.other, TerminalText.line(error.description))
        }
    }
}

/// The exit codes of `operon map`, which are those of GNU parallel.
enum MapExit {
    /// Nothing of what failed is an operation.
    static let other: Int32 = 255
    /// As a shell tells that a program was ended by SIGPIPE.
    static let unread: Int32 = 141

    /// The code for so many operations without success: their number, or 101 for more than 100.
    static func of(_ failures: Int) -> Int32 { Int32(min(failures, 101)) }
}
