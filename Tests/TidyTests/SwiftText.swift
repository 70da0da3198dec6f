import Glibc

/// Swift source with comments and the contents of strings blanked out, line by line, so that rules
/// look at code alone. Enough of Swift's grammar for that, and no more: nested comments, plain,
/// raw and multi-line strings; what is interpolated into a string is blanked with it.
struct SwiftText {
    /// A string of the source.
    struct Literal {
        /// Where it begins, from 1.
        let line: Int
        /// What it has besides what is interpolated.
        var text = ""
        /// What is interpolated, as it is written.
        var interpolations: [String] = []
        /// What stands before and behind it with a `+`, other strings aside.
        var joined: [String] = []
    }

    let lines: [String]
    let literals: [Literal]

    init(_ text: String) {
        var scanner = Scanner(Array(text.utf8))
        lines = scanner.codeLines()
        literals = scanner.literals
    }
}

/// Bytes: the grammar is ASCII, and these tests scan over 200,000 lines without optimisation.
private struct Scanner {
    private enum Mode: Equatable {
        case code
        case lineComment
        case blockComment(depth: Int)
        case string
    }

    private let text: [UInt8]
    private var position = 0
    private var mode = Mode.code
    private var lines: [String] = []
    private var line: [UInt8] = []
    private(set) var literals: [SwiftText.Literal] = []
    private var literal = SwiftText.Literal(line: 1)
    private var literalText: [UInt8] = []
    /// What ends the string that is being read, and what escapes in it.
    private var end: [UInt8] = []
    private var escape: [UInt8] = []

    init(_ text: [UInt8]) {
        self.text = text
    }

    mutating func codeLines() -> [String] {
        while position < text.count { step() }
        lines.append(String(decoding: line, as: UTF8.self))
        return lines
    }

    private func peek(_ offset: Int = 0) -> UInt8? {
        let index = position + offset
        return index < text.count ? text[index] : nil
    }

    private func starts(with pattern: [UInt8]) -> Bool {
        for offset in 0..<pattern.count where peek(offset) != pattern[offset] { return false }
        return true
    }

    private mutating func step() {
        let byte = text[position]
        if byte == .newline {
            lines.append(String(decoding: line, as: UTF8.self))
            line = []
            if mode == .string { literalText.append(byte) }
            if mode == .lineComment { mode = .code }
            // A string of one line ends with it at the latest.
            if mode == .string, end.count < 3 || end[1] != .quote { mode = .code }
            position += 1
            return
        }
        switch mode {
        case .code: stepInCode(byte)
        case .lineComment: position += 1
        case .blockComment(let depth): stepInComment(depth: depth)
        case .string: stepInString(byte)
        }
    }

    private mutating func stepInCode(_ byte: UInt8) {
        if byte == .slash, peek(1) == .slash {
            mode = .lineComment
            position += 2
        } else if byte == .slash, peek(1) == .star {
            mode = .blockComment(depth: 1)
            position += 2
        } else if byte == .quote || byte == .hash, let opening = openingQuote() {
            mode = .string
            let hashes = [UInt8](repeating: .hash, count: opening.hashes)
            end = [UInt8](repeating: .quote, count: opening.quotes) + hashes
            escape = [.backslash] + hashes
            literal = SwiftText.Literal(line: lines.count + 1)
            literal.joined = operandBefore().map { [$0] } ?? []
            literalText = []
            line.append(.quote)
            position += opening.quotes + opening.hashes
        } else {
            line.append(byte)
            position += 1
        }
    }

    private func openingQuote() -> (quotes: Int, hashes: Int)? {
        var hashes = 0
        while peek(hashes) == .hash { hashes += 1 }
        guard peek(hashes) == .quote else { return nil }
        let isLong = peek(hashes + 1) == .quote && peek(hashes + 2) == .quote
        return (isLong ? 3 : 1, hashes)
    }

    private mutating func stepInComment(depth: Int) {
        if peek() == .star, peek(1) == .slash {
            mode = depth == 1 ? .code : .blockComment(depth: depth - 1)
            position += 2
        } else if peek() == .slash, peek(1) == .star {
            mode = .blockComment(depth: depth + 1)
            position += 2
        } else {
            position += 1
        }
    }

