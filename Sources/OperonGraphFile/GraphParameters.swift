import OperonModel

/// The parameters that a graph file declares under `parameters`, and their values.
///
/// A value is the one that the submitter gives, or else the default. In the rest of the file,
/// `${name}` stands for it: see `expand`.
struct GraphParameters {
    /// How many parameters a graph may have.
    static let countMax = 1_000
    /// The bytes of all values that processes get as variables: with its arguments, a process of
    /// Linux gets 2 MiB at most, by default.
    static let variableBytesMax = 64 << 10
    /// Without these, a process finds neither programs nor files.
    private static let inherited: Set = ["PATH", "HOME", "LANG", "TMPDIR", "USER"]

    private var values: [String: Node.Value] = [:]
    /// Who has written the values that the file does not bound.
    private var origins: [String: ValueOrigin] = [:]
    /// Declared parameters whose value is missing or wrong, which was reported. A reference to one
    /// is no further problem.
    private var withoutValue: Set<String> = []
    /// The bytes that values have brought into the file so far, elements of lists included.
    private var expandedBytes = 0
    private let expandedBytesMax: Int
    /// See `GraphFileOptions`.
    var isOfTrigger = false
    /// See `GraphFileOptions`.
    var isAddition = false

    /// The parameters that are not lists, as variables of processes.
    private(set) var variables: [String: String] = [:]
    private var variableBytes = 0

    init(expandedBytesMax: Int) { self.expandedBytesMax = expandedBytesMax }

    // MARK: - Declarations

    /// Reads the declarations, and gives each parameter its value.
    /// - Parameters:
    ///   - given: The values of the submitter.
    ///   - fields: Takes every problem that was found.
    /// - Returns: `false` if there was a problem: then nothing that depends on a parameter can be
    ///   read.
    mutating func declare(
        _ entry: Node.Entry,
        _ given: [ParameterAssignment],
        reporting fields: inout FieldReader
    ) throws(Stop) -> Bool {
        let problemsBefore = fields.log.problems.count
        let declared = entry.value.isNull ? [] : entry.value.entries
        guard let declared else {
            try fields.mismatch(entry.value, entry.key, "a map from names to parameters")
            return false
        }
        guard declared.count <= Self.countMax else {
            try fields.log.report(
                .invalidValue,
                at: entry.keyPosition,
                entry.key,
                "\(declared.count) parameters are more than a graph may have, \(Self.countMax)"
            )
            return false
        }
        let names = Set(declared.map(\.key))
        for assignment in given where !names.contains(assignment.name) {
            try fields.log.report(assignment.unknown(among: declared.map(\.key)))
        }
        let assigned = Dictionary(given.map { ($0.name, $0) }) { _, last in last }
        for declaration in declared {
            try declare(declaration, assigned[declaration.key], reporting: &fields)
        }
        if variableBytes > Self.variableBytesMax {
            try fields.log.report(
                .invalidValue,
                at: entry.keyPosition,
                entry.key,
                "the names and values of all parameters have \(variableBytes) bytes; "
                    + "\(Self.variableBytesMax) are the most, lists not counted"
            )
        }
        return fields.log.problems.count == problemsBefore
    }

    private mutating func declare(
        _ entry: Node.Entry,
        _ assigned: ParameterAssignment?,
        reporting fields: inout FieldReader
    ) throws(Stop) {
        let name = entry.key
        if let reason = Self.reasonAgainst(name, of: "a parameter") {
            return try fields.log.report(.invalidValue, at: entry.keyPosition, name, reason)
        }
        // A default may use the parameters before it.
        withoutValue.insert(name)
        guard let settings = try expanded(entry.value, reporting: &fields) else { return }
        let declaration = try ParameterDeclaration(
            Node.Entry(key: name, keyPosition: entry.keyPosition, value: settings),
            reporting: &fields
        )
        guard let declaration else { return }
        // A default is checked even if another value is given.
        let fallback = try declaration.fallback.map { node throws(Stop) in
            try declaration.value(of: node, reporting: &fields)
        }
        let value: Node.Value?
        if let assigned {
            value = try declaration.value(of: assigned, reporting: &fields)
        } else if let fallback {
            value = fallback
        } else {
            return try fields.log.report(
                .missingKey,
                at: entry.keyPosition,
                name,
                "parameter \(name.quoted) has no default and needs a value ("
                    + (isOfTrigger
                        ? "in “set” of the trigger)" : "on the command line: --set \(name)=VALUE)")
            )
        }
        guard let value else { return }
        withoutValue.remove(name)
        set(name, to: value)
        origins[name] = declaration.origin(
            given: assigned.map { isAddition ? .outside(.addition) : $0.origin },
            used: origin(ofReferencesIn: entry.value)
        )
    }

