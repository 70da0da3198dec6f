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
        // As it is written: a version such as 1.10 stays what it is.
        case .number(let text): self = Int64(text) == nil ? .number : .integer
        case .sequence: self = .list
        case .null, .string, .mapping: self = .string
        }
    }

    /// Whether each value is a number or a word that no shell takes for something else.
    var isPlain: Bool {
        switch self {
        case .integer, .number, .boolean, .duration, .size: true
        case .string, .path, .list: false
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
        case .integer: return Int64(text).map { _ in .number(text: text) }
        case .number:
            // Without a digit, or with a sign behind one, a text is no number in YAML or JSON.
            guard case .number = YAMLScalar.resolved(text), let json = JSONText.number(text),
                Double(json)?.isFinite == true
            else {
                return nil
            }
            return .number(text: text)
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

    /// A text that is the same for all spellings of one value: `60s` and `1m` are equal.
    func canonical(_ text: String) -> String {
        switch self {
        case .integer: Int64(text).map(String.init) ?? text
        case .number: JSONText.number(text).flatMap(Double.init).map { "\($0)" } ?? text
        case .duration: DurationText.duration(text).map(DurationText.text) ?? text
        case .size: ByteCountText.count(text).map(String.init) ?? text
        case .string, .boolean, .path, .list: text
        }
    }
}
