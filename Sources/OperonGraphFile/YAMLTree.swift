import OperonModel

/// Builds values from YAML events. Anchors, aliases and merge keys are resolved, within bounds.
struct YAMLTree: ~Copyable {
    private var events: YAMLEvents
    private let bounds: TreeBounds
    private let expansionMax: Int
    private var expanded = 0
    private var nodes = 0
    /// A value, its number of values with its own aliases expanded, and its levels of nesting.
    private typealias Built = (node: Node, size: Int, height: Int)

    /// The value of each anchor.
    private var anchors: [String: Built] = [:]
    private(set) var findings: [GraphFileError.Problem] = []

    init(_ bytes: [UInt8], limits: Limits) {
        events = YAMLEvents(bytes)
        bounds = TreeBounds(limits)
        expansionMax = limits.yamlAliasExpansion
    }

    mutating func takeFindings() -> [GraphFileError.Problem] {
        defer { findings = [] }
        return findings
    }

    mutating func next() throws(Stop) -> (event: YAMLEvents.Event, position: Position) {
        try events.next()
    }

    /// Reads the value that begins with this event, at `depth` levels of nesting.
    mutating func value(
        _ event: YAMLEvents.Event,
        at position: Position,
        depth: Int
    ) throws(Stop) -> Node {
        nodes = 0
        return try tree(event, at: position, depth: depth).node
    }

    /// Passes over the value that begins with this event, at level 1. What its anchors name is then
    /// unknown.
    mutating func skip(_ event: YAMLEvents.Event, at position: Position) throws(Stop) {
        var (event, position) = (event, position)
        var depth = 1
        while true {
            switch event {
            case .mappingStart(let anchor, _), .sequenceStart(let anchor, _):
                try check(depth: depth, at: position)
                forget(anchor)
                depth += 1
            case .scalar(let scalar): forget(scalar.anchor)
            case .mappingEnd, .sequenceEnd: depth -= 1
            case .alias: break
            case .documentStart, .documentEnd, .streamEnd: return
            }
            if depth == 1 { return }
            (event, position) = try events.next()
        }
    }

    private mutating func forget(_ anchor: String?) {
        if let anchor { anchors[anchor] = nil }
    }

    /// Whether a problem is an alias whose anchor was not read.
    static func isUndefinedAlias(_ stop: Stop) -> Bool {
        guard case .problem(let problem) = stop else { return false }
        return problem.code == .syntax && problem.thing.hasPrefix("*")
    }

    /// Reads the key that this event contains; keys are texts.
    mutating func key(_ event: YAMLEvents.Event, at position: Position) throws(Stop) -> String {
        switch event {
        case .scalar(let scalar):
            register(scalar.anchor, (try node(of: scalar, at: position), 1, 0))
            return scalar.text
        case .alias(let name):
            guard let anchored = anchors[name] else { throw undefined(name, at: position) }
            guard let text = anchored.node.text else { throw notAKey(at: position) }
            return text
        case .sequenceStart, .mappingStart: throw notAKey(at: position)
        case .sequenceEnd, .mappingEnd, .documentStart, .documentEnd, .streamEnd:
            throw notAKey(at: position)
        }
    }

    /// Whether this key merges another map.
    static func isMerge(_ event: YAMLEvents.Event) -> Bool {
        guard case .scalar(let scalar) = event else { return false }
        return scalar.isPlain && scalar.text == "<<"
    }

    /// The keys that the value of a `<<` merges; of several maps the earlier one wins.
    func merged(_ node: Node) throws(Stop) -> [Node.Entry] {
        if let entries = node.entries { return entries }
        guard let maps = node.elements else { throw notAMerge(node) }
        var all: [Node.Entry] = []
        for map in maps {
            guard let entries = map.entries else { throw notAMerge(map) }
            all += entries
        }
        return all
    }

    // MARK: - Building

    private mutating func tree(
        _ event: YAMLEvents.Event,
        at position: Position,
        depth: Int
    ) throws(Stop) -> Built {
        nodes += 1
        guard nodes <= bounds.nodes else {
            throw .problem(.tooManyNodes(bounds.nodes, at: position))
        }
        switch event {
        case .scalar(let scalar):
            let node = try node(of: scalar, at: position)
            return register(scalar.anchor, (node, 1, 0))
        case .sequenceStart(let anchor, let tag):
            try check(tag: tag, is: "seq", at: position)
            return try sequence(anchor, at: position, depth: depth)
        case .mappingStart(let anchor, let tag):
            try check(tag: tag, is: "map", at: position)
            return try mapping(anchor, at: position, depth: depth)
        case .alias(let name): return try expand(name, at: position, depth: depth)
        case .sequenceEnd, .mappingEnd, .documentStart, .documentEnd, .streamEnd:
            // benign: the C parser balances its events; an end at this point means that the text
            // ends too early.
            throw .problem(
                GraphFileError.Problem(.syntax, at: position, "", "the text ends too early")
            )
        }
    }

