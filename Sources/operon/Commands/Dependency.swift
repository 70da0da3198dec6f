import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

struct Dependency: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dependency",
        abstract: "Add or remove a dependency of an operation.",
        discussion: """
            The two operations may belong to different graphs. The dependencies of an operation \
            that a worker has, or that has finished, cannot be changed.
            """,
        subcommands: [DependencyAdd.self, DependencyRemove.self]
    )
}

/// The dependent and its dependency.
struct DependencyArguments: ParsableArguments {
    @Argument(help: ArgumentHelp(Selectors.operationHelp), transform: Selectors.operation)
    var operation: OperationSelector

    @Option(
        help: ArgumentHelp(
            "The operation that it depends on.",
            valueName: "graph/operation"
        ),
        transform: Selectors.operation
    )
    var on: OperationSelector
}

struct DependencyAdd: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Make an operation that has not started depend on another one.",
        usage: "operon dependency add <graph>/<operation> --on <graph>/<operation> [<options>]",
        discussion: """
            Refused if a worker has the operation already, or if operations would wait for each \
            other in a cycle. If the other operation has finished, its outcome applies at once.
            """
    )

    @OptionGroup var dependency: DependencyArguments

    @Option(
        help: ArgumentHelp(
            "The condition: unlessFailed, finished, succeeded or failed.",
            valueName: "condition"
        )
    )
    var when = Named<DependencyCondition>(.unlessFailed)

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        let (operation, on) = (dependency.operation, dependency.on)
        let subject = ClientSession.Subject.operations([operation, on])
        try await ClientSession.run(coordinator, about: subject) { session in
            let detail = try await session.change { () async throws(ClientError) in
                try await session.client.addDependency(of: operation, on: on, when.value)
            }
            try session.console.tell(detail, names: [detail.operation.selector]) {
                // Names of graphs are used again; the number stays.
                let other = detail.dependencies.last { $0.operation.name == on.operation }
                return $0.depends(
                    detail,
                    on: "\(other.map { String($0.operation.graph) } ?? on.graph)/\(on.operation)"
                )
            }
        }
    }
}

struct DependencyRemove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Remove a dependency of an operation that has not started.",
        usage: "operon dependency remove <graph>/<operation> --on <graph>/<operation> [<options>]",
        discussion: "An operation without unfinished dependencies becomes ready."
    )

    @OptionGroup var dependency: DependencyArguments

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        let (operation, on) = (dependency.operation, dependency.on)
        let subject = ClientSession.Subject.operations([operation, on])
        try await ClientSession.run(coordinator, about: subject) { session in
            let detail = try await session.change { () async throws(ClientError) in
                try await session.client.removeDependency(of: operation, on: on)
            }
            try session.console.tell(detail, names: [detail.operation.selector]) {
                $0.dependsNoMore(detail, on: "\(on.graph)/\(on.operation)")
            }
        }
    }
}