    /// Gives a parameter its value.
    mutating func set(_ name: String, to value: Node.Value) {
        values[name] = value
        guard let text = Node(value, at: .none).text else { return }
        variables[name] = text
        variableBytes += name.utf8.count + text.utf8.count
    }

    /// The parameters that a part of the file needs elsewhere: those that it refers to, and those
    /// that its processes have as variables. Sorted by name.
    func needed(by node: Node) -> [Node.Entry] {
        values.sorted { $0.key < $1.key }.filter { name, _ in
            variables[name] != nil || Self.hasReference(node, to: [name])
        }.map { name, value in
            Node.Entry(key: name, keyPosition: .none, value: Node(value, at: .none))
        }
    }

    /// Why something cannot have this name; `nil`: it can. What it is called in files and in the
    /// environment of processes are the same.
    static func reasonAgainst(_ name: String, of what: String) -> String? {
        let reason: String
        if !isName(name) {
            reason =
                "a name has up to \(nameBytesMax) letters, digits and _, and does not begin with a "
                + "digit"
        } else if !CommandDescription.mayInherit(name) {
            reason = CommandDescription.ownVariables
        } else if inherited.contains(name) {
            reason = "processes need the variable of this name"
        } else {
            return nil
        }
        return "\(name.quoted) cannot be the name of \(what): \(reason)"
    }

    func has(_ name: String) -> Bool { values[name] != nil }

    // MARK: - Origins

    var hasOrigins: Bool { !origins.isEmpty }

    /// Who has written the value; `nil`: the file bounds it.
    func origin(of name: String) -> ValueOrigin? { origins[name] }

    /// The strictest of the origins of all values that a node refers to.
    func origin(ofReferencesIn node: Node) -> ValueOrigin? {
        var found: ValueOrigin?
        for (name, origin) in origins.sorted(by: { $0.key < $1.key })
        where Self.hasReference(node, to: [name]) {
            found = .stricter(found, origin)
        }
        return found
    }

    mutating func setOrigins(_ origins: [ValueOrigin?], of variables: [String]) {
        for (variable, origin) in zip(variables, origins) { self.origins[variable] = origin }
    }

    /// The texts in a value. Numbers are none: they are what they are, to a shell as well.
    func texts(of name: String) -> [String] {
        func text(_ value: Node.Value) -> String? {
            if case .string(let text) = value { text } else { nil }
        }
        // A list without elements is nothing in a script, as an empty text is.
        if case .sequence(let elements) = values[name] {
            return elements.isEmpty ? [""] : elements.compactMap { text($0.value) }
        }
        return values[name].flatMap(text).map { [$0] } ?? []
    }

    func isList(_ name: String) -> Bool {
        if case .sequence = values[name] { true } else { false }
    }

    // MARK: - Variables of repeated operations

    /// Sets the variables of one element, for `expanded`.
    mutating func set(_ variables: [String], to nodes: [Node]) {
        for (variable, node) in zip(variables, nodes) { values[variable] = node.value }
    }

    mutating func unset(_ variables: [String]) {
        for variable in variables {
            values[variable] = nil
            origins[variable] = nil
        }
    }

    private static let nameBytesMax = 64

