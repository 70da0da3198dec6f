import OperonModel

/// A pull parser for JSON (RFC 8259) in bytes, value by value, with line and column.
///
/// Strict: UTF-8, no comments, no trailing commas, no NaN, no unpaired surrogates, no duplicate
/// keys.
/// Nesting and the number of values in one tree are bounded, so hostile input costs no more than
/// its length.
struct JSONParser {
    let bytes: [UInt8]
    var index: Int
    var end: Int
    private var line: UInt32
    /// The index of column 1 of this line, plus one for each continuation byte of a character so
    /// far.
    var lineStart: Int
    private var depth = 0
    private var nodes = 0
    private let depthMax: Int
    private let nodesMax: Int
    /// Duplicate keys. Reading continues after them.
    private(set) var findings: [GraphFileError.Problem] = []

    init(_ bytes: [UInt8], bounds: TreeBounds, line: UInt32 = 1, index: Int = 0) {
        self.bytes = bytes
        self.index = index
        self.end = bytes.count
        self.line = line
        self.lineStart = index
        self.depthMax = bounds.depth
        self.nodesMax = bounds.nodes
        // A byte order mark has no meaning in UTF-8, but some editors write one.
        if line == 1, index == 0, bytes.starts(with: [0xEF, 0xBB, 0xBF]) {
            self.index = 3
            self.lineStart = 3
        }
    }

    var position: Position {
        Position(line: line, column: UInt32(clamping: index - lineStart + 1))
    }

    mutating func takeFindings() -> [GraphFileError.Problem] {
        defer { findings = [] }
        return findings
    }

    // MARK: - Walking

    /// Whether only white space is left.
    mutating func isAtEnd() -> Bool {
        skipSpace()
        return index == end
    }

    /// Limits reading to the line that begins here; the newline is not part of it.
    mutating func beginLine() {
        end = bytes[index...].firstIndex(of: Byte.newline) ?? bytes.count
    }

    /// Moves to the line after the one that `beginLine` limited reading to.
    mutating func endLine() {
        index = min(end + 1, bytes.count)
        end = bytes.count
        line += 1
        lineStart = index
    }

    /// The next byte that is not white space. It is not consumed.
    mutating func peek() -> UInt8? {
        skipSpace()
        return index < end ? bytes[index] : nil
    }

    /// Enters `{`.
    mutating func beginObject() throws(Stop) { try open(Byte.openBrace, "a map") }

    /// Enters `[`.
    mutating func beginArray() throws(Stop) { try open(Byte.openBracket, "a list") }

    /// The next key, or `nil` after the `}`. `isFirst`: the map was just entered.
    mutating func nextKey(isFirst: inout Bool) throws(Stop) -> (key: String, at: Position)? {
        guard try separator(Byte.closeBrace, isFirst: &isFirst) else { return nil }
        let position = self.position
        guard index < end, bytes[index] == Byte.quote else {
            throw unexpected("a key in quotation marks")
        }
        let key = try string()
        skipSpace()
        guard index < end, bytes[index] == Byte.colon else { throw unexpected("“:”") }
        index += 1
        return (key, position)
    }

    /// Whether there is another element before the `]`.
    mutating func nextElement(isFirst: inout Bool) throws(Stop) -> Bool {
        try separator(Byte.closeBracket, isFirst: &isFirst)
    }

    private mutating func open(_ byte: UInt8, _ what: String) throws(Stop) {
        guard peek() == byte else { throw unexpected(what) }
        depth += 1
        guard depth <= depthMax else { throw tooDeep() }
        index += 1
    }

    private mutating func separator(_ close: UInt8, isFirst: inout Bool) throws(Stop) -> Bool {
        let next = peek()
        if next == close {
            index += 1
            depth -= 1
            return false
        }
        if isFirst {
            isFirst = false
            return true
        }
        guard next == Byte.comma else {
            throw unexpected("“,” or “\(Character(Unicode.Scalar(close)))”")
        }
        index += 1
        skipSpace()
        if index < end, bytes[index] == close { throw unexpected("a value behind the comma") }
        return true
    }

    // MARK: - Values

    /// Reads the next value as a whole.
    mutating func value() throws(Stop) -> Node {
        nodes = 0
        return try tree()
    }

    private mutating func tree() throws(Stop) -> Node {
        let next = peek()
        let position = self.position
        nodes += 1
        guard nodes <= nodesMax else { throw .problem(.tooManyNodes(nodesMax, at: position)) }
        switch next {
        case Byte.quote: return Node(.string(try string()), at: position)
        case Byte.openBrace: return Node(.mapping(try object()), at: position)
        case Byte.openBracket: return Node(.sequence(try array()), at: position)
        case .some(Byte.minus), .some(Byte.zero...Byte.nine):
            let start = index
            try skipNumber()
            return Node(.number(text: text(start..<index)), at: position)
        default: return Node(try literal(), at: position)
        }
    }

    private mutating func object() throws(Stop) -> [Node.Entry] {
        try beginObject()
        var entries: [Node.Entry] = []
        var seen = SeenKeys<Position>()
        var isFirst = true
        while let (key, keyPosition) = try nextKey(isFirst: &isFirst) {
            let value = try tree()
            if let first = seen.insert(key, keyPosition) {
                if findings.count <= GraphFileError.problemsMax {
                    findings.append(.duplicateKey(key, at: keyPosition, first: first))
                }
            } else {
                entries.append(Node.Entry(key: key, keyPosition: keyPosition, value: value))
            }
        }
        return entries
    }

