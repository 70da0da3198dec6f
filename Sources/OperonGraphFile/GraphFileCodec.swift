package import OperonModel
import OperonPorts

/// How graphs travel between clients and coordinators and are kept: as graph files, written as
/// JSON Lines and read in every format.
///
/// Nothing is resolved against this machine's file system: a relative `directory` stays relative,
/// so whoever submits a file resolves it first, as `GraphFile.read(path:)` does.
package struct GraphFileCodec: GraphCodec {
    /// The type of what `encode` writes.
    package static let contentType = "application/jsonl"

    private let limits: Limits

    package init(limits: Limits = Limits()) { self.limits = limits }

    /// JSON Lines in pieces of about 64 KiB. Reading them gives the same graph: durations to the
    /// nanosecond, lists without repetitions, inputs in JSON without white space. A graph without
    /// a name stays without one if it is decoded with the name "".
    /// - Throws: `Refusal` for what a graph file cannot hold, before the first piece: an input that
    ///   is not JSON, a name with a control character, a negative duration. Nobody wrote a file, so
    ///   it does not speak of one.
    package func encode(
        _ graph: GraphDescription
    ) throws -> any Sequence<[UInt8]> & Sendable {
        try WritingCheck(limits).check(graph)
        return GraphPieces(graph: graph)
    }

    /// - Parameter contentType: `application/json`, `application/jsonl` or `application/yaml`, or
    ///   another usual name of one of them; parameters such as `charset` are ignored.
    /// - Parameter name: the graph's, if the text gives none; and how errors name the text.
    /// - Throws: `GraphFileError` with every problem, each with line and column.
    package func decode(
        _ bytes: [UInt8],
        contentType: String,
        name: String
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
        let options = GraphFileOptions(limits: limits, name: name)
        return try GraphFile.read(bytes: bytes, file: file, format: format, options: options).graph
    }
}

extension GraphFileFormat {
    /// By the media type, whatever parameters it has.
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
    /// Whether a graph can travel, for callers that do not send it.
    ///
    /// - Throws: what `encode` throws.
    package func check(_ graph: GraphDescription) throws(Refusal) {
        try WritingCheck(limits).check(graph)
    }
}

/// A graph as JSON Lines, written while it is read.
private struct GraphPieces: Sequence, Sendable {
    let graph: GraphDescription

    func makeIterator() -> Iterator { Iterator(graph: graph) }

    struct Iterator: IteratorProtocol {
        /// What a socket takes at once.
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
