import OperonModel

/// What a graph file says about one parameter.
struct ParameterDeclaration {
    /// The default; `nil`: the parameter needs a value.
    let fallback: Node?
    private let name: String
    private let type: ParameterType
    /// The values that are allowed, in one spelling each; empty: all of the type.
    private var allowed: Set<String> = []
    /// The allowed values as a message shows them.
    private var allowedText = ""

    /// How many allowed values a message lists.
    private static let shownMax = 20
    private static let keys = ["type", "default", "values", "description"]

    /// Reads a declaration: a map with settings, or only a default, whose type is then that of the
    /// parameter. `nil`: a problem was reported.
    init?(_ entry: Node.Entry, reporting fields: inout FieldReader) throws(Stop) {
        name = entry.key
        guard let settings = entry.value.entries else {
            type = ParameterType(of: entry.value)
            fallback = entry.value.isNull ? nil : entry.value
            return
        }
        let problems = fields.log.problems.count
        var type: ParameterType?
        var fallback: Node?
        var values: Node?
        for setting in settings {
            let node = setting.value
            switch setting.key {
            case "type": type = try fields.word(node, "type", ParameterType.allCases, \.rawValue)
            case "default": fallback = node.isNull ? nil : node
            case "values": values = node
            case "description": _ = try fields.text(node, "description")
            default: try fields.unknownKey(setting, among: Self.keys)
            }
        }
        if fields.log.problems.count > problems { return nil }
        self.type = type ?? fallback.map { ParameterType(of: $0) } ?? .string
        self.fallback = fallback
        if let values {
            guard let elements = values.elements else {
                try fields.mismatch(values, "values", "a list of the values that are allowed")
                return nil
            }
            guard !elements.isEmpty else {
                try fields.log.report(
                    .invalidValue,
                    at: values.position,
                    "values",
                    "“values” is empty; without it, all values are allowed"
                )
                return nil
            }
            for element in elements {
                guard let value = element.text.flatMap(elementType.scalar) else {
                    try fields.log.report(
                        .invalidValue,
                        at: element.position,
                        element.thing,
                        "each of “values” must be \(elementType.description), "
                            + "not \(element.kindName)"
                    )
                    continue
                }
                allowed.insert(elementType.canonical(Node(value, at: .none).text ?? ""))
            }
            let shown = elements.prefix(Self.shownMax).compactMap { $0.text?.quoted }
            allowedText =
                shown.joined(separator: ", ") + (elements.count > shown.count ? ", …" : "")
        }
        if fields.log.problems.count > problems { return nil }
    }

    /// The type of a single value: the elements of a list are strings.
    private var elementType: ParameterType { type == .list ? .string : type }

    /// The origin of the value.
    ///
    /// - Parameters:
    ///   - given: that of the value of the submitter; `nil`: it is the default.
    ///   - used: that of the parameters in the declaration.
    func origin(given: ValueOrigin?, used: ValueOrigin?) -> ValueOrigin? {
        if type.isPlain { return nil }
        if !allowed.isEmpty { return used }
        return given ?? .stricter(used, .submitter)
    }

    /// The default as a value; `nil`: it is not allowed, which was reported.
    func value(of node: Node, reporting fields: inout FieldReader) throws(Stop) -> Node.Value? {
        do throws(Mismatch) {
            return try value(of: node)
        } catch {
            try fields.log.report(
                .invalidValue,
                at: error.node.position,
                error.node.thing,
                error.sentence
            )
            return nil
        }
    }

    /// What the submitter gives as a value; `nil`: it is not allowed, which was reported.
    func value(
        of assignment: ParameterAssignment,
        reporting fields: inout FieldReader
    ) throws(Stop) -> Node.Value? {
        do throws(Mismatch) {
            let value = try value(of: assignment.node(isList: type == .list))
            return assignment.resolved(value, type)
        } catch {
            try fields.log.report(assignment.problem(error.node, error.sentence))
            return nil
        }
    }

    /// A value that this parameter does not take.
    private struct Mismatch: Error {
        let node: Node
        let subject: String
        let wanted: String

        var sentence: String { "\(subject) must be \(wanted), not \(node.kindName)" }
    }

    private func value(of node: Node) throws(Mismatch) -> Node.Value {
        guard type == .list else { return try scalar(node) }
        guard let elements = node.elements else {
            throw Mismatch(node: node, subject: name.quoted, wanted: type.description)
        }
        var values: [Node] = []
        for element in elements { values.append(Node(try scalar(element), at: element.position)) }
        return .sequence(values)
    }

    private func scalar(_ node: Node) throws(Mismatch) -> Node.Value {
        let subject = type == .list ? "each of \(name.quoted)" : name.quoted
        guard let value = node.text.flatMap(elementType.scalar) else {
            throw Mismatch(node: node, subject: subject, wanted: elementType.description)
        }
        let spelling = elementType.canonical(Node(value, at: .none).text ?? "")
        guard allowed.isEmpty || allowed.contains(spelling) else {
            let wanted = "one of " + allowedText
            throw Mismatch(node: node, subject: subject, wanted: wanted)
        }
        return value
    }
}