    private mutating func array() throws(Stop) -> [Node] {
        try beginArray()
        var elements: [Node] = []
        var isFirst = true
        while try nextElement(isFirst: &isFirst) { elements.append(try tree()) }
        return elements
    }

    /// Skips the next value. It checks the value as `value` does, except for duplicate keys.
    mutating func skip() throws(Stop) {
        var isFirst = true
        switch peek() {
        case Byte.quote: _ = try scanString()
        case Byte.openBrace:
            try beginObject()
            while try nextKey(isFirst: &isFirst) != nil { try skip() }
        case Byte.openBracket:
            try beginArray()
            while try nextElement(isFirst: &isFirst) { try skip() }
        case .some(Byte.minus), .some(Byte.zero...Byte.nine): try skipNumber()
        default: _ = try literal()
        }
    }

    private mutating func literal() throws(Stop) -> Node.Value {
        let start = index
        var stop = index
        while stop < end, stop - start < 32, isWordByte(bytes[stop]) { stop += 1 }
        switch text(start..<stop) {
        case "true":
            index = stop
            return .bool(text: "true")
        case "false":
            index = stop
            return .bool(text: "false")
        case "null":
            index = stop
            return .null
        case let word where !word.isEmpty:
            throw .problem(
                GraphFileError.Problem(
                    .syntax,
                    at: position,
                    word,
                    "\(word.quoted) is not JSON; a string needs quotation marks"
                )
            )
        default: throw unexpected("a value")
        }
    }

    private func isWordByte(_ byte: UInt8) -> Bool {
        (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
    }

    private mutating func skipNumber() throws(Stop) {
        let start = index
        if index < end, bytes[index] == Byte.minus { index += 1 }
        let whole = skipDigits()
        guard whole > 0 else { throw unexpected("a digit") }
        let firstDigit = bytes[index - whole]
        guard whole == 1 || firstDigit != Byte.zero else {
            index = start
            throw .problem(
                GraphFileError.Problem(
                    .syntax,
                    at: position,
                    "0",
                    "a number in JSON does not begin with 0"
                )
            )
        }
        if index < end, bytes[index] == Byte.point {
            index += 1
            guard skipDigits() > 0 else { throw unexpected("a digit") }
        }
        if index < end, bytes[index] == 0x65 || bytes[index] == 0x45 {
            index += 1
            if index < end, bytes[index] == 0x2B || bytes[index] == Byte.minus { index += 1 }
            guard skipDigits() > 0 else { throw unexpected("a digit") }
        }
    }

    private mutating func skipDigits() -> Int {
        let start = index
        while index < end, (Byte.zero...Byte.nine).contains(bytes[index]) { index += 1 }
        return index - start
    }

    private mutating func skipSpace() {
        while index < end {
            switch bytes[index] {
            case 0x20, 0x09, 0x0D: index += 1
            case Byte.newline:
                index += 1
                line += 1
                lineStart = index
            default: return
            }
        }
    }

    func text(_ range: Range<Int>) -> String {
        String(decoding: bytes[range], as: UTF8.self)
    }

    // MARK: - Errors

    private func tooDeep() -> Stop { .problem(.tooDeep(depthMax, at: position)) }

    func unexpected(_ wanted: String) -> Stop {
        guard index < end else {
            return .problem(
                GraphFileError.Problem(
                    .syntax,
                    at: position,
                    "",
                    "the text ends where \(wanted) was expected"
                )
            )
        }
        let byte = bytes[index]
        let thing =
            byte < 0x80
            ? String(Character(Unicode.Scalar(byte)))
            : String(decoding: bytes[index..<min(index + 4, end)], as: UTF8.self).prefix(1)
                .description
        return .problem(
            GraphFileError.Problem(
                .syntax,
                at: position,
                thing,
                "expected \(wanted), found \(thing.quoted)"
            )
        )
    }
}

/// The maximum depth and size of one tree of a file.
struct TreeBounds {
    var depth: Int
    /// The most values in one tree that is read as a whole: an operation, the queues, the defaults.
    var nodes: Int

    init(_ limits: Limits) {
        // Trees are traversed by recursion, and 256 levels fit on the stack of any thread.
        depth = min(limits.yamlDepth, 256)
        // An operation has at most all others as dependencies; each value of an input takes at
        // least a byte.
        let half = Int.max / 2
        nodes = min(limits.operationsPerGraph, half) + min(limits.payloadBytes, half)
    }
}

enum Byte {
    static let newline = UInt8(ascii: "\n")
    static let quote = UInt8(ascii: "\"")
    static let backslash = UInt8(ascii: "\\")
    static let openBrace = UInt8(ascii: "{")
    static let closeBrace = UInt8(ascii: "}")
    static let openBracket = UInt8(ascii: "[")
    static let closeBracket = UInt8(ascii: "]")
    static let colon = UInt8(ascii: ":")
    static let comma = UInt8(ascii: ",")
    static let minus = UInt8(ascii: "-")
    static let point = UInt8(ascii: ".")
    static let zero = UInt8(ascii: "0")
    static let nine = UInt8(ascii: "9")
}

extension GraphFileError.Problem {
    static func tooDeep(_ maximum: Int, at position: Position) -> Self {
        Self(
            limit: .yamlDepth,
            value: maximum + 1,
            maximum: maximum,
            at: position,
            "",
            "nested too deeply"
        )
    }

    /// The bound is `TreeBounds.nodes`.
    static func tooManyNodes(_ maximum: Int, at position: Position) -> Self {
        var problem = Self(
            .limitExceeded,
            at: position,
            "",
            "more than \(maximum) values in one operation (operationsPerGraph + payloadBytes)"
        )
        problem.limit = .payloadBytes
        return problem
    }
}
