extension Rules {
    // MARK: - Commands

    /// A command without a name gets that of its type, for which the runtime searches every
    /// conformance that is linked: over a tenth of a millisecond for each command, at each start.
    static func unnamedCommands(_ file: SourceFile) -> [Violation] {
        let lines = file.lines
        return lines.indices.compactMap { index in
            guard lines[index].hasSuffix("= CommandConfiguration("),
                index + 1 == lines.count || !lines[index + 1].contains("commandName:")
            else { return nil }
            return Violation(file.path, index + 1, "a command without a name")
        }
    }

    // MARK: - Lengths

    static func lineLengths(_ file: SourceFile) -> [Violation] {
        file.lines.enumerated().compactMap { index, line in
            // An address cannot be broken.
            guard line.utf8.count > lineMax, line.count > lineMax, !line.contains("https://")
            else { return nil }
            return Violation(file.path, index + 1, "\(line.count) columns, at most \(lineMax)")
        }
    }

    static func fileLength(_ file: SourceFile) -> [Violation] {
        guard file.lines.count > fileLinesMax else { return [] }
        let rule = "\(file.lines.count) lines, at most \(fileLinesMax)"
        return [Violation(file.path, file.lines.count, rule)]
    }

    /// A function or initializer, from its first line to its closing brace.
    struct Function: Hashable {
        let name: String
        let line: Int
        let length: Int
    }

    /// Counts braces; a body opens with the first brace after `func` or `init` at the depth of its
    /// parentheses.
    static func functions(_ file: SourceFile) -> [Function] {
        var found: [Function] = []
        var open: [(name: String, line: Int, depth: Int)] = []
        var pending: (name: String, line: Int, depth: Int)?
        var depth = 0
        var parentheses = 0
        for (index, line) in file.code.lines.enumerated() {
            if let name = declaredFunction(line), parentheses == 0 {
                pending = (name, index + 1, depth)
            }
            for byte in line.utf8 {
                switch byte {
                case UInt8(ascii: "("): parentheses += 1
                case UInt8(ascii: ")"): parentheses -= 1
                case UInt8(ascii: "{"):
                    if let body = pending, parentheses == 0 {
                        open.append(body)
                        pending = nil
                    }
                    depth += 1
                case UInt8(ascii: "}"):
                    depth -= 1
                    // A requirement without a body ends with the protocol around it.
                    if let body = pending, depth < body.depth { pending = nil }
                    if let body = open.last, body.depth == depth {
                        open.removeLast()
                        let length = index + 2 - body.line
                        found.append(Function(name: body.name, line: body.line, length: length))
                    }
                default: break
                }
            }
        }
        return found
    }

    static func functionLengths(
        _ file: SourceFile,
        ratchet: [String: Int]
    ) -> [Violation] {
        functions(file).compactMap { function in
            let most = ratchet["\(file.path) \(function.name)"] ?? functionLinesMax
            guard function.length > most else { return nil }
            let rule = "\(function.name) has \(function.length) lines, at most \(most)"
            return Violation(file.path, function.line, rule)
        }
    }

    private static func declaredFunction(_ line: String) -> String? {
        guard line.contains("func") || line.contains("init") else { return nil }
        let words = line.split(whereSeparator: { " \t(<{?!".contains($0) })
        if let index = words.firstIndex(of: "func"), index + 1 < words.count {
            return String(words[index + 1])
        }
        let before: Set<Substring> = [
            "public", "package", "internal", "fileprivate", "private", "convenience", "required",
            "override", "consuming", "borrowing",
        ]
        let first = words.first { !before.contains($0) }
        return first == "init" || first == "deinit" ? first.map(String.init) : nil
    }

    // MARK: - Order

    /// Loops over what has no order. Only names that the same file declares as a dictionary or a
    /// set are known, so this finds the plain cases; the simulator's double run finds the others.
    static func hashOrder(_ file: SourceFile) -> [Violation] {
        let lines = file.code.lines
        var unordered: Set<String> = []
        for line in lines { if let name = declaredUnordered(line) { unordered.insert(name) } }
        return lines.enumerated().compactMap { index, line in
            guard let name = iterated(line), unordered.contains(name) else { return nil }
            return Violation(file.path, index + 1, "\(name) is iterated in hash order: sort it")
        }
    }

    /// `var waiting: [Key: Value]` → `waiting`.
    private static func declaredUnordered(_ line: String) -> String? {
        let words = line.split(separator: " ")
        guard let index = words.firstIndex(where: { $0 == "var" || $0 == "let" }),
            index + 1 < words.count
        else { return nil }
        let name = words[index + 1].prefix { $0.isLetter || $0.isNumber || $0 == "_" }
        let halves = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let type = halves[0].split(separator: ":", maxSplits: 1).dropFirst().first ?? ""
        let value = halves.dropFirst().first ?? ""
        let isUnordered = [type, value].contains { half in
            let text = String(half.drop { $0 == " " })
            let names = ["Set<", "Dictionary<", "Set(", "Dictionary("]
            return names.contains { text.hasPrefix($0) }
                || text.hasPrefix("[") && hasTopLevelColon(text)
        }
        return isUnordered ? String(name) : nil
    }

    private static func hasTopLevelColon(_ type: String) -> Bool {
        var depth = 0
        for character in type {
            switch character {
            case "[", "(", "<": depth += 1
            case "]", ")", ">":
                depth -= 1
                if depth == 0 { return false }
            case ":" where depth == 1: return true
            default: break
            }
        }
        return false
    }

    /// `for (key, value) in self.waiting where …` → `waiting`; `nil` if something orders it.
    private static func iterated(_ line: String) -> String? {
        let words = line.split(separator: " ")
        guard words.contains("for"), let index = words.firstIndex(of: "in"),
            index + 1 < words.count
        else { return nil }
        var expression = words[index + 1].prefix { !"{(".contains($0) }
        if expression.hasPrefix("self.") { expression.removeFirst("self.".count) }
        for ending in [".keys", ".values", ".lazy"] where expression.hasSuffix(ending) {
            expression.removeLast(ending.count)
        }
        return String(expression)
    }
}
