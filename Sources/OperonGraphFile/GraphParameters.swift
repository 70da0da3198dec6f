import OperonModel

/// The type of a parameter, which decides what values it takes.
enum ParameterType: String, CaseIterable {
    case string
    case integer
    case number
    case boolean
    case duration
    case size
    case path
    case list

    /// The type of a default value that is given without a type.
    init(of node: Node) {
        switch node.value {
        case .bool: self = .boolean
        case .number(let text): self = Int64(text) == nil ? .number : .integer
        case .sequence: self = .list
        case .null, .string, .mapping: self = .string
        }
    }

    /// What a value must be, for messages.
    var description: String {
        switch self {
        case .string: "a string"
        case .integer: "an integer such as 42"
        case .number: "a number such as 0.5"
        case .boolean: "true or false"
        case .duration: DurationText.hint
        case .size: ByteCountText.hint
        case .path: "a path"
        case .list: "a list of strings"
        }
    }

    /// The value as it replaces a reference; `nil`: it is not of this type. Not for lists.
    func scalar(_ text: String) -> Node.Value? {
        guard !text.utf8.contains(0) else { return nil }
        switch self {
        case .string: return .string(text)
        case .integer: return Int64(text).map { .number(text: String($0)) }
        case .number:
            if let integer = Int64(text) { return .number(text: String(integer)) }
            guard let number = Double(text), number.isFinite else { return nil }
            return .number(text: "\(number)")
        case .boolean:
            let word = text.lowercased()
            return ["true", "false"].contains(word) ? .bool(text: word) : nil
        case .duration:
            guard let duration = DurationText.duration(text), duration >= .zero else { return nil }
            return .string(text)
        case .size: return ByteCountText.count(text).map { _ in .string(text) }
        case .path: return text.isEmpty ? nil : .string(text)
        case .list: return nil
        }
    }
}

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
    /// The bytes that values have brought into the file so far.
    private var expandedBytes = 0
    private let limits: Limits

    private init(limits: Limits) { self.limits = limits }

    /// The parameters that are not lists, as variables of processes.
    private(set) var variables: [String: String] = [:]

    // MARK: - Declarations

    /// Reads the declarations, and gives each parameter its value.
    /// - Parameter log: takes every problem that was found.
    /// - Returns: `nil` if there was a problem: then nothing that depends on a parameter can be
    ///   read.
    static func read(
        _ entry: Node.Entry,
        _ given: [ParameterAssignment],
        limits: Limits,
        reporting fields: inout FieldReader
    ) throws(Stop) -> GraphParameters? {
        var parameters = GraphParameters(limits: limits)
        let problemsBefore = fields.log.problems.count
        let declared = entry.value.isNull ? [] : entry.value.entries
        guard let declared else {
            try fields.mismatch(entry.value, entry.key, "a map from names to parameters")
            return nil
        }
        guard declared.count <= countMax else {
            try fields.log.report(
                .invalidValue,
                at: entry.keyPosition,
                entry.key,
                "\(declared.count) parameters are more than a graph may have, \(countMax)"
            )
            return nil
        }
        let names = declared.map(\.key)
        for assignment in given where !names.contains(assignment.name) {
            try fields.log.report(assignment.unknown(among: names))
        }
        for declaration in declared {
            let assigned = given.last { $0.name == declaration.key }
            try parameters.declare(declaration, assigned, reporting: &fields)
        }
        let bytes = parameters.variables.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
        if bytes > variableBytesMax {
            try fields.log.report(
                .invalidValue,
                at: entry.keyPosition,
                entry.key,
                "the values of all parameters have \(bytes) bytes; \(variableBytesMax) are the "
                    + "most, lists not counted"
            )
        }
        return fields.log.problems.count == problemsBefore ? parameters : nil
    }

    private mutating func declare(
        _ entry: Node.Entry,
        _ assigned: ParameterAssignment?,
        reporting fields: inout FieldReader
    ) throws(Stop) {
        let name = entry.key
        guard Self.isName(name) else {
            return try fields.log.report(
                .invalidValue,
                at: entry.keyPosition,
                name,
                "\(name.quoted) cannot be the name of a parameter: it has letters, digits and _, "
                    + "and does not begin with a digit"
            )
        }
        guard !Self.inherited.contains(name), CommandDescription.mayInherit(name) else {
            return try fields.log.report(
                .invalidValue,
                at: entry.keyPosition,
                name,
                "\(name.quoted) cannot be the name of a parameter: processes need the variable of "
                    + "this name"
            )
        }
        guard let declaration = try ParameterDeclaration(entry, reporting: &fields) else { return }
        let value: Node.Value?
        if let assigned {
            value = try declaration.value(of: assigned, reporting: &fields)
        } else if let node = declaration.fallback {
            value = try declaration.value(of: node, reporting: &fields)
        } else {
            return try fields.log.report(
                .missingKey,
                at: entry.keyPosition,
                name,
                "parameter \(name.quoted) has no default and needs a value: --set \(name)=VALUE"
            )
        }
        guard let value else { return }
        values[name] = value
        if let text = Node(value, at: .none).text { variables[name] = text }
    }

    private static func isName(_ name: String) -> Bool {
        guard let first = name.utf8.first, !(Byte.zero...Byte.nine).contains(first) else {
            return false
        }
        return name.utf8.count <= 64 && name.utf8.allSatisfy(isNameByte)
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
    mutating func expand(
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
            for entry in entries {
                expanded.append(
                    Node.Entry(
                        key: try key(entry.key, at: entry.keyPosition, reporting: &fields),
                        keyPosition: entry.keyPosition,
                        value: try expand(entry.value, reporting: &fields)
                    )
                )
            }
            return Node(.mapping(expanded), at: node.position)
        }
    }

    /// The same for a key, which stays a text.
    mutating func key(
        _ text: String,
        at position: Position,
        reporting fields: inout FieldReader
    ) throws(Stop) -> String {
        guard text.utf8.contains(Self.dollar) else { return text }
        let value = try expand(text, at: position, reporting: &fields)
        return Self.text(of: value)
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
                    try fields.log.report(
                        .invalidValue,
                        at: position,
                        "${\(name)}",
                        "there is no parameter \(name.quoted)"
                            + Suggestion.hint(for: name, among: values.keys.sorted()) + "; "
                            + Self.literalHint
                    )
                    return .string(text)
                }
                try count(value, at: position)
                if pieces.count == 1 { return Self.placed(value, at: position) }
                result += Self.text(of: value)
            }
        }
        return .string(result)
    }

    private static let literalHint = "a literal “${” is written “$${”"

    /// A file of a few lines could otherwise become a graph of any size.
    private mutating func count(_ value: Node.Value, at position: Position) throws(Stop) {
        expandedBytes += Self.text(of: value).utf8.count + 1
        guard expandedBytes <= limits.graphFileBytes else {
            throw .problem(
                GraphFileError.Problem(
                    limit: .graphFileBytes,
                    value: expandedBytes,
                    maximum: limits.graphFileBytes,
                    at: position,
                    "",
                    "the values of parameters make the graph too large"
                )
            )
        }
    }

    /// The value where the reference is, so that problems with it have a position.
    private static func placed(_ value: Node.Value, at position: Position) -> Node.Value {
        guard case .sequence(let elements) = value else { return value }
        return .sequence(elements.map { Node($0.value, at: position) })
    }

    private static func text(of value: Node.Value) -> String {
        if case .sequence(let elements) = value {
            return elements.compactMap(\.text).joined(separator: " ")
        }
        return Node(value, at: .none).text ?? ""
    }

    // MARK: - Syntax

    private enum Piece: Hashable {
        case literal(String)
        case reference(String)
    }

    private static let dollar = UInt8(ascii: "$")

    private static func hasDollar(_ node: Node) -> Bool {
        switch node.value {
        case .null, .bool, .number: false
        case .string(let text): text.utf8.contains(dollar)
        case .sequence(let elements): elements.contains(where: hasDollar)
        case .mapping(let entries):
            entries.contains { $0.key.utf8.contains(dollar) || hasDollar($0.value) }
        }
    }

    /// The literals and references of a text; `nil`: a reference has no end.
    private static func pieces(of text: String) -> [Piece]? {
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
