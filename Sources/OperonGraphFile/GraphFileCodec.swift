package import OperonModel
import OperonPorts

/// Encodes graphs to send them between clients and coordinators and to store them. Graphs are
/// written as JSON Lines, and read in every graph file format.
///
/// Nothing is resolved against the file system of this machine: a relative `directory` stays
/// relative. A client that submits a file resolves it first, as `GraphFile.read(path:)` does.
package struct GraphFileCodec: GraphCodec {
    /// The content type that `encode` writes.
    package static let contentType = "application/jsonl"

    private let limits: Limits

    package init(limits: Limits = Limits()) { self.limits = limits }

    /// JSON Lines in pieces of about 64 KiB. Reading them gives the same graph: durations to the
    /// nanosecond, lists without repetitions, JSON inputs without white space. A graph without a
    /// name stays unnamed if it is decoded with the name "".
    /// - Throws: `Refusal` for anything that a graph file cannot represent, before the first piece:
    ///   an input that is not JSON, a name with a control character, a negative duration. The
    ///   message does not mention a file, because the user wrote none.
    package func encode(
        _ graph: GraphDescription
    ) throws -> any Sequence<[UInt8]> & Sendable {
        try check(graph)
        return GraphPieces(graph: graph)
    }

    /// - Parameter contentType: `application/json`, `application/jsonl` or `application/yaml`, or
    ///   another common name of one of them; parameters such as `charset` are ignored.
    /// - Parameter name: the name of the graph if the text gives none; errors also use it for the
    ///   text.
    /// - Parameter parameters: a JSON object with values for the parameters of the graph; errors
    ///   call it `parameters`. A relative path in it stays relative.
    /// - Throws: `GraphFileError` with every problem and its line and column.
    package func decode(
        _ bytes: [UInt8],
        contentType: String,
        name: String,
        parameters: String? = nil
    ) throws -> GraphDescription {
        let file = name.isEmpty ? "graph" : name
        guard let format = GraphFileFormat(contentType: contentType) else {
            let problem = GraphFileError.Problem(
                .unsupported,
                at: .none,
                contentType,
                "\(contentType.quoted) is no graph: it is application/json, application/jsonl or"
                    + " application/yaml"
            )
            throw GraphFileError.unfound(.problem(problem), file: file)
        }
        let given = try parameters.map { text throws(GraphFileError) in
            try ParameterAssignment.read(json: text, source: "parameters", limits: limits)
        }
        var options = GraphFileOptions(limits: limits, name: name, parameters: given ?? [])
        // What a text costs is bounded by its size before it is read, so it must not grow by much.
        options.expandedBytesMax = min(limits.graphFileBytes, (1 << 20) + 16 * bytes.count)
        return try GraphFile.read(bytes: bytes, file: file, format: format, options: options).graph
    }
}

extension GraphFileFormat {
    /// The format by media type; parameters of the type are ignored.
    package init?(contentType: String) {
        let type = contentType.prefix { $0 != ";" }.lowercased().filter { !$0.isWhitespace }
        switch type {
        case "application/json", "text/json": self = .json
        case "application/jsonl", "application/x-ndjson", "application/json-lines",
            "application/ndjson", "application/x-jsonlines":
            self = .jsonLines
        case "application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml": self = .yaml
        default: return nil
        }
    }
}

extension GraphFileCodec {
    /// Checks that a graph can be encoded, for callers that do not send it.
    ///
    /// - Throws: what `encode` throws.
    package func check(_ graph: GraphDescription) throws(Refusal) {
        try WritingCheck(limits) { isJSON($0) }.check(graph)
    }

    /// Whether the input is JSON that is read back as the same value within its operation.
    private func isJSON(_ input: Payload) -> Bool {
        guard input.contentType == Payload.json, input.bytes.first != 0xEF else { return false }
        var bounds = TreeBounds(limits)
        bounds.depth -= 1
        var parser = JSONParser(input.bytes, bounds: bounds)
        do {
            _ = try parser.value()
            return parser.isAtEnd() && parser.takeFindings().isEmpty
        } catch {
            return false
        }
    }
}

/// A graph as JSON Lines, encoded piece by piece as a caller iterates.
private struct GraphPieces: Sequence, Sendable {
    let graph: GraphDescription

    func makeIterator() -> Iterator { Iterator(graph: graph) }

    struct Iterator: IteratorProtocol {
        /// As many bytes as a socket accepts at once.
        private static let pieceBytes = 64 << 10

        private let graph: GraphDescription
        private var writer = GraphWriter()
        private var hasHeader = false
        private var index = 0

        init(graph: GraphDescription) { self.graph = graph }

        mutating func next() -> [UInt8]? {
            if !hasHeader {
                writer.writeHeader(graph)
                hasHeader = true
            }
            while writer.out.count < Self.pieceBytes, index < graph.operations.count {
                writer.writeLine(graph.operations[index])
                index += 1
            }
            return writer.out.isEmpty ? nil : writer.take()
        }
    }
}
