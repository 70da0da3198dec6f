import OperonModel

/// Replaces `${event.…}` in the values that a trigger gives to the parameters of its graph.
struct EventValues {
    /// What fired the trigger.
    let event: Node

    static let root = "event"
    /// What each event has; the parts of `data` depend on what fired the trigger.
    private static let fields = [
        "count", "data", "date", "firing", "identity", "localTime", "source", "time", "trigger",
    ]

    /// The fields that whoever fires the trigger can write. All others are the coordinator's.
    private static let foreign: Set = ["data", "identity"]

    /// Whether a value has a part that whoever fires the trigger can write.
    static func isForeign(_ node: Node) -> Bool {
        switch node.value {
        case .null, .bool, .number: return false
        case .sequence(let elements): return elements.contains(where: isForeign)
        case .mapping(let entries): return entries.contains { isForeign($0.value) }
        case .string(let text):
            return (GraphParameters.pieces(of: text) ?? []).contains { piece in
                guard case .reference(let path) = piece else { return false }
                let field = path.split(separator: ".").dropFirst().first
                return field.map { foreign.contains(String($0)) } ?? true
            }
        }
    }

    /// Whether a value has a part of the event.
    static func hasReference(_ node: Node) -> Bool {
        texts(in: node).contains { text, _ in
            (GraphParameters.pieces(of: text) ?? []).contains {
                if case .reference = $0 { true } else { false }
            }
        }
    }

    /// Checks that every reference begins with `event`.
    static func check(_ node: Node, reporting fields: inout FieldReader) throws(Stop) {
        for (text, position) in texts(in: node) {
            guard let pieces = GraphParameters.pieces(of: text) else {
                try fields.log.report(
                    .invalidValue,
                    at: position,
                    text,
                    "“${” in \(text.quoted) has no “}”; a literal “${” is written “$${”"
                )
                continue
            }
            for case .reference(let name) in pieces {
                guard let problem = problem(with: name) else { continue }
                try fields.log.report(.invalidValue, at: position, name, problem)
            }
        }
    }

    /// Checks that nothing needs data, which are `null` if ticks fire the trigger: no part of them,
    /// and no text around them.
    static func checkData(_ node: Node, reporting fields: inout FieldReader) throws(Stop) {
        for (text, position) in texts(in: node) {
            let pieces = GraphParameters.pieces(of: text) ?? []
            for case .reference(let name) in pieces
            where name.hasPrefix(root + ".data.") || name == root + ".data" && pieces.count > 1 {
                try fields.log.report(
                    .invalidValue,
                    at: position,
                    name,
                    "“${\(name.shortened)}” needs data, and ticks have none"
                )
            }
        }
    }

    private static func texts(in node: Node) -> [(text: String, position: Position)] {
        switch node.value {
        case .null, .bool, .number: []
        case .sequence(let elements): elements.flatMap { texts(in: $0) }
        case .mapping(let entries): entries.flatMap { texts(in: $0.value) }
        case .string(let text): [(text, node.position)]
        }
    }

    /// What is wrong with a reference, as far as that is known before an event; `nil`: nothing.
    private static func problem(with name: String) -> String? {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        guard parts[0] == root else {
            return "“${\(name.shortened)}” is no part of what fired the trigger, such as "
                + "${event.date}; a literal “${” is written “$${”"
        }
        guard parts.count > 1, !fields.contains(parts[1]) else { return nil }
        return "an event has no \(parts[1].quoted), only \(fields.joined(separator: ", "))"
            + Suggestion.hint(for: parts[1], among: fields)
    }

    /// The value with the parts of the event in it.
    ///
    /// A text that is one reference and nothing else becomes the value with its type.
    func expanded(_ node: Node) throws(Stop) -> Node {
        switch node.value {
        case .null, .bool, .number: return node
        case .sequence(let elements):
            var expanded: [Node] = []
            for element in elements { expanded.append(try self.expanded(element)) }
            return Node(.sequence(expanded), at: node.position)
        case .mapping(let entries):
            var expanded: [Node.Entry] = []
            for entry in entries {
                var entry = entry
                entry.value = try self.expanded(entry.value)
                expanded.append(entry)
            }
            return Node(.mapping(expanded), at: node.position)
        case .string(let text):
            guard let pieces = GraphParameters.pieces(of: text) else { return node }
            var result = ""
            for piece in pieces {
                switch piece {
                case .literal(let literal): result += literal
                case .reference(let path):
                    let value = try part(path)
                    if pieces.count == 1 { return value }
                    guard let text = value.text else {
                        throw Self.problem(path, "is \(value.kindName), which is no text")
                    }
                    result += text
                }
            }
            return Node(.string(result), at: node.position)
        }
    }

    private func part(_ path: String) throws(Stop) -> Node {
        var place = event
        for key in path.split(separator: ".", omittingEmptySubsequences: false).dropFirst() {
            if let entries = place.entries, let entry = entries.first(where: { $0.key == key }) {
                place = entry.value
            } else if let elements = place.elements, let index = Int(key),
                elements.indices.contains(index)
            {
                place = elements[index]
            } else {
                throw Self.problem(path, "is not in it")
            }
        }
        return Node(place.value, at: .none)
    }

    private static func problem(_ path: String, _ why: String) -> Stop {
        .problem(
            GraphFileError.Problem(
                .invalidValue,
                at: .none,
                path,
                "“${\(path.shortened)}” of what fired the trigger \(why)"
            )
        )
    }
}
