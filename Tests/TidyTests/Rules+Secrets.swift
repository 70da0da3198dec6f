extension Rules {
    /// The targets that see tokens, codes, signatures and their hashes.
    static let withSecrets: Set = ["OperonHTTP", "OperonRuntime", "OperonSystem", "OperonTrust"]

    private static let secretEnds = [
        "code", "digest", "password", "secret", "signature", "token",
    ]

    /// Tokens, codes, signatures and hashes of them that are compared in another way than by
    /// `SHA256.isEqual`: with `==`, by a search in an array, or as the key of a dictionary. Those
    /// take the longer the more is equal. What is compared with constants of the source, such as a
    /// case, a number or `ENOENT`, is no secret.
    static func comparedSecrets(_ file: SourceFile) -> [Violation] {
        // A line that begins with an operator or a member goes on with the one before.
        var lines: [(text: String, number: Int)] = []
        for (index, line) in file.code.lines.enumerated() {
            let code = line.drop { $0 == " " }
            let isRest = ["==", "!=", "."].contains { code.hasPrefix($0) } && !lines.isEmpty
            if isRest {
                lines[lines.count - 1].text += (code.first == "." ? "" : " ") + code
            } else {
                lines.append((line, index + 1))
            }
        }
        return lines.flatMap { line, number -> [Violation] in
            let words = line.lowercased()
            guard (secretEnds + ["sha256.hash"]).contains(where: words.contains) else { return [] }
            return (comparisons(line) + searches(line)).map {
                Violation(file.path, number, "\($0) is compared without SHA256.isEqual")
            }
        }
    }

    private static func comparisons(_ line: String) -> [String] {
        line.matches(of: /\s+[=!]=\s+/).flatMap { match -> [String] in
            let left = leftOperand(line[..<match.range.lowerBound])
            let right = rightOperand(line[match.range.upperBound...])
            guard !isConstant(left), !isConstant(right) else { return [] }
            return [left, right].filter(isSecret)
        }
    }

    private static func searches(_ line: String) -> [String] {
        // A list that is written there is one of constants.
        let calls = line.matches(
            of: /[\w?]\.(?:contains|\w*Index|\w*Value)\((?:of: |forKey: )?([\w.?]+)\)/
        )
        let subscripts = line.matches(of: /[\w?]\[([\w.?]+)\]/)
        return (calls.map { String($0.1) } + subscripts.map { String($0.1) }).filter(isSecret)
    }

    private static func leftOperand(_ text: Substring) -> String {
        var depth = 0
        return String(
            text.reversed().prefix { character in
                if character == ")" || character == "]" { depth += 1 }
                if character == "(" || character == "[" { depth -= 1 }
                return depth >= 0 && (depth > 0 || isOperand(character) || "([".contains(character))
            }.reversed()
        )
    }

    private static func rightOperand(_ text: Substring) -> String {
        var depth = 0
        return String(
            text.prefix { character in
                if character == "(" || character == "[" { depth += 1 }
                if character == ")" || character == "]" { depth -= 1 }
                return depth >= 0 && (depth > 0 || isOperand(character) || ")]".contains(character))
            }
        )
    }

    private static func isOperand(_ character: Character) -> Bool {
        character.isLetter || character.isNumber || "_.?!$\"".contains(character)
    }

    private static func isConstant(_ operand: String) -> Bool {
        let isCase = operand.wholeMatch(of: /(?:[A-Z]\w*)?\.\w+/) != nil
        let isValue = operand.wholeMatch(of: /nil|true|false|\d[\w.]*|"+|[A-Z][A-Z0-9_]+/) != nil
        return isCase || isValue
    }

    /// Whether the last name of an operand is that of a secret: `request.token`, `hash(of: token)`
    /// and `authenticationCode(for: …)` are, `token.name` and `code.count` are not.
    private static func isSecret(_ operand: String) -> Bool {
        var name = operand
        while let last = name.last, "?!".contains(last) { name.removeLast() }
        if name.last == ")" {
            if name.wholeMatch(of: /.*SHA256\.hash\(of: .*\)/) != nil { return true }
            name = String(name.prefix { $0 != "(" })
        }
        let word = name.split(separator: ".").last ?? ""
        // A type, as in `[Token]`.
        guard word.first?.isUppercase == false else { return false }
        return secretEnds.contains { word.lowercased().hasSuffix($0) }
    }
}
