#if Cluster
internal import FoundationEssentials
internal import OperonGraphFile
internal import OperonModel

/// Why a graph file cannot be read or written: all problems found, up to twenty.
public struct GraphFileInvalid: Error, Hashable, Sendable, CustomStringConvertible {
    /// One problem.
    public struct Problem: Hashable, Sendable {
        /// The file name, as it was given.
        public let file: String
        /// The line, counted from 1; 0 if the problem has no place in the file.
        public let line: Int
        /// The column, counted from 1 in Unicode scalars; 0 if the problem has no place in the
        /// file.
        public let column: Int
        /// A sentence that tells a person what to fix.
        public let message: String
    }

    /// The problems in the order in which they were found; at least one.
    public let problems: [Problem]

    init(_ error: GraphFileError) {
        problems = error.problems.map {
            Problem(file: $0.file, line: $0.line, column: $0.column, message: $0.message)
        }
    }

    /// One line of the form `file:line:column: message` for each problem.
    public var description: String {
        problems.map { problem in
            let place = problem.line == 0 ? "" : "\(problem.line):\(problem.column):"
            return "\(problem.file):\(place) \(problem.message)"
        }
        .joined(separator: "\n")
    }
}

extension GraphDescription {
    /// Reads a graph file. Its suffix or its content decides whether it is YAML, JSON or JSON
    /// Lines.
    ///
    /// Relative directories in the file are relative to the folder that contains it.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - parameters: Values for the parameters that the file declares, by name, as text. The
    ///     elements of a list are separated by commas. A parameter without a value has its default.
    /// - Throws: ``GraphFileInvalid``.
    public init(contentsOf path: String, parameters: [String: String] = [:]) throws {
        do throws(GraphFileError) {
            let options = GraphFileOptions(parameters: Self.assignments(parameters))
            self = try GraphFile.read(path: path, options: options).graph
        } catch {
            throw GraphFileInvalid(error)
        }
    }

    /// Reads the text of a graph file.
    ///
    /// - Parameters:
    ///   - text: YAML, JSON or JSON Lines; the content decides which.
    ///   - name: The name of the graph, if the text does not give one.
    ///   - parameters: Values for the parameters that the text declares, by name, as text. The
    ///     elements of a list are separated by commas. A parameter without a value has its default.
    /// - Throws: ``GraphFileInvalid``.
    public init(
        text: String,
        name: String = "graph",
        parameters: [String: String] = [:]
    ) throws {
        do throws(GraphFileError) {
            let options = GraphFileOptions(parameters: Self.assignments(parameters))
            let bytes = Array(text.utf8)
            self = try GraphFile.read(bytes: bytes, file: name, options: options).graph
        } catch {
            throw GraphFileInvalid(error)
        }
    }

    private static func assignments(_ values: [String: String]) -> [ParameterAssignment] {
        values.sorted { $0.key < $1.key }.map {
            ParameterAssignment($0.key, $0.value, source: "parameters", directory: nil)
        }
    }

    /// Returns the graph as a graph file in JSON. Reading the text gives the same graph.
    ///
    /// - Throws: ``GraphFileInvalid`` if a graph file cannot express the graph.
    public func text() throws -> String {
        do throws(GraphFileError) {
            return String(decoding: try GraphFile.encodeJSON(self), as: UTF8.self)
        } catch {
            throw GraphFileInvalid(error)
        }
    }

    /// Writes the graph to a file, in JSON. An existing file is replaced atomically.
    ///
    /// - Throws: ``GraphFileInvalid``, or the error of the file system.
    public func write(to path: String) throws {
        try Data(try text().utf8).write(to: URL(filePath: path), options: .atomic)
    }
}
#endif
