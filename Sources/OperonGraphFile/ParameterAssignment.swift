package import OperonModel

/// The value that a submitter gives to a parameter of a graph.
package struct ParameterAssignment: Hashable, Sendable {
    package let name: String
    private let given: Given
    /// What errors call the place of the value: a file, or a part of the command line.
    private let source: String
    /// The directory to which a relative path is relative; `nil`: it stays as it is.
    private let directory: String?

    private enum Given: Hashable, Sendable {
        /// Elements of a list are separated by commas.
        case text(String)
        case node(Node)
    }

    /// Reads `NAME=VALUE`. The elements of a list are separated by commas.
    ///
    /// - Parameters:
    ///   - source: What errors call the place of the value, for example `--set`.
    ///   - directory: A relative value of type `path` is relative to it; `nil`: it stays relative.
    /// - Returns: `nil`: there is no `=`, or no name before it.
    package init?(_ text: String, source: String, directory: String?) {
        guard let sign = text.firstIndex(of: "="), sign != text.startIndex else { return nil }
        name = String(text[..<sign])
        given = .text(String(text[text.index(after: sign)...]))
        self.source = "\(source) \(name.shortened)"
        self.directory = directory
    }

    private init(_ entry: Node.Entry, source: String, directory: String?) {
        name = entry.key
        given = .node(entry.value)
        self.source = source
        self.directory = directory
    }

    /// Reads a map from names to values, in JSON or YAML. A relative value of type `path` is
    /// relative to the directory of the file.
    ///
    /// - Throws: everything that is wrong with the file as such; whether the graph takes the values
    ///   is checked when the graph is read.
    package static func read(
        path: String,
        limits: Limits = Limits()
    ) throws(GraphFileError) -> [ParameterAssignment] {
        do throws(Stop) {
            let source = try ByteSource(path: path, bytesMax: bytesMax)
            // JSON is YAML, as far as a map of values is concerned.
            var tree = YAMLTree(try source.readAll(), limits: limits)
            guard case .documentStart = try tree.next().event else { throw GraphReading.empty() }
            let (event, position) = try tree.next()
            let root = try tree.value(event, at: position, depth: 0)
            let directory = Path.directory(of: path)
            return try values(of: root, tree.takeFindings(), source: path, directory: directory)
        } catch {
            throw GraphFileError.unfound(error, file: path)
        }
    }

    /// Reads a map from names to values from a JSON text. A relative value of type `path` stays
    /// relative.
    ///
    /// - Parameter source: What errors call the text.
    static func read(
        json: String,
        source: String,
        limits: Limits
    ) throws(GraphFileError) -> [ParameterAssignment] {
        do throws(Stop) {
            var parser = JSONParser(Array(json.utf8), bounds: TreeBounds(limits))
            let root = try parser.value()
            try JSONReader.finish(&parser)
            return try values(of: root, parser.takeFindings(), source: source, directory: nil)
        } catch {
            throw GraphFileError.unfound(error, file: source)
        }
    }

    private static func values(
        of root: Node,
        _ findings: [GraphFileError.Problem],
        source: String,
        directory: String?
    ) throws(Stop) -> [ParameterAssignment] {
        if let finding = findings.first { throw .problem(finding) }
        guard let entries = root.entries else {
            throw .problem(
                GraphFileError.Problem(
                    .wrongType,
                    at: root.position,
                    root.thing,
                    "parameters are a map from names to values, not \(root.kindName)"
                )
            )
        }
        return entries.map { ParameterAssignment($0, source: source, directory: directory) }
    }

    /// The most bytes of a file with values: as many as a message has.
    private static let bytesMax = 8 << 20

    // MARK: - Reading it as a type

    func node(isList: Bool) -> Node {
        switch given {
        case .node(let node): return node
        case .text(let text):
            guard isList else { return Node(.string(text), at: .none) }
            let elements = text.split(separator: ",", omittingEmptySubsequences: false)
            return Node(
                .sequence(
                    text.isEmpty ? [] : elements.map { Node(.string(String($0)), at: .none) }
                ),
                at: .none
            )
        }
    }

    /// A relative path becomes an absolute one if its directory is known.
    func resolved(_ value: Node.Value, _ type: ParameterType) -> Node.Value {
        guard type == .path, let directory, case .string(let path) = value else { return value }
        return .string(Path.joined(directory, path))
    }

    /// A problem with this value, at its own place.
    func problem(_ node: Node, _ message: String) -> GraphFileError.Problem {
        var problem = GraphFileError.Problem(.invalidValue, at: node.position, node.thing, message)
        problem.file = source
        return problem
    }

    /// The graph has no such parameter.
    func unknown(among names: [String]) -> GraphFileError.Problem {
        let known =
            names.isEmpty
            ? "the graph has no parameters"
            : "the graph has no parameter \(name.quoted)" + Suggestion.hint(for: name, among: names)
        return problem(node(isList: false), known)
    }
}
