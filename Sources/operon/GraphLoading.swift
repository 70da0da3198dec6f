import ArgumentParser
import FoundationEssentials
import OperonArguments
import OperonCore
import OperonGraphFile
import OperonModel
import OperonTerminal

/// How a graph file is read: its parameters, and the times of a WfFormat file.
struct GraphReadingArguments: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "For WfFormat: replace each task by a wait of its recorded run time times this.",
            valueName: "scale"
        )
    )
    var replay: Double?

    @OptionGroup var parameters: ParameterArguments

    /// The first of these options that is given; `nil`: none is.
    var firstOption: String? {
        if !parameters.settings.isEmpty { return "--set" }
        if !parameters.files.isEmpty { return "--parameters" }
        return replay == nil ? nil : "--replay"
    }

    func validate() throws {
        if let replay, !(replay >= 0 && replay.isFinite) {
            throw ValidationError("--replay must not be negative")
        }
    }

    /// Reads the file without checking the graph as a whole. Warnings go to standard error.
    ///
    /// - Throws: `Failure` with every problem and its position.
    func read(_ file: String) throws(Failure) -> GraphFile {
        let input =
            file == "-"
            ? try UserFile.readStandardInput(bytesMax: Limits().graphFileBytes) : nil
        do throws(GraphFileError) {
            var options = GraphFileOptions(
                replayScale: replay,
                parameters: try parameters.read()
            )
            let read: GraphFile
            if let input {
                options.directory = FileManager.default.currentDirectoryPath
                options.name = "stdin"
                read = try GraphFile.read(bytes: input, file: "standard input", options: options)
            } else {
                read = try GraphFile.read(path: file, options: options)
            }
            for warning in read.warnings + read.nameWarnings {
                let line = "warning: \(TerminalText.line(warning.description))\n"
                FileOutput.standardError.write(Array(line.utf8))
            }
            return read
        } catch {
            guard input == nil, TriggerFile.isMeant(by: file) else { throw Failure(error) }
            let name = TerminalText.line(CommandText.quoted(file))
            // What it lacks as a graph helps nobody.
            throw Failure(
                ExitStatus.usage,
                "\(name) is a trigger. To add it to a coordinator: operon trigger add \(name)"
            )
        }
    }
}

/// The graph file and its format: the same for every command that takes a graph file.
struct GraphFileArguments: ParsableArguments {
    @Argument(
        help: "The graph file: YAML, JSON, JSON Lines, or WfFormat; - is standard input.",
        completion: .file()
    )
    var file: String

    @OptionGroup var reading: GraphReadingArguments

    func read() throws(Failure) -> GraphFile { try reading.read(file) }

    /// Reads and checks the file.
    ///
    /// - Throws: `Failure` with every problem and its position.
    func load(targets: [String] = [], failFast: Bool = false) throws -> LoadedGraph {
        let read = try self.read()
        do throws(Refusal) {
            // The whole file is checked, even if only a part of it is needed.
            var compiled = try CompiledGraph.compile(read.graph)
            var graph = read.graph
            var omitted: Set<String> = []
            if !targets.isEmpty {
                graph = try Self.part(of: read.graph, needed: targets)
                compiled = try CompiledGraph.compile(graph)
                omitted = Set(read.graph.operations.lazy.map(\.name))
                omitted.subtract(graph.operations.lazy.map(\.name))
            }
            compiled.failFast = failFast
            return LoadedGraph(description: graph, compiled: compiled, omitted: omitted)
        } catch .unknownOperation(let name, let namedBy) where namedBy == Self.commandLine {
            let names = read.graph.operations.lazy.map(\.name)
            let group = RepeatedNames.group(ofElement: name)
            guard let group, names.contains(group + RepeatedNames.addingSuffix) else {
                throw missing(RepeatedNames.group(ofEach: name) ?? name, among: names)
            }
            let why = "the elements of “\(group)” are found while it runs; name “\(group)”"
            throw missing(name, among: EmptyCollection(), else: ": " + why)
        } catch {
            throw Failure(read.located(error))
        }
    }

    /// What the file does not have, although the command line names it.
    ///
    /// - Parameters:
    ///   - known: The operations that the file has.
    ///   - note: What is said if none of them is similar.
    func missing(
        _ operation: String,
        among known: some Sequence<String>,
        else note: String = ""
    ) -> Failure {
        let hint = Suggestion.hint(for: operation, among: known)
        let message =
            "\(file): there is no operation “\(operation)”" + (hint.isEmpty ? note : hint)
        return Failure(ExitStatus.noSuchObject, message)
    }

    private static let commandLine = "the command line"

    /// The targets and all their dependencies, direct and indirect, in the order of the file.
    private static func part(
        of graph: GraphDescription,
        needed targets: [String]
    ) throws(Refusal) -> GraphDescription {
        var numbers: [String: Int] = [:]
        for (index, operation) in graph.operations.enumerated() { numbers[operation.name] = index }
        var isNeeded = [Bool](repeating: false, count: graph.operations.count)
        var open: [Int] = []
        for target in targets {
            let group = RepeatedNames.group(ofEach: target).flatMap { group in
                let isRepeated = graph.operations.contains {
                    RepeatedNames.isPart($0.name, of: group)
                }
                return isRepeated ? numbers[group] : nil
            }
            guard let number = numbers[target] ?? group else {
                throw .unknownOperation(name: target, namedBy: commandLine)
            }
            open.append(number)
        }
        while let index = open.popLast() {
            guard !isNeeded[index] else { continue }
            isNeeded[index] = true
            for dependency in graph.operations[index].dependencies {
                if let number = numbers[dependency.name] { open.append(number) }
            }
        }
        var part = graph
        part.operations = graph.operations.indices.filter { isNeeded[$0] }
            .map { graph.operations[$0] }
        return part
    }
}

/// A graph that has passed all checks.
struct LoadedGraph: Sendable {
    let description: GraphDescription
    let compiled: CompiledGraph
    /// The operations of the file that are not in the graph, because only others are to run.
    var omitted: Set<String> = []

    /// The decisions on this graph, for people. What is omitted has not been removed.
    func view(of continuation: Continuation) -> ContinuationView {
        shown(continuation.view(of: description))
    }

    /// Without what is omitted.
    func shown(_ view: ContinuationView) -> ContinuationView {
        var view = view
        view.removed.removeAll { omitted.contains($0) }
        return view
    }
}
