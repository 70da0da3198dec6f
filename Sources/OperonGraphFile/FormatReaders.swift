import OperonModel

/// What the readers of all formats have in common: an assembler, and how it ends.
struct GraphReading {
    var assembler: GraphAssembler
    let file: String

    init(file: String, options: GraphFileOptions, isYAML: Bool = false) {
        self.file = file
        assembler = GraphAssembler(
            limits: options.limits,
            base: options.directory,
            isYAML: isYAML
        )
    }

    /// The graph, or everything that is wrong.
    mutating func finish(_ stop: Stop?) throws(GraphFileError) -> GraphFile {
        var stop = stop
        if stop == nil, !assembler.hasOperations {
            stop = .problem(
                GraphFileError.Problem(
                    .missingKey,
                    at: .none,
                    "operations",
                    "the graph has no “operations”"
                )
            )
        }
        if let error = assembler.reader.fields.log.error(after: stop, file: file) { throw error }
        let (graph, sourceMap) = assembler.finish(name: Self.name(of: file))
        return GraphFile(graph: graph, sourceMap: sourceMap, file: file)
    }

    /// The graph's name where the file gives none.
    static func name(of file: String) -> String {
        let name = Path.baseName(of: file)
        return name.isEmpty ? "graph" : name
    }

    static func refuseReplay(_ options: GraphFileOptions) throws(Stop) {
        guard options.replayScale != nil else { return }
        throw .problem(
            GraphFileError.Problem(
                .unsupported,
                at: .none,
                "--replay",
                "--replay is for WfFormat files, which have recorded run times"
            )
        )
    }

    static func empty() -> Stop {
        .problem(GraphFileError.Problem(.empty, at: .none, "", "the file is empty"))
    }
}

/// Reads a graph from JSON: operations one by one, so that no tree of the file is kept.
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
            try walk(&parser, into: &reading.assembler)
        } catch {
            stop = error
        }
        return try reading.finish(stop)
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

    /// Nothing but white space may follow.
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

/// Reads one operation a line, in pieces of the file: only what is read of the graph is kept.
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
            // Only what is new can have the end of a line.
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
                for entry in header { try assembler.root(entry) }
            } else {
                try assembler.operation(value)
            }
            isFirst = false
        }
        parser.endLine()
    }

    /// Whether a map describes the graph and not an operation.
    private static func isHeader(_ entries: [Node.Entry]) -> Bool {
        entries.allSatisfy {
            $0.key == "name" || $0.key == "queues" || $0.key == "defaults"
                || $0.key == GraphAssembler.schemaKey
        }
    }
}

/// Reads a graph from YAML: operations one by one.
enum YAMLReader {
    static func read(
        _ bytes: [UInt8],
        file: String,
        options: GraphFileOptions
    ) throws(GraphFileError) -> GraphFile {
        var reading = GraphReading(file: file, options: options, isYAML: true)
        var stop: Stop?
        do throws(Stop) {
            try GraphReading.refuseReplay(options)
            var tree = YAMLTree(bytes, limits: options.limits)
            try walk(&tree, into: &reading.assembler)
        } catch {
            stop = error
        }
        return try reading.finish(stop)
    }

    private static func walk(
        _ tree: inout YAMLTree,
        into assembler: inout GraphAssembler
    ) throws(Stop) {
        guard case .documentStart = try tree.next().event else { throw GraphReading.empty() }
        let (root, position) = try tree.next()
        switch root {
        case .mappingStart: break
        case .scalar(let scalar) where scalar.text.isEmpty: throw GraphReading.empty()
        case .scalar, .sequenceStart, .alias, .sequenceEnd, .mappingEnd, .documentStart,
            .documentEnd, .streamEnd:
            throw .problem(
                GraphFileError.Problem(
                    .wrongType,
                    at: position,
                    "",
                    "a graph is a map with “operations”"
                )
            )
        }
        try entries(&tree, into: &assembler)
        _ = try tree.next()
        let (event, behind) = try tree.next()
        guard case .streamEnd = event else {
            throw .problem(
                GraphFileError.Problem(
                    .unsupported,
                    at: behind,
                    "---",
                    "a graph file has one document"
                )
            )
        }
    }

    private static func entries(
        _ tree: inout YAMLTree,
        into assembler: inout GraphAssembler
    ) throws(Stop) {
        var seen = SeenKeys<Position>()
        var brought: [Node.Entry] = []
        while true {
            let (event, position) = try tree.next()
            if case .mappingEnd = event { break }
            let isMerge = YAMLTree.isMerge(event)
            let key = try tree.key(event, at: position)
            let (next, at) = try tree.next()
            if isMerge {
                brought += try tree.merged(tree.value(next, at: at, depth: 1))
            } else if let first = seen.insert(key, position) {
                try assembler.report([.duplicateKey(key, at: position, first: first)])
                _ = try tree.value(next, at: at, depth: 1)
            } else if key == "operations", case .mappingStart = next {
                assembler.beginOperations()
                try operationMap(&tree, into: &assembler)
            } else if key == "operations", case .sequenceStart = next {
                assembler.beginOperations()
                try operationList(&tree, into: &assembler)
            } else {
                let value = try tree.value(next, at: at, depth: 1)
                try assembler.report(tree.takeFindings())
                try assembler.root(Node.Entry(key: key, keyPosition: position, value: value))
            }
        }
        for entry in brought where seen.insert(entry.key, entry.keyPosition) == nil {
            try assembler.root(entry)
        }
    }

    private static func operationMap(
        _ tree: inout YAMLTree,
        into assembler: inout GraphAssembler
    ) throws(Stop) {
        var brought: [Node.Entry] = []
        var own: Set<String> = []
        while true {
            let (event, position) = try tree.next()
            if case .mappingEnd = event { break }
            let isMerge = YAMLTree.isMerge(event)
            let key = try tree.key(event, at: position)
            let (next, at) = try tree.next()
            let value = try tree.value(next, at: at, depth: 2)
            try assembler.report(tree.takeFindings())
            if isMerge {
                brought += try tree.merged(value)
            } else {
                own.insert(key)
                try assembler.operation(
                    Node.Entry(key: key, keyPosition: position, value: value)
                )
            }
        }
        for entry in brought where own.insert(entry.key).inserted {
            try assembler.operation(entry)
        }
    }

    private static func operationList(
        _ tree: inout YAMLTree,
        into assembler: inout GraphAssembler
    ) throws(Stop) {
        while true {
            let (event, position) = try tree.next()
            if case .sequenceEnd = event { break }
            let value = try tree.value(event, at: position, depth: 2)
            try assembler.report(tree.takeFindings())
            try assembler.operation(value)
        }
    }
}
