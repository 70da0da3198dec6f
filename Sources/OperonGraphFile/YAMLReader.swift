import OperonModel

/// Reads a graph from YAML, one operation at a time.
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
            try checkDirectives(bytes)
            if let parameters = try parameters(in: bytes, options.limits) {
                try reading.assembler.declareParameters(parameters)
            }
            var tree = YAMLTree(bytes, limits: options.limits)
            try walk(&tree, into: &reading.assembler)
        } catch {
            stop = error
        }
        return try reading.finish(stop)
    }

    /// The most lines that may begin with `%`. A graph file needs at most one, `%YAML 1.2`.
    private static let directivesMax = 100

    /// The C parser compares each directive with all earlier ones, so a file that consists of
    /// directives would keep it busy for days.
    private static func checkDirectives(_ bytes: [UInt8]) throws(Stop) {
        var count = 0
        var line: UInt32 = 1
        var previous = Byte.newline
        for byte in bytes {
            if byte == UInt8(ascii: "%"), previous == Byte.newline {
                count += 1
                guard count <= directivesMax else {
                    throw .problem(
                        GraphFileError.Problem(
                            .unsupported,
                            at: Position(line: line, column: 1),
                            "%",
                            "more than \(directivesMax) lines begin with “%”"
                        )
                    )
                }
            }
            if byte == Byte.newline { line &+= 1 }
            previous = byte
        }
    }

    /// Reads a text that is one value.
    static func value(
        _ bytes: [UInt8],
        limits: Limits
    ) throws(Stop) -> (Node, findings: [GraphFileError.Problem]) {
        try checkDirectives(bytes)
        var tree = YAMLTree(bytes, limits: limits)
        guard case .documentStart = try tree.next().event else { throw GraphReading.empty() }
        let (event, position) = try tree.next()
        let value = try tree.value(event, at: position, depth: 0)
        try finish(&tree)
        return (value, tree.takeFindings())
    }

    /// The declarations of parameters, which may come after what uses them. `nil`: there are none.
    private static func parameters(
        in bytes: [UInt8],
        _ limits: Limits
    ) throws(Stop) -> Node.Entry? {
        guard GraphReading.mentionsParameters(bytes) else { return nil }
        var tree = YAMLTree(bytes, limits: limits)
        guard case .documentStart = try tree.next().event,
            case .mappingStart = try tree.next().event
        else { return nil }
        while true {
            let (event, position) = try tree.next()
            if case .mappingEnd = event { return nil }
            let key = try tree.key(event, at: position)
            let (next, at) = try tree.next()
            if key == "operations" {
                try tree.skip(next, at: at)
                continue
            }
            // Read, not skipped: the parameters may name anchors in it.
            let value: Node
            do throws(Stop) {
                value = try tree.value(next, at: at, depth: 1)
            } catch {
                // An anchor of an operation: the reader knows it.
                if YAMLTree.isUndefinedAlias(error) { return nil }
                throw error
            }
            if key == GraphAssembler.parametersKey {
                return Node.Entry(key: key, keyPosition: position, value: value)
            }
        }
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
        try finish(&tree)
    }

    /// Reports anything after the document.
    private static func finish(_ tree: inout YAMLTree) throws(Stop) {
        _ = try tree.next()
        let (event, behind) = try tree.next()
        guard case .streamEnd = event else {
            throw .problem(
                GraphFileError.Problem(
                    .unsupported,
                    at: behind,
                    "---",
                    "the file has more than one document"
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
