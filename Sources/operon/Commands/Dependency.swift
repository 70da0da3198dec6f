import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

struct Dependency: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Let an operation wait for another one as well, or no more.",
        discussion: "Either may be of any graph. What a worker has, or has ended, stays as it is.",
        subcommands: [DependencyAdd.self, DependencyRemove.self]
    )
}

/// The dependent and its dependency.
struct DependencyArguments: ParsableArguments {
    @Argument(help: ArgumentHelp(Selectors.operationHelp), transform: Selectors.operation)
    var operation: OperationSelector

    @Option(
        help: ArgumentHelp(
            "What it waits for, or waits for no more.",
            valueName: "graph/operation"
        ),
        transform: Selectors.operation
    )
    var on: OperationSelector
}

struct DependencyAdd: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Let an operation that has not started wait for another one.",
        usage: "operon dependency add <graph>/<operation> --on <graph>/<operation> [<options>]",
        discussion: """
            Done, or refused: an operation that a worker has is not held up any more, and nothing \
            may wait for itself. If the other one has ended already, it is as if it ended now.
            """
    )

    @OptionGroup var dependency: DependencyArguments

    @Option(
        help: ArgumentHelp(
            "The outcomes of it that release: unlessFailed, finished, succeeded or failed.",
            valueName: "condition"
        )
    )
    var when = Named<DependencyCondition>(.unlessFailed)

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        let (operation, on) = (dependency.operation, dependency.on)
        try await ClientSession.run(coordinator, about: .operations([operation, on])) { session in
            let detail = try await session.client.addDependency(of: operation, on: on, when.value)
            try session.console.tell(detail, names: [detail.operation.selector]) {
                $0.depends(detail, on: "\(on.graph)/\(on.operation)")
            }
        }
    }
}

struct DependencyRemove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Let an operation wait for another one no more.",
        usage: "operon dependency remove <graph>/<operation> --on <graph>/<operation> [<options>]",
        discussion: "Without the last that it waits for it is released."
    )

    @OptionGroup var dependency: DependencyArguments

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        let (operation, on) = (dependency.operation, dependency.on)
        try await ClientSession.run(coordinator, about: .operations([operation, on])) { session in
            let detail = try await session.client.removeDependency(of: operation, on: on)
            try session.console.tell(detail, names: [detail.operation.selector]) {
                $0.dependsNoMore(detail, on: "\(on.graph)/\(on.operation)")
            }
        }
    }
}
