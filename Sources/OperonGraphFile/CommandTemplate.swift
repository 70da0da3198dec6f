/// A shell command with replacement strings, as GNU parallel has them: `convert {} {.}.png`. It
/// makes the command of each row of values.
package struct CommandTemplate: Hashable, Sendable {
    /// Part of a command.
    private enum Piece: Hashable, Sendable {
        case text(String)
        /// A value, or all values of the row with spaces between them.
        case value(Place, Change)
        /// The number of the row, from 1.
        case number

        var isReplacement: Bool { if case .text = self { false } else { true } }
    }

    private enum Place: Hashable, Sendable {
        case all
        /// The index of the value in its row.
        case one(Int)
        /// Counted from the end: 1 is the last value.
        case fromEnd(Int)
    }

    /// What is taken of a value that is a path.
    package enum Change: String, Hashable, Sendable, CaseIterable {
        case whole = ""
        case withoutSuffix = "."
        case name = "/"
        case directory = "//"
        case nameWithoutSuffix = "/."
    }

    private var pieces: [Piece]

    /// - Parameters:
    ///   - text: the command; empty: the values are the command. Without a replacement string, the
    ///     values are appended to it.
    ///   - sourceCount: how many values a row has, at least 1.
    package init(_ text: String, sourceCount: Int) throws(MapError) {
        pieces = try Self.pieces(of: text, sourceCount)
        if !text.isEmpty, !pieces.contains(where: \.isReplacement) {
            pieces += [.text(" "), .value(.all, .whole)]
        }
    }

    private static func pieces(of text: String, _ sourceCount: Int) throws(MapError) -> [Piece] {
        var pieces: [Piece] = []
        var rest = Substring(text)
        var literal = ""
        // In Unicode scalars, because a brace and a mark that combines with it are one character.
        while let brace = rest.unicodeScalars.firstIndex(of: "{") {
            literal += rest[..<brace]
            rest = rest[brace...]
            if rest.hasPrefix("{=") { throw unsupported("{= … =}", "Perl") }
            let scalars = rest.unicodeScalars
            guard let end = scalars.prefix(bytesMax).firstIndex(of: "}"),
                let piece = try piece(rest[scalars.index(after: brace)..<end], sourceCount)
            else {
                literal += "{"
                rest = Substring(scalars.dropFirst())
                continue
            }
            if !literal.isEmpty { pieces.append(.text(literal)) }
            literal = ""
            pieces.append(piece)
            rest = rest[scalars.index(after: end)...]
        }
        literal += rest
        if !literal.isEmpty { pieces.append(.text(literal)) }
        return pieces
    }

    /// No replacement string is longer.
    private static let bytesMax = 24

    /// Whether a word has a replacement string, supported or not.
    static func hasReplacement(_ word: String) -> Bool {
        guard let pieces = try? pieces(of: word, .max) else { return true }
        return pieces.contains(where: \.isReplacement)
    }

    private static func unsupported(_ text: String, _ what: String) -> MapError {
        MapError(
            "The replacement string \(text) (\(what)) is not supported; “operon map --help” lists"
                + " those that are."
        )
    }

    /// The replacement string with this text in its braces; `nil`: there is none.
    private static func piece(_ inside: Substring, _ sourceCount: Int) throws(MapError) -> Piece? {
        if inside == "#" { return .number }
        if inside == "%" { throw unsupported("{%}", "the number of the slot") }
        let sign = inside.hasPrefix("-")
        let digits = inside.dropFirst(sign ? 1 : 0).prefix { $0.isASCII && $0.isNumber }
        guard let change = Change(rawValue: String(inside.dropFirst(digits.count + (sign ? 1 : 0))))
        else { return nil }
        if digits.isEmpty { return sign ? nil : .value(.all, change) }
        guard let number = Int(digits), (1...sourceCount).contains(number) else {
            throw MapError(
                "The command has {\(inside)}, and there "
                    + (sourceCount == 1 ? "is 1 source" : "are \(sourceCount) sources")
                    + " of values."
            )
        }
        return .value(sign ? .fromEnd(number) : .one(number - 1), change)
    }

    /// The command of a row.
    ///
    /// - Parameters:
    ///   - values: the values of the row, as many as there are sources.
    ///   - number: the number of the row, from 1.
    package func command(_ values: [String], number: Int) -> String {
        // The values are commands themselves, which the shell shall read.
        guard !pieces.isEmpty else { return values.joined(separator: " ") }
        var command = ""
        for piece in pieces {
            switch piece {
            case .text(let text): command += text
            case .number: command += String(number)
            case .value(.all, let change):
                for (index, value) in values.enumerated() {
                    if index > 0 { command += " " }
                    command += Self.quoted(Self.changed(value, change))
                }
            case .value(.one(let index), let change):
                command += Self.quoted(Self.changed(values[index], change))
            case .value(.fromEnd(let index), let change):
                command += Self.quoted(Self.changed(values[values.count - index], change))
            }
        }
        return command
    }

    // MARK: - Values

    private static func changed(_ value: String, _ change: Change) -> String {
        switch change {
        case .whole: value
        case .withoutSuffix: withoutSuffix(value)
        case .name: name(of: value)
        case .directory: directory(of: value)
        case .nameWithoutSuffix: withoutSuffix(name(of: value))
        }
    }

    /// Without the last dot of the file's name and what follows it.
    private static func withoutSuffix(_ path: String) -> String {
        guard let place = path.utf8.lastIndex(where: { $0 == dot || $0 == slash }),
            path.utf8[place] == dot
        else { return path }
        return String(path[..<place])
    }

    /// What follows the last slash.
    private static func name(of path: String) -> String {
        guard let place = path.utf8.lastIndex(of: slash) else { return path }
        return String(path[path.utf8.index(after: place)...])
    }

    /// The directory, as `dirname` gives it.
    private static func directory(of path: String) -> String {
        func trimmed(_ path: Substring) -> Substring {
            let end = path.utf8.lastIndex { $0 != slash }
            return end.map { path[...$0] } ?? path.prefix(0)
        }
        let bare = trimmed(Substring(path))
        guard let place = bare.utf8.lastIndex(of: slash) else {
            return bare.isEmpty && path.hasPrefix("/") ? "/" : "."
        }
        let directory = trimmed(bare[..<place])
        return directory.isEmpty ? "/" : String(directory)
    }

    private static let dot = UInt8(ascii: ".")
    private static let slash = UInt8(ascii: "/")

    /// The value as one word of the shell, with the quotation marks that GNU parallel uses.
    package static func quoted(_ value: String) -> String {
        guard !value.isEmpty else { return "''" }
        let isPlain = value.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
                UInt8(ascii: "."), UInt8(ascii: "+"), slash:
                true
            default: false
            }
        }
        guard !isPlain else { return value }
        var text = "'"
        // Not characters: a combining mark may follow a quotation mark.
        for scalar in value.unicodeScalars {
            if scalar == "'" { text += #"'"'"'"# } else { text.unicodeScalars.append(scalar) }
        }
        text += "'"
        if text.hasPrefix("''") { text.removeFirst(2) }
        if text.hasSuffix("''") { text.removeLast(2) }
        return text
    }
}

/// Why `operon map` cannot do what its arguments say: a sentence for a person.
package struct MapError: Error, Hashable, Sendable, CustomStringConvertible {
    package let message: String

    package init(_ message: String) { self.message = message }

    package var description: String { message }
}