    private static func isName(_ name: String) -> Bool {
        guard let first = name.utf8.first, !(Byte.zero...Byte.nine).contains(first) else {
            return false
        }
        return name.utf8.count <= nameBytesMax && name.utf8.allSatisfy(isNameByte)
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            Byte.zero...Byte.nine, UInt8(ascii: "_"):
            true
        default: false
        }
    }

    // MARK: - References

    /// The value with every reference in it replaced.
    ///
    /// - `${name}` inside a text is the value as text; the elements of a list are joined by spaces.
    /// - A text that is `${name}` and nothing else becomes the value with its type: a number, a
    ///   boolean, a list. In a list, the elements of such a list take its place.
    /// - `$${` is a literal `${`.
    ///
    /// Keys of maps are texts, too. Positions stay: a problem with a value is told where the file
    /// uses it.
    ///
    /// - Returns: `nil`: a problem with a reference was reported.
    mutating func expanded(
        _ node: Node,
        reporting fields: inout FieldReader
    ) throws(Stop) -> Node? {
        let problems = fields.log.problems.count
        let expanded = try expand(node, reporting: &fields)
        return fields.log.problems.count == problems ? expanded : nil
    }

    private mutating func expand(
        _ node: Node,
        reporting fields: inout FieldReader
    ) throws(Stop) -> Node {
        guard Self.hasDollar(node) else { return node }
        switch node.value {
        case .null, .bool, .number: return node
        case .string(let text):
            return Node(
                try expand(text, at: node.position, reporting: &fields),
                at: node.position
            )
        case .sequence(let elements):
            var expanded: [Node] = []
            expanded.reserveCapacity(elements.count)
            for element in elements {
                let new = try expand(element, reporting: &fields)
                // A list that was written here stays a list.
                if element.elements == nil, let spliced = new.elements {
                    expanded += spliced
                } else {
                    expanded.append(new)
                }
            }
            return Node(.sequence(expanded), at: node.position)
        case .mapping(let entries):
            var expanded: [Node.Entry] = []
            expanded.reserveCapacity(entries.count)
            // Two keys may become one.
            var seen = SeenKeys<Position>()
            for entry in entries {
                let new = try expand(entry, reporting: &fields)
                if let first = seen.insert(new.key, new.keyPosition) {
                    try fields.log.report(
                        .duplicateKey(new.key, at: new.keyPosition, first: first)
                    )
                }
                expanded.append(new)
            }
            return Node(.mapping(expanded), at: node.position)
        }
    }

    /// A key stays a text.
    private mutating func expand(
        _ entry: Node.Entry,
        reporting fields: inout FieldReader
    ) throws(Stop) -> Node.Entry {
        var entry = entry
        if entry.key.utf8.contains(Self.dollar) {
            let key = try expand(entry.key, at: entry.keyPosition, reporting: &fields)
            entry.key = Node(key, at: entry.keyPosition).joinedText
        }
        entry.value = try expand(entry.value, reporting: &fields)
        return entry
    }

    private mutating func expand(
        _ text: String,
        at position: Position,
        reporting fields: inout FieldReader
    ) throws(Stop) -> Node.Value {
        guard let pieces = Self.pieces(of: text) else {
            try fields.log.report(
                .invalidValue,
                at: position,
                text,
                "“${” in \(text.quoted) has no “}”; " + Self.literalHint
            )
            return .string(text)
        }
        var result = ""
        for piece in pieces {
            switch piece {
            case .literal(let literal): result += literal
            case .reference(let name):
                guard let value = values[name] else {
                    guard !withoutValue.contains(name) else { return .string(text) }
                    try fields.log.report(
                        .invalidValue,
                        at: position,
                        "${\(name)}",
                        "there is no parameter \(name.quoted); \(Self.literalHint)"
                            + Suggestion.hint(for: name, among: values.keys.sorted())
                    )
                    return .string(text)
                }
                try count(Self.bytes(of: value), at: position)
                if pieces.count == 1 { return Self.placed(value, at: position) }
                result += Node(value, at: position).joinedText
            }
        }
        return .string(result)
    }

    private static let literalHint = "a literal “${” is written “$${”"

    /// What a dictionary takes for each variable, beside its text.
    private static let entryBytes = 2 * MemoryLayout<String>.stride

    /// Counts the variables of one process.
    ///
    /// - Parameter own: The process has variables of its own. Then it has a dictionary of all of
    ///   them; otherwise it shares one with other processes.
    mutating func countVariables(own: Bool, at position: Position) throws(Stop) {
        try count(variableBytes + (own ? variables.count * Self.entryBytes : 0), at: position)
    }

    /// Counts the variables of one element.
    mutating func count(_ variables: [String: String], at position: Position) throws(Stop) {
        let bytes = variables.reduce(0) { sum, variable in
            sum + Self.entryBytes + variable.key.utf8.count + variable.value.utf8.count
        }
        try count(bytes, at: position)
    }

    /// A file of a few lines could otherwise become a graph of any size.
    mutating func count(_ bytes: Int, at position: Position) throws(Stop) {
        expandedBytes += bytes
        guard expandedBytes <= expandedBytesMax else {
            throw .problem(
                GraphFileError.Problem(
                    limit: .graphFileBytes,
                    value: expandedBytes,
                    maximum: expandedBytesMax,
                    at: position,
                    "",
                    "the elements of repeated operations and the values of parameters, each as "
                        + "often as it is used, make the graph too large"
                )
            )
        }
    }

    /// What a value takes where it is used. An element of a list takes a node, however short it is.
    private static func bytes(of value: Node.Value) -> Int {
        guard case .sequence(let elements) = value else {
            return Node(value, at: .none).joinedText.utf8.count + 1
        }
        return elements.reduce(0) { sum, element in
            sum + MemoryLayout<Node>.stride + (element.text?.utf8.count ?? 0)
        }
    }

    /// The value where the reference is, so that problems with it have a position.
    private static func placed(_ value: Node.Value, at position: Position) -> Node.Value {
        guard case .sequence(let elements) = value else { return value }
        return .sequence(elements.map { Node($0.value, at: position) })
    }

    // MARK: - Syntax

    enum Piece {
        case literal(String)
        case reference(String)
    }

    static let dollar = UInt8(ascii: "$")

    static func hasDollar(_ node: Node) -> Bool {
        switch node.value {
        case .null, .bool, .number: false
        case .string(let text): text.utf8.contains(dollar)
        case .sequence(let elements): elements.contains(where: hasDollar)
        case .mapping(let entries):
            entries.contains { $0.key.utf8.contains(dollar) || hasDollar($0.value) }
        }
    }

    /// Whether a reference to one of these names is in the node.
    static func hasReference(_ node: Node, to names: [String]) -> Bool {
        switch node.value {
        case .null, .bool, .number: false
        case .string(let text): hasReference(text, to: names)
        case .sequence(let elements): elements.contains { hasReference($0, to: names) }
        case .mapping(let entries):
            entries.contains {
                hasReference($0.key, to: names) || hasReference($0.value, to: names)
            }
        }
    }

    private static func hasReference(_ text: String, to names: [String]) -> Bool {
        guard text.utf8.contains(dollar), let pieces = pieces(of: text) else { return false }
        return pieces.contains { piece in
            if case .reference(let name) = piece { names.contains(name) } else { false }
        }
    }

    /// The literals and references of a text; `nil`: a reference has no end.
    static func pieces(of text: String) -> [Piece]? {
        var pieces: [Piece] = []
        var literal = ""
        var rest = Substring(text).utf8
        while let index = rest.firstIndex(of: dollar) {
            literal += Substring(rest[..<index])
            rest = rest[index...]
            if rest.starts(with: "$${".utf8) {
                literal += "${"
                rest = rest.dropFirst(3)
            } else if rest.starts(with: "${".utf8) {
                guard let end = rest.firstIndex(of: Byte.closeBrace) else { return nil }
                if !literal.isEmpty { pieces.append(.literal(literal)) }
                literal = ""
                pieces.append(.reference(String(Substring(rest[..<end].dropFirst(2)))))
                rest = rest[rest.index(after: end)...]
            } else {
                literal += "$"
                rest = rest.dropFirst()
            }
        }
        literal += Substring(rest)
        if !literal.isEmpty || pieces.isEmpty { pieces.append(.literal(literal)) }
        return pieces
    }
}
