/// The type of a plain scalar in the core schema of YAML 1.2: `no` and `on` are texts.
enum YAMLScalar {
    static func resolved(_ text: String) -> Node.Value {
        switch text {
        case "", "~", "null", "Null", "NULL": .null
        case "true", "True", "TRUE", "false", "False", "FALSE": .bool(text: text)
        default: isNumber(text) ? .number(text: text) : .string(text)
        }
    }

    private static func isNumber(_ text: String) -> Bool {
        var rest = Substring(text)
        if rest.hasPrefix("0x") { return isDigits(rest.dropFirst(2)) { $0.isHexDigit } }
        if rest.hasPrefix("0o") {
            return isDigits(rest.dropFirst(2)) { ("0"..."7").contains($0) }
        }
        if let sign = rest.first, sign == "+" || sign == "-" { rest = rest.dropFirst() }
        switch rest {
        case ".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN": return true
        default: break
        }
        let whole = rest.prefix(while: isDecimal)
        rest = rest.dropFirst(whole.count)
        var fraction = Substring()
        if rest.first == "." {
            fraction = rest.dropFirst().prefix(while: isDecimal)
            rest = rest.dropFirst(1 + fraction.count)
        }
        guard !whole.isEmpty || !fraction.isEmpty else { return false }
        guard let exponent = rest.first else { return true }
        guard exponent == "e" || exponent == "E" else { return false }
        rest = rest.dropFirst()
        if let sign = rest.first, sign == "+" || sign == "-" { rest = rest.dropFirst() }
        return isDigits(rest, isDecimal)
    }

    private static func isDecimal(_ character: Character) -> Bool {
        character.isASCII && character.isWholeNumber
    }

    private static func isDigits(
        _ text: Substring,
        _ isDigit: (Character) -> Bool
    ) -> Bool {
        !text.isEmpty && text.allSatisfy { $0.isASCII && isDigit($0) }
    }
}
