package import OperonModel

/// The format of a graph file.
package enum GraphFileFormat: String, Hashable, Sendable, CaseIterable {
    case yaml
    /// A map with `operations`, or WfFormat, which is recognised by its key `workflow`.
    case json
    /// One operation per line; the first line may contain the rest of the graph.
    case jsonLines
}

/// How to read a graph file.
package struct GraphFileOptions: Hashable, Sendable {
    /// For WfFormat: each task becomes a wait of its recorded run time × this factor. At least 0.
    package var replayScale: Double?
    package var limits: Limits
    /// The directory where processes start by default, and to which relative directories are
    /// relative. `nil`: the directory of the file; for bytes, none.
    package var directory: String?
    /// The name of the graph if the file gives none; `nil`: the base name of the file.
    package var name: String?
    /// Values for the parameters of the graph; of several for one parameter the last counts.
    package var parameters: [ParameterAssignment]
    /// How many bytes the values of parameters may bring into the graph; `nil`: as many as a graph
    /// file may have.
    package var expandedBytesMax: Int?
    /// Whether `forEach` may read files of this machine, if there is a directory.
    package var readsFiles = true
    /// Whether a trigger submits the graph, whose “set” gives the values; else a command line does.
    package var isOfTrigger = false
    /// Whether a running operation adds the graph to its own, and gives the values.
    package var isAddition = false

    package init(
        replayScale: Double? = nil,
        limits: Limits = Limits(),
        directory: String? = nil,
        name: String? = nil,
        parameters: [ParameterAssignment] = []
    ) {
        self.replayScale = replayScale
        self.limits = limits
        self.directory = directory
        self.name = name
        self.parameters = parameters
    }
}

/// A graph that was read from a file, and the positions of its parts in the file.
package struct GraphFile: Hashable, Sendable {
    package var graph: GraphDescription
    package var sourceMap: SourceMap
    /// The file, as the caller named it.
    package var file: String
    /// What is probably not meant: what was read differently from what the file says, and values
    /// that a shell would interpret. For people.
    package var warnings: [GraphFileError.Problem] = []

    /// Reads a file. A relative path is relative to the current directory of the process.
    /// - Parameter format: `nil`: determined by the suffix, otherwise by the content.
    /// - Throws: everything that is wrong with the file, up to 20 problems. Problems that only the
    ///   whole graph shows (a cycle, an unknown dependency) are found later, when the graph is
    ///   submitted or run; see `located`.
    package static func read(
        path: String,
        format: GraphFileFormat? = nil,
        options: GraphFileOptions = GraphFileOptions()
    ) throws(GraphFileError) -> GraphFile {
        var options = options
        options.directory = options.directory ?? Path.directory(of: path)
        let source: ByteSource
        do throws(Stop) {
            source = try ByteSource(path: path, bytesMax: options.limits.graphFileBytes)
        } catch {
            throw GraphFileError.unfound(error, file: path)
        }
        if (format ?? GraphFileFormat(suffixOf: path)) == .jsonLines {
            return try JSONLinesReader.read(source, file: path, options: options)
        }
        let bytes: [UInt8]
        do throws(Stop) {
            bytes = try source.readAll()
        } catch {
            throw GraphFileError.unfound(error, file: path)
        }
        return try read(bytes: bytes, file: path, format: format, options: options)
    }

    /// Reads the bytes of a file.
    /// - Parameter file: the name of the file in errors. Its suffix determines the format; its base
    ///   name is the name of the graph if the file gives none.
    package static func read(
        bytes: [UInt8],
        file: String,
        format: GraphFileFormat? = nil,
        options: GraphFileOptions = GraphFileOptions()
    ) throws(GraphFileError) -> GraphFile {
        let maximum = options.limits.graphFileBytes
        guard bytes.count <= maximum else {
            let problem = GraphFileError.Problem(
                limit: .graphFileBytes,
                value: bytes.count,
                maximum: maximum,
                at: .none,
                "",
                "the file is too large"
            )
            throw GraphFileError.unfound(.problem(problem), file: file)
        }
        switch format ?? GraphFileFormat(suffixOf: file) ?? GraphFileFormat(contentOf: bytes) {
        case .yaml: return try YAMLReader.read(bytes, file: file, options: options)
        case .jsonLines:
            return try JSONLinesReader.read(ByteSource(bytes), file: file, options: options)
        case .json:
            if WfFormatReader.isWfFormat(bytes) {
                return try WfFormatReader.read(bytes, file: file, options: options)
            }
            return try JSONReader.read(bytes, file: file, options: options)
        }
    }
}

