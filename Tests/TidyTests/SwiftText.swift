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
        var scanner = Scanner(Array(text.unicodeScalars))
        lines = scanner.codeLines()
        literals = scanner.literals
    }
}

private struct Scanner {
    private enum Mode: Equatable {
        case code
        case lineComment
        case blockComment(depth: Int)
        case string(quotes: Int, hashes: Int)
    }

    private let text: [Unicode.Scalar]
    private var position = 0
    private var mode = Mode.code
    private var lines: [String] = []
    private var line = ""
    private(set) var literals: [SwiftText.Literal] = []
    private var literal = SwiftText.Literal(line: 1)

    init(_ text: [Unicode.Scalar]) {
        self.text = text
    }

    mutating func codeLines() -> [String] {
        while position < text.count { step() }
        lines.append(line)
        return lines
    }

    private func peek(_ offset: Int = 0) -> Unicode.Scalar? {
        let index = position + offset
        return index < text.count ? text[index] : nil
    }

    private func starts(with pattern: String) -> Bool {
        var offset = 0
        for scalar in pattern.unicodeScalars {
            guard peek(offset) == scalar else { return false }
            offset += 1
        }
        return true
    }

    private mutating func step() {
        if text[position] == "\n" {
            lines.append(line)
            line = ""
            if case .string = mode { literal.text += "\n" }
            if mode == .lineComment { mode = .code }
            // A string of one line ends with it at the latest.
            if case .string(quotes: 1, _) = mode { mode = .code }
            position += 1
            return
        }
        switch mode {
        case .code: stepInCode()
        case .lineComment: position += 1
        case .blockComment(let depth): stepInComment(depth: depth)
        case .string(let quotes, let hashes): stepInString(quotes: quotes, hashes: hashes)
        }
    }

    private mutating func stepInCode() {
        if starts(with: "//") {
            mode = .lineComment
            position += 2
        } else if starts(with: "/*") {
            mode = .blockComment(depth: 1)
            position += 2
        } else if let opening = openingQuote() {
            mode = .string(quotes: opening.quotes, hashes: opening.hashes)
            literal = SwiftText.Literal(line: lines.count + 1)
            literal.joined = operandBefore().map { [$0] } ?? []
            line += "\""
            position += opening.quotes + opening.hashes
        } else {
            line.unicodeScalars.append(text[position])
            position += 1
        }
    }

    private func openingQuote() -> (quotes: Int, hashes: Int)? {
        var hashes = 0
        while peek(hashes) == "#" { hashes += 1 }
        guard peek(hashes) == "\"" else { return nil }
        let isLong = peek(hashes + 1) == "\"" && peek(hashes + 2) == "\""
        return (isLong ? 3 : 1, hashes)
    }

    private mutating func stepInComment(depth: Int) {
        if starts(with: "*/") {
            mode = depth == 1 ? .code : .blockComment(depth: depth - 1)
            position += 2
        } else if starts(with: "/*") {
            mode = .blockComment(depth: depth + 1)
            position += 2
        } else {
            position += 1
        }
    }

    private mutating func stepInString(quotes: Int, hashes: Int) {
        let end =
            String(repeating: "\"", count: quotes) + String(repeating: "#", count: hashes)
        let escape = "\\" + String(repeating: "#", count: hashes)
        if starts(with: end) {
            mode = .code
            line += "\""
            position += quotes + hashes
            literal.joined += operandAfter().map { [$0] } ?? []
            literals.append(literal)
        } else if starts(with: escape), peek(escape.count) != "\n" {
            if peek(escape.count) == "(" {
                position += escape.count
                let start = position + 1
                skipInterpolation()
                literal.interpolations.append(words(start..<max(start, position - 1)))
            } else {
                position += escape.count + 1
            }
        } else {
            literal.text.unicodeScalars.append(text[position])
            position += 1
        }
    }

    private func words(_ range: Range<Int>) -> String {
        var words = String.UnicodeScalarView()
        words.append(contentsOf: text[range])
        return String(words)
    }

    private func isSpace(_ place: Int) -> Bool { text[place].properties.isWhitespace }

    private func isOperand(_ place: Int) -> Bool {
        !isSpace(place) && !"(),{}[]:".unicodeScalars.contains(text[place])
    }

    /// What stands before this place with `+` or `+=`; `nil`: nothing, or a string.
    private func operandBefore() -> String? {
        var end = position
        while end > 0, isSpace(end - 1) { end -= 1 }
        if end > 1, text[end - 1] == "=" { end -= 1 }
        guard end > 0, text[end - 1] == "+" else { return nil }
        end -= 1
        while end > 0, isSpace(end - 1) { end -= 1 }
        guard end > 0, text[end - 1] != "\"", text[end - 1] != "#" else { return nil }
        var start = end
        while start > 0, isOperand(start - 1) { start -= 1 }
        return words(start..<end)
    }

    /// What stands behind this place with `+`; `nil`: nothing, or a string.
    private func operandAfter() -> String? {
        var start = position
        while start < text.count, isSpace(start) { start += 1 }
        guard start < text.count, text[start] == "+" else { return nil }
        start += 1
        while start < text.count, isSpace(start) { start += 1 }
        guard start < text.count, text[start] != "\"", text[start] != "#" else { return nil }
        var end = start
        while end < text.count, isOperand(end) { end += 1 }
        return words(start..<end)
    }

    /// From the opening parenthesis to behind its closing one; strings within may hold others.
    private mutating func skipInterpolation() {
        var depth = 0
        var inString = false
        while position < text.count, text[position] != "\n" {
            let scalar = text[position]
            position += 1
            if inString {
                if scalar == "\\" { position += 1 }
                if scalar == "\"" { inString = false }
                continue
            }
            if scalar == "\"" { inString = true }
            if scalar == "(" { depth += 1 }
            if scalar == ")" {
                depth -= 1
                if depth == 0 { return }
            }
        }
    }
}
