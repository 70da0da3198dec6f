import OperonModel

/// Reads a graph from JSON, one operation at a time, so that no tree of the whole file is kept.
enum JSONReader {
    static func read(
        _ bytes: [UInt8],
        file: String,
        options: GraphFileOptions
    ) throws(GraphFileError) -> GraphFile {
        var reading = GraphReading(file: file, options: options)
        var stop: Stop?
        do throws(Stop) {
            try GraphReading.refuseReplay(options)
            var parser = JSONParser(bytes, bounds: TreeBounds(options.limits))
            guard !parser.isAtEnd() else { throw GraphReading.empty() }
            if let parameters = try parameters(in: bytes, options.limits) {
                try reading.assembler.declareParameters(parameters)
            }
            try walk(&parser, into: &reading.assembler)
        } catch {
            stop = error
        }
        return try reading.finish(stop)
    }

    /// Reads a text that is one value.
    static func value(
        _ bytes: [UInt8],
        limits: Limits
    ) throws(Stop) -> (Node, findings: [GraphFileError.Problem]) {
        var parser = JSONParser(bytes, bounds: TreeBounds(limits))
        guard !parser.isAtEnd() else { throw GraphReading.empty() }
        let value = try parser.value()
        try finish(&parser)
        return (value, parser.takeFindings())
    }

    private static func walk(
        _ parser: inout JSONParser,
        into assembler: inout GraphAssembler
    ) throws(Stop) {
        try parser.beginObject()
        var isFirst = true
        var seen = SeenKeys<Position>()
        while let (key, position) = try parser.nextKey(isFirst: &isFirst) {
            if let first = seen.insert(key, position) {
                try assembler.report([.duplicateKey(key, at: position, first: first)])
                try parser.skip()
            } else if key == "operations", let next = parser.peek(),
                next == Byte.openBrace || next == Byte.openBracket
            {
                assembler.beginOperations()
                try operations(&parser, isMap: next == Byte.openBrace, into: &assembler)
            } else {
                let value = try parser.value()
                try assembler.report(parser.takeFindings())
                try assembler.root(Node.Entry(key: key, keyPosition: position, value: value))
            }
        }
        try finish(&parser)
    }

    /// The declarations of parameters, which may come after what uses them: a program that sorts
    /// keys writes them so. `nil`: there are none.
    private static func parameters(
        in bytes: [UInt8],
        _ limits: Limits
    ) throws(Stop) -> Node.Entry? {
        guard GraphReading.mentionsParameters(bytes) else { return nil }
        var parser = JSONParser(bytes, bounds: TreeBounds(limits))
        try parser.beginObject()
        var isFirst = true
        while let (key, position) = try parser.nextKey(isFirst: &isFirst) {
            guard key == GraphAssembler.parametersKey else {
                try parser.skip()
                continue
            }
            return Node.Entry(key: key, keyPosition: position, value: try parser.value())
        }
        return nil
    }

    private static func operations(
        _ parser: inout JSONParser,
        isMap: Bool,
        into assembler: inout GraphAssembler
    ) throws(Stop) {
        var isFirst = true
        if isMap {
            try parser.beginObject()
            while let (key, position) = try parser.nextKey(isFirst: &isFirst) {
                let value = try parser.value()
                try assembler.report(parser.takeFindings())
                try assembler.operation(
                    Node.Entry(key: key, keyPosition: position, value: value)
                )
            }
        } else {
            try parser.beginArray()
            while try parser.nextElement(isFirst: &isFirst) {
                let value = try parser.value()
                try assembler.report(parser.takeFindings())
                try assembler.operation(value)
            }
        }
    }

    /// Reports anything but white space after the graph.
    static func finish(_ parser: inout JSONParser) throws(Stop) {
        guard parser.isAtEnd() else {
            throw .problem(
                GraphFileError.Problem(
                    .syntax,
                    at: parser.position,
                    "",
                    "something follows the end of the JSON text"
                )
            )
        }
    }
}
