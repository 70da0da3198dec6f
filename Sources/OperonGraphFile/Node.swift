/// A position in a file: line and column from 1, the column in Unicode scalars. Zero: no position.
struct Position: Hashable, Sendable {
    var line: UInt32
    var column: UInt32

    static let none = Position(line: 0, column: 0)
}

/// A value of a YAML or JSON file, and its position.
struct Node: Hashable, Sendable {
    var value: Value
    var position: Position

    enum Value: Hashable, Sendable {
        case null
        /// As written in the file: `true`, `True`, …
        case bool(text: String)
        /// As written in the file, in the syntax of its format.
        case number(text: String)
        case string(String)
        case sequence([Node])
        case mapping([Entry])
    }

    /// One key of a map, and its value.
    struct Entry: Hashable, Sendable {
        var key: String
        var keyPosition: Position
        var value: Node
    }

    init(_ value: Value, at position: Position) {
        self.value = value
        self.position = position
    }

    /// The text of a value that is not a list, a map or null. Where a text is expected, `5` and
    /// `true` are accepted as written, so that `[sleep, 5]` is a command and `run: true` a program.
    var text: String? {
        switch value {
        case .bool(let text), .number(let text), .string(let text): text
        case .null, .sequence, .mapping: nil
        }
    }

    /// The same inside a longer text: the elements of a list have spaces between them.
    var joinedText: String {
        elements.map { $0.compactMap(\.text).joined(separator: " ") } ?? text ?? ""
    }

    var bool: Bool? {
        guard case .bool(let text) = value else { return nil }
        return text.first == "t" || text.first == "T"
    }

    var entries: [Entry]? {
        guard case .mapping(let entries) = value else { return nil }
        return entries
    }

    var elements: [Node]? {
        guard case .sequence(let elements) = value else { return nil }
        return elements
    }

    var isNull: Bool { value == .null }

    /// The kind of the value, for messages.
    var kindName: String {
        switch value {
        case .null: "nothing"
        case .bool(let text): text
        case .number(let text): text.shortened
        case .string(let text): text.quoted
        case .sequence: "a list"
        case .mapping: "a map"
        }
    }

    /// For `Problem.thing`.
    var thing: String {
        switch value {
        case .null: "null"
        case .bool(let text), .number(let text), .string(let text): text
        case .sequence: "list"
        case .mapping: "map"
        }
    }
}

/// Keys that have been seen, each with a remembered value, so that a duplicate is found in constant
/// time. A few keys need no hash table.
struct SeenKeys<Memory> {
    private var few: [(key: String, memory: Memory)] = []
    private var many: [String: Memory] = [:]
    private static var fewMax: Int { 16 }

    /// The value remembered for this key; `nil`: the key is new.
    mutating func insert(_ key: String, _ memory: Memory) -> Memory? {
        if many.isEmpty {
            for seen in few where seen.key == key { return seen.memory }
            few.append((key, memory))
            if few.count > Self.fewMax {
                for seen in few { many[seen.key] = seen.memory }
                few = []
            }
            return nil
        }
        if let earlier = many[key] { return earlier }
        many[key] = memory
        return nil
    }
}

extension GraphFileError.Problem {
    static func duplicateKey(_ key: String, at position: Position, first: Position) -> Self {
        Self(
            .duplicateKey,
            at: position,
            key,
            "key \(key.quoted) appears twice in this map, first in line \(first.line)"
        )
    }
}

extension String {
    /// Whether the text contains only characters that a shell skips: spaces, tabs and line ends.
    var isBlank: Bool {
        utf8.allSatisfy { $0 == 0x20 || (0x09...0x0D).contains($0) }
    }
}
