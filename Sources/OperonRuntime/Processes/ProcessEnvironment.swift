import OperonModel

/// The environment of a process: the variables that the command inherits, those it sets, and those
/// that identify the attempt. It contains no other variables of the worker.
enum ProcessEnvironment {
    static let attempt = "OPERON_ATTEMPT"
    /// The file with what fired the trigger that submitted the graph; absent for other graphs.
    static let event = "OPERON_EVENT"
    static let graph = "OPERON_GRAPH"
    static let inputs = "OPERON_INPUTS"
    static let operation = "OPERON_OPERATION"
    static let output = "OPERON_OUTPUT"
    /// Not a name of Operon's: tracers read it (opentelemetry.io, “environment variables as
    /// carriers”).
    static let traceParent = "TRACEPARENT"

    /// Later groups take precedence: inherited, those of its user, the command's, the attempt's
    /// additions, Operon's own.
    static func variables(
        of command: CommandDescription,
        context: ProcessContext,
        worker: [String: String],
        files: ProcessFiles.Attempt
    ) throws(SpawnFailure) -> [String: String] {
        var variables: [String: String] = [:]
        for name in command.inheritEnvironment {
            guard CommandDescription.mayInherit(name) else {
                throw SpawnFailure(
                    message: "“\(name)” cannot be inherited: \(CommandDescription.ownVariables)."
                )
            }
            variables[name] = worker[name]
        }
        if let user = files.user { variables.merge(user.variables) { _, own in own } }
        variables.merge(command.environment) { _, new in new }
        variables.merge(context.environmentAdditions) { _, new in new }
        variables[attempt] = String(context.ordinal)
        variables[graph] = context.graph
        variables[operation] = context.operation
        variables[inputs] = files.inputs
        variables[output] = files.output
        if !context.traceParent.isEmpty { variables[traceParent] = context.traceParent }
        for (name, value) in variables { try check(name, value) }
        return variables
    }

    /// `NAME=value` lines, sorted by name, so that equal commands get equal environments.
    static func lines(_ variables: [String: String]) -> [String] {
        variables.map { "\($0)=\($1)" }.sorted()
    }

    /// Refuses arguments that C strings cannot represent.
    static func check(arguments: [String]) throws(SpawnFailure) {
        guard !arguments.isEmpty else {
            throw SpawnFailure(message: "The command has no arguments, not even a program.")
        }
        if let index = arguments.firstIndex(where: { $0.utf8.contains(0) }) {
            throw SpawnFailure(message: "Argument \(index) of the command contains a NUL byte.")
        }
    }

    private static func check(_ name: String, _ value: String) throws(SpawnFailure) {
        if name.isEmpty || name.utf8.contains(UInt8(ascii: "=")) || name.utf8.contains(0) {
            throw SpawnFailure(message: "“\(name)” cannot be the name of an environment variable.")
        }
        if value.utf8.contains(0) {
            throw SpawnFailure(
                message: "The value of the environment variable “\(name)” contains a NUL byte."
            )
        }
    }
}