extension GraphFileFormat {
    /// The format by suffix: `.yaml`, `.yml`, `.json`, `.jsonl`, `.ndjson`.
    init?(suffixOf file: String) {
        switch Path.suffix(of: file).lowercased() {
        case "yaml", "yml": self = .yaml
        case "json": self = .json
        case "jsonl", "ndjson": self = .jsonLines
        default: return nil
        }
    }

    /// A text that begins with a brace is JSON, or JSON Lines if another map begins after the
    /// first. Anything else is YAML.
    init(contentOf bytes: [UInt8]) {
        var parser = JSONParser(bytes, bounds: TreeBounds(Limits()))
        guard parser.peek() == Byte.openBrace else {
            self = .yaml
            return
        }
        do throws(Stop) {
            try parser.skip()
            self = parser.peek() == Byte.openBrace ? .jsonLines : .json
        } catch {
            // `{a: b}` is YAML, but the JSON reader gives the best errors for a mistake in JSON.
            self = bytes.contains(Byte.quote) ? .json : .yaml
        }
    }
}

extension GraphFileError {
    /// A refusal of a file that could not be read at all.
    static func unfound(_ stop: Stop, file: String) -> GraphFileError {
        // benign: `error` is nil only for a log without problems and no stop.
        ProblemLog().error(after: stop, file: file) ?? GraphFileError(problems: [])
    }
}

// MARK: - Refusals of the whole graph

extension GraphFile {
    /// A refusal of this graph, with its position in the file.
    package func located(_ refusal: Refusal) -> GraphFileError {
        let found = locate(refusal)
        let problem = GraphFileError.Problem(
            code: found.code,
            file: file,
            line: Int(found.position.line),
            column: Int(found.position.column),
            thing: found.thing.shortened,
            message: refusal.description + found.hint,
            limit: found.limit
        )
        return GraphFileError(problems: [problem])
    }

    private struct Found {
        var code: GraphFileError.Code
        var position: Position
        var thing: String
        var hint = ""
        var limit: LimitName?
    }

    private func locate(_ refusal: Refusal) -> Found {
        switch refusal {
        case .dependencyCycle(let path):
            let first = path.first ?? ""
            let next = path.count > 1 ? path[1] : first
            return Found(
                code: .dependencyCycle,
                position: position(of: next, in: first),
                thing: first
            )
        case .unknownOperation(let name, let namedBy):
            // Suggestions are for graphs written by hand, so only the first 10,000 names are
            // searched.
            let known = graph.operations.prefix(10_000).lazy.map(\.name)
            return Found(
                code: .unknownOperation,
                position: position(of: name, in: namedBy),
                thing: name,
                hint: Suggestion.hint(for: name, among: known)
            )
        case .duplicateOperation(let name):
            let places = graph.operations.indices.filter { graph.operations[$0].name == name }
            let first = places.first.flatMap { sourceMap.place(ofOperation: $0)?.line }
            return Found(
                code: .duplicateOperation,
                position: sourceMap.position(ofDependency: nil, of: places.last ?? -1),
                thing: name,
                hint: first.map { ", first in line \($0)" } ?? ""
            )
        case .alreadySubmitted(let name), .alreadyStarted(let name), .alreadyFinished(let name):
            return Found(code: .refused, position: position(of: nil, in: name), thing: name)
        case .invalid(let field, _):
            let position = Self.operation(inField: field).map { self.position(of: nil, in: $0) }
            return Found(code: .invalidValue, position: position ?? .none, thing: field)
        case .limitExceeded(let limit, let value, _):
            return Found(
                code: .limitExceeded,
                position: .none,
                thing: String(value),
                limit: limit
            )
        case .graphClosed(let name):
            return Found(code: .refused, position: .none, thing: name)
        case .unreachable:
            return Found(code: .refused, position: .none, thing: "")
        }
    }

    /// The operation in the name of a field such as “… of “name””, which the graph
    /// compiler makes.
    private static func operation(inField field: String) -> String? {
        guard field.hasSuffix("”"), let start = field.index(behind: " of “") else { return nil }
        return String(field[start...].dropLast())
    }

    /// The position where `operation` names its `dependency`; otherwise the position of the
    /// operation.
    private func position(of dependency: String?, in operation: String) -> Position {
        guard let index = graph.operations.firstIndex(where: { $0.name == operation }) else {
            return .none
        }
        let offset = graph.operations[index].dependencies.firstIndex { $0.name == dependency }
        return sourceMap.position(ofDependency: offset, of: index)
    }
}

extension String {
    /// The index after the first occurrence of `text`.
    fileprivate func index(behind text: String) -> Index? {
        var rest = self[...]
        while !rest.isEmpty {
            if rest.hasPrefix(text) { return index(rest.startIndex, offsetBy: text.count) }
            rest = rest.dropFirst()
        }
        return nil
    }
}
