import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

/// Parses the names of graphs, operations and command targets on a command line.
enum Selectors {
    static let graphHelp = "A graph: its number, its name (the newest of that name), or @latest."
    static let operationHelp =
        "An operation: GRAPH/OPERATION, such as 3/merge or @latest/merge, or 3/@7 for number 7."
    static let targetHelp = "A graph, or an operation as GRAPH/OPERATION."

    /// The name of a graph. It is never empty and has no slash: a name with a slash is an
    /// operation.
    static func graph(_ text: String) throws -> String {
        guard !text.isEmpty else { throw ValidationError("the name of the graph is empty") }
        guard !text.contains("/") else {
            throw ValidationError("“\(text)” is an operation; name a graph")
        }
        return text
    }

    /// Everything after the first slash is the name of the operation, which may contain more
    /// slashes.
    static func operation(_ text: String) throws -> OperationSelector {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else {
            let name = text.filter { $0 != "/" }
            let isGraph = name.hasPrefix("@") || text.hasSuffix("/") && !name.isEmpty
            let example = isGraph ? name + "/merge" : "@latest/" + (name.isEmpty ? "merge" : name)
            throw ValidationError(
                "name the operation with its graph: GRAPH/OPERATION, for example \(example)"
            )
        }
        return OperationSelector(graph: String(parts[0]), operation: String(parts[1]))
    }
}

/// The target of `cancel`, `suspend` and `resume`.
struct TargetArguments: ParsableArguments {
    @Argument(help: ArgumentHelp(Selectors.targetHelp))
    var target: String?

    @Option(help: ArgumentHelp("All operations of this queue.", valueName: "name"))
    var queue: String?

    func validate() throws {
        guard (target == nil) != (queue == nil) else {
            throw ValidationError(
                target == nil
                    ? "name a graph, an operation as GRAPH/OPERATION, or --queue NAME"
                    : "a graph or operation and --queue cannot be combined"
            )
        }
        guard queue != "" else { throw ValidationError("the name of --queue is empty") }
        _ = try selector
    }

    var selector: TargetSelector {
        get throws {
            if let queue { return .queue(queue) }
            let target = target ?? ""
            guard target.contains("/") else { return .graph(try Selectors.graph(target)) }
            return .operation(try Selectors.operation(target))
        }
    }
}

extension TargetSelector {
    /// The same target, for sentences about it.
    var subject: CommandSubject {
        switch self {
        case .operation(let operation): .operation("\(operation.graph)/\(operation.operation)")
        case .graph(let graph): .graph(graph)
        case .queue(let queue): .queue(queue)
        }
    }

    var asked: ClientSession.Subject {
        switch self {
        case .operation(let operation): .operation(operation)
        case .graph(let graph): .graph(graph)
        case .queue(let queue): .queue(queue)
        }
    }
}

// MARK: - Values of options

/// An option whose value is one of a few words.
struct Named<Value: NamedCase & Sendable>: ExpressibleByArgument {
    let value: Value

    init(_ value: Value) { self.value = value }

    var defaultValueDescription: String { value.name }

    init?(argument: String) {
        guard let value = Value(name: argument) else { return nil }
        self.value = value
    }

    static var allValueStrings: [String] { Value.allCases.map { $0.name } }
    static var defaultCompletionKind: CompletionKind { .list(allValueStrings) }
}

extension GraphStatus: ExpressibleByArgument {}
