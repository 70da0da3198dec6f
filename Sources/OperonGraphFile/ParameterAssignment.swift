package import OperonModel

/// The value that a submitter gives to a parameter of a graph.
package struct ParameterAssignment: Hashable, Sendable {
    package let name: String
    private let given: Given
    private let namePosition: Position
    /// What errors call the place of the value: a file, or a part of the command line.
    private let source: String
    /// The directory to which a relative path is relative; `nil`: it stays as it is.
    private let directory: String?
    /// Who gives the value.
    private(set) var origin = ValueOrigin.submitter

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
        // Of bytes: a character may be an equals sign with an accent.
        let bytes = text.utf8
        guard let sign = bytes.firstIndex(of: UInt8(ascii: "=")), sign != text.startIndex else {
            return nil
        }
        self.init(
            String(text[..<sign]),
            String(text[bytes.index(after: sign)...]),
            source: source,
            directory: directory
        )
    }

    /// The value of one parameter as text. The elements of a list are separated by commas.
    package init(_ name: String, _ value: String, source: String, directory: String?) {
        self.name = name
        given = .text(value)
        namePosition = .none
        self.source = "\(source) \(name.shortened)"
        self.directory = directory
    }

    init(
        _ entry: Node.Entry,
        source: String,
        directory: String?,
        origin: ValueOrigin = .submitter
    ) {
        self.origin = origin
        name = entry.key
        given = .node(entry.value)
        namePosition = entry.keyPosition
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
            let bytes = try source.readAll()
            let directory = Path.directory(of: path)
            let (root, findings) =
                switch GraphFileFormat(suffixOf: path) ?? GraphFileFormat(contentOf: bytes) {
                case .yaml: try YAMLReader.value(bytes, limits: limits)
                case .json, .jsonLines: try JSONReader.value(bytes, limits: limits)
                }
            return try values(of: root, findings, source: path, directory: directory)
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
            let (root, findings) = try JSONReader.value(Array(json.utf8), limits: limits)
            return try values(of: root, findings, source: source, directory: nil)
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
            guard !text.isEmpty else { return Node(.sequence([]), at: .none) }
            let parts = text.utf8.split(separator: Byte.comma, omittingEmptySubsequences: false)
            return Node(
                .sequence(parts.map { Node(.string(String(Substring($0))), at: .none) }),
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
        var problem = GraphFileError.Problem(.unknownKey, at: namePosition, name, known)
        problem.file = source
        return problem
    }
}
