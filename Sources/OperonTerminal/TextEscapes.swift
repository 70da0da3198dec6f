/// Escapes text for formats with their own quoting rules.
enum TextEscapes {
    /// A DOT quoted string (https://graphviz.org/doc/info/lang.html): only `"` and `\` have a
    /// meaning in a label, `\` as the start of an escape such as `
    /// ` or `\N`.
    static func dot(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            default: result.unicodeScalars.append(visible(scalar))
            }
        }
        return result + "\""
    }

    /// A Mermaid label in quotation marks. Mermaid accepts characters by number, such as `#35;`
    /// (https://mermaid.js.org/syntax/flowchart.html, entity codes). This is needed for every
    /// character that Mermaid, or the Markdown and HTML in it, could interpret.
    static func mermaid(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            let safe = scalar.properties.isAlphabetic || scalar.properties.numericType != nil
            if safe || " .,:/+=-".unicodeScalars.contains(scalar) {
                result.unicodeScalars.append(scalar)
            } else {
                result += "#\(visible(scalar).value);"
            }
        }
        return result + "\""
    }

    /// Replaces control characters by their pictures (U+2400…), because neither format can show
    /// them.
    private static func visible(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        switch scalar.value {
        case 0..<0x20: Unicode.Scalar(0x2400 + scalar.value) ?? scalar
        case 0x7F: "\u{2421}"
        case 0x80..<0xA0: "\u{FFFD}"
        default: scalar
        }
    }
}