    private mutating func stepInString(_ byte: UInt8) {
        if byte == .quote, starts(with: end) {
            mode = .code
            line.append(.quote)
            position += end.count
            literal.joined += operandAfter().map { [$0] } ?? []
            literal.text = String(decoding: literalText, as: UTF8.self)
            literals.append(literal)
        } else if byte == .backslash, starts(with: escape), peek(escape.count) != .newline {
            if peek(escape.count) == .opening {
                position += escape.count
                let start = position + 1
                skipInterpolation()
                literal.interpolations.append(words(start..<max(start, position - 1)))
            } else {
                position += escape.count + 1
            }
        } else {
            literalText.append(byte)
            position += 1
        }
    }

    private func words(_ range: Range<Int>) -> String {
        String(decoding: text[range], as: UTF8.self)
    }

    private func isSpace(_ place: Int) -> Bool {
        text[place] == 0x20 || (0x09...0x0D).contains(text[place])
    }

    private func isOperand(_ place: Int) -> Bool {
        !isSpace(place) && !"(),{}[]:".utf8.contains(text[place])
    }

    /// What stands before this place with `+` or `+=`; `nil`: nothing, or a string.
    private func operandBefore() -> String? {
        var end = position
        while end > 0, isSpace(end - 1) { end -= 1 }
        if end > 1, text[end - 1] == .equals { end -= 1 }
        guard end > 0, text[end - 1] == .plus else { return nil }
        end -= 1
        while end > 0, isSpace(end - 1) { end -= 1 }
        guard end > 0, text[end - 1] != .quote, text[end - 1] != .hash else { return nil }
        var start = end
        while start > 0, isOperand(start - 1) { start -= 1 }
        return words(start..<end)
    }

    /// What stands behind this place with `+`; `nil`: nothing, or a string.
    private func operandAfter() -> String? {
        var start = position
        while start < text.count, isSpace(start) { start += 1 }
        guard start < text.count, text[start] == .plus else { return nil }
        start += 1
        while start < text.count, isSpace(start) { start += 1 }
        guard start < text.count, text[start] != .quote, text[start] != .hash else { return nil }
        var end = start
        while end < text.count, isOperand(end) { end += 1 }
        return words(start..<end)
    }

    /// From the opening parenthesis to behind its closing one; strings within may hold others.
    private mutating func skipInterpolation() {
        var depth = 0
        var inString = false
        while position < text.count, text[position] != .newline {
            let byte = text[position]
            position += 1
            if inString {
                if byte == .backslash { position += 1 }
                if byte == .quote { inString = false }
                continue
            }
            if byte == .quote { inString = true }
            if byte == .opening { depth += 1 }
            if byte == .closing {
                depth -= 1
                if depth == 0 { return }
            }
        }
    }
}

extension UInt8 {
    fileprivate static var newline: UInt8 { UInt8(ascii: "\n") }
    fileprivate static var quote: UInt8 { UInt8(ascii: "\"") }
    fileprivate static var hash: UInt8 { UInt8(ascii: "#") }
    fileprivate static var slash: UInt8 { UInt8(ascii: "/") }
    fileprivate static var star: UInt8 { UInt8(ascii: "*") }
    fileprivate static var backslash: UInt8 { UInt8(ascii: "\\") }
    fileprivate static var opening: UInt8 { UInt8(ascii: "(") }
    fileprivate static var closing: UInt8 { UInt8(ascii: ")") }
    fileprivate static var equals: UInt8 { UInt8(ascii: "=") }
    fileprivate static var plus: UInt8 { UInt8(ascii: "+") }
}

extension StringProtocol {
    /// Whether the bytes of the word are among those of this text. Much faster than `contains`,
    /// which compares characters.
    func containsBytes(of word: String) -> Bool {
        utf8.withContiguousStorageIfAvailable { text in
            word.utf8.withContiguousStorageIfAvailable { Self.isIn(text, $0) } ?? contains(word)
        } ?? contains(word)
    }

    private static func isIn(
        _ text: UnsafeBufferPointer<UInt8>,
        _ word: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        guard let first = word.first, let start = word.baseAddress else { return true }
        var rest = text[...]
        while rest.count >= word.count {
            let bytes = UnsafeBufferPointer(rebasing: rest)
            guard let base = bytes.baseAddress, let found = memchr(base, Int32(first), bytes.count)
            else { return false }
            let offset = UnsafeRawPointer(base).distance(to: found)
            guard bytes.count - offset >= word.count else { return false }
            if memcmp(found, start, word.count) == 0 { return true }
            rest = rest.dropFirst(offset + 1)
        }
        return false
    }
}
