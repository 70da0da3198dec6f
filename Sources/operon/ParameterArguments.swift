import ArgumentParser
import FoundationEssentials
import OperonArguments
import OperonGraphFile

/// Values for the parameters of a graph: the same for every command that takes a graph file.
struct ParameterArguments: ParsableArguments {
    @Option(
        name: .customLong("set"),
        help: ArgumentHelp(
            "The value of a parameter of the graph; may be repeated. Elements of a list are "
                + "separated by commas.",
            valueName: "name=value"
        ),
        transform: assignment
    )
    var settings: [ParameterAssignment] = []

    @Option(
        name: .customLong("parameters"),
        help: ArgumentHelp(
            "Values of parameters: a map from names to values, in JSON or YAML; may be repeated. "
                + "--set takes precedence.",
            valueName: "file"
        ),
        completion: .file()
    )
    var files: [String] = []

    /// Reads the values; those of `--set` come last, because the last value counts.
    ///
    /// - Throws: what is wrong with the files.
    func read() throws(GraphFileError) -> [ParameterAssignment] {
        var assignments: [ParameterAssignment] = []
        for file in files { assignments += try ParameterAssignment.read(path: file) }
        return assignments + settings
    }

    private static func assignment(_ setting: String) throws -> ParameterAssignment {
        let assignment = ParameterAssignment(
            setting,
            source: "--set",
            directory: FileManager.default.currentDirectoryPath
        )
        guard let assignment else { throw ValidationError("it needs NAME=VALUE") }
        return assignment
    }
}
