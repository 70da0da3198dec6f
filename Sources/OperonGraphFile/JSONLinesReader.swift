import OperonModel

/// Reads one operation per line, in pieces of the file, so that only the graph stays in memory.
enum JSONLinesReader {
    static func read(
        _ source: consuming ByteSource,
        file: String,
        options: GraphFileOptions
    ) throws(GraphFileError) -> GraphFile {
        var reading = GraphReading(file: file, options: options)
        var stop: Stop?
        do throws(Stop) {
            try GraphReading.refuseReplay(options)
            try walk(&source, TreeBounds(options.limits), into: &reading.assembler)
        } catch {
            stop = error
        }
        return try reading.finish(stop)
    }

    private static func walk(
        _ source: inout ByteSource,
        _ bounds: TreeBounds,
        into assembler: inout GraphAssembler
    ) throws(Stop) {
        var buffer: [UInt8] = []
        var line: UInt32 = 1
        var isFirst = true
        var isEnd = false
        while !isEnd {
            let scanned = buffer.count
            isEnd = try !source.read(appendingTo: &buffer)
            // Only the new bytes can contain the end of a line.
            let hasLine = isEnd || buffer[scanned...].contains(Byte.newline)
            guard hasLine, !buffer.isEmpty else { continue }
            let last = isEnd ? buffer.count : (buffer.lastIndex(of: Byte.newline) ?? -1) + 1
            var parser = JSONParser(buffer, bounds: bounds, line: line)
            while parser.index < last {
                try readLine(&parser, isFirst: &isFirst, into: &assembler)
                line += 1
            }
            buffer = Array(buffer[last...])
        }
        if isFirst { throw GraphReading.empty() }
        assembler.beginOperations()
    }

    private static func readLine(
        _ parser: inout JSONParser,
        isFirst: inout Bool,
        into assembler: inout GraphAssembler
    ) throws(Stop) {
        parser.beginLine()
        if !parser.isAtEnd() {
            let value = try parser.value()
            try assembler.report(parser.takeFindings())
            try JSONReader.finish(&parser)
            if isFirst, let header = value.entries, isHeader(header) {
                if let parameters = header.first(where: {
                    $0.key == GraphAssembler.parametersKey
                }) {
                    try assembler.declareParameters(parameters)
                }
                for entry in header { try assembler.root(entry) }
            } else {
                try assembler.operation(value)
            }
            isFirst = false
        }
        parser.endLine()
    }

    /// Whether a map describes the graph instead of an operation.
    private static func isHeader(_ entries: [Node.Entry]) -> Bool {
        entries.allSatisfy {
            $0.key != "operations" && GraphAssembler.rootKeys.contains($0.key)
                || $0.key == GraphAssembler.schemaKey
        }
    }
}