    private mutating func sequence(
        _ anchor: String?,
        at position: Position,
        depth: Int
    ) throws(Stop) -> Built {
        try check(depth: depth, at: position)
        var elements: [Node] = []
        var (size, height) = (1, 1)
        while true {
            let (event, at) = try events.next()
            if case .sequenceEnd = event { break }
            let element = try tree(event, at: at, depth: depth + 1)
            elements.append(element.node)
            size = min(size + element.size, Int.max / 2)
            height = max(height, element.height + 1)
        }
        return register(anchor, (Node(.sequence(elements), at: position), size, height))
    }

    private mutating func mapping(
        _ anchor: String?,
        at position: Position,
        depth: Int
    ) throws(Stop) -> Built {
        try check(depth: depth, at: position)
        var entries: [Node.Entry] = []
        var brought: [Node.Entry] = []
        var seen = SeenKeys<Position>()
        var (size, height) = (1, 1)
        while true {
            let (event, keyPosition) = try events.next()
            if case .mappingEnd = event { break }
            let isMerge = Self.isMerge(event)
            let key = try key(event, at: keyPosition)
            let (valueEvent, at) = try events.next()
            let value = try tree(valueEvent, at: at, depth: depth + 1)
            size = min(size + value.size, Int.max / 2)
            height = max(height, value.height + 1)
            if isMerge {
                brought += try merged(value.node)
            } else if let first = seen.insert(key, keyPosition) {
                if findings.count <= GraphFileError.problemsMax {
                    findings.append(.duplicateKey(key, at: keyPosition, first: first))
                }
            } else {
                entries.append(
                    Node.Entry(key: key, keyPosition: keyPosition, value: value.node)
                )
            }
        }
        for entry in brought where seen.insert(entry.key, entry.keyPosition) == nil {
            entries.append(entry)
        }
        return register(anchor, (Node(.mapping(entries), at: position), size, height))
    }

    private mutating func expand(
        _ name: String,
        at position: Position,
        depth: Int
    ) throws(Stop) -> Built {
        guard let anchored = anchors[name] else { throw undefined(name, at: position) }
        // An alias within what another alias names goes deeper than the text itself.
        if anchored.height > 0 { try check(depth: depth + anchored.height - 1, at: position) }
        // The tree is shared, not copied; the bound limits the work of walking it.
        let (sum, overflow) = expanded.addingReportingOverflow(anchored.size)
        guard !overflow, sum <= expansionMax else {
            throw .problem(
                GraphFileError.Problem(
                    limit: .yamlAliasExpansion,
                    value: overflow ? .max : sum,
                    maximum: expansionMax,
                    at: position,
                    "*" + name,
                    "the alias \(("*" + name).quoted)"
                )
            )
        }
        expanded = sum
        return anchored
    }

    @discardableResult
    private mutating func register(_ anchor: String?, _ built: Built) -> Built {
        if let anchor { anchors[anchor] = built }
        return built
    }

    // MARK: - Scalars

    private func node(
        of scalar: YAMLEvents.Scalar,
        at position: Position
    ) throws(Stop) -> Node {
        let text = scalar.text
        guard let tag = scalar.tag else {
            let value = scalar.isPlain ? YAMLScalar.resolved(text) : .string(text)
            return Node(value, at: position)
        }
        let resolved = YAMLScalar.resolved(text)
        switch (tag, resolved) {
        case ("!", _), ("tag:yaml.org,2002:str", _): return Node(.string(text), at: position)
        case ("tag:yaml.org,2002:null", .null), ("tag:yaml.org,2002:bool", .bool),
            ("tag:yaml.org,2002:int", .number), ("tag:yaml.org,2002:float", .number):
            return Node(resolved, at: position)
        default:
            throw .problem(
                GraphFileError.Problem(
                    .unsupported,
                    at: position,
                    tag,
                    "the tag \(tag.quoted) does not fit \(text.quoted); leave it out"
                )
            )
        }
    }

    private func check(tag: String?, is name: String, at position: Position) throws(Stop) {
        guard let tag, tag != "!", tag != "tag:yaml.org,2002:" + name else { return }
        throw .problem(
            GraphFileError.Problem(
                .unsupported,
                at: position,
                tag,
                "the tag \(tag.quoted) is not known; leave it out"
            )
        )
    }

    private func check(depth: Int, at position: Position) throws(Stop) {
        guard depth < bounds.depth else { throw .problem(.tooDeep(bounds.depth, at: position)) }
    }

    private func undefined(_ name: String, at position: Position) -> Stop {
        .problem(
            GraphFileError.Problem(
                .syntax,
                at: position,
                "*" + name,
                "\(("*" + name).quoted) names no anchor above it"
            )
        )
    }

    private func notAKey(at position: Position) -> Stop {
        .problem(
            GraphFileError.Problem(
                .wrongType,
                at: position,
                "",
                "a key must be a string, not a list or a map"
            )
        )
    }

    private func notAMerge(_ node: Node) -> Stop {
        .problem(
            GraphFileError.Problem(
                .wrongType,
                at: node.position,
                node.thing,
                "“<<” must be a map or a list of maps, not \(node.kindName)"
            )
        )
    }
}
