import OperonModel

/// Writes values as compact JSON: equal values give equal text, whatever file they came from.
enum JSONText {
    /// Appends a value with its keys in order; stops early once `out` is longer than `bytesMax`.
    /// - Returns: the first value that JSON cannot represent (`.nan`, `.inf`), if there is one.
    static func append(_ node: Node, to out: inout [UInt8], bytesMax: Int) -> Node? {
        guard out.count <= bytesMax else { return nil }
        switch node.value {
        case .null: out += "null".utf8
        case .bool: out += (node.bool == true ? "true" : "false").utf8
        case .number(let text):
            guard let number = number(text) else { return node }
            out += number.utf8
        case .string(let text): JSONString.append(text, to: &out)
        case .sequence(let elements):
            out.append(Byte.openBracket)
            for (index, element) in elements.enumerated() {
                if index > 0 { out.append(Byte.comma) }
                if let wrong = append(element, to: &out, bytesMax: bytesMax) { return wrong }
            }
            out.append(Byte.closeBracket)
        case .mapping(let entries):
            out.append(Byte.openBrace)
            for (index, entry) in entries.enumerated() {
                if index > 0 { out.append(Byte.comma) }
                JSONString.append(entry.key, to: &out)
                out.append(Byte.colon)
                if let wrong = append(entry.value, to: &out, bytesMax: bytesMax) { return wrong }
            }
            out.append(Byte.closeBrace)
        }
        return nil
    }

    static func string(_ text: String) -> String {
        String(decoding: JSONString.quoted(text), as: UTF8.self)
    }

    /// A number in JSON syntax. If it is JSON already, it stays unchanged, so that no digit is
    /// lost. `nil` for infinities and texts that are not numbers.
    static func number(_ text: String) -> String? {
        if text.hasPrefix("0x") {
            return UInt64(text.dropFirst(2), radix: 16).map(String.init)
        }
        if text.hasPrefix("0o") {
            return UInt64(text.dropFirst(2), radix: 8).map(String.init)
        }
        var rest = Substring(text)
        var sign = ""
        if rest.first == "+" || rest.first == "-" {
            sign = rest.removeFirst() == "-" ? "-" : ""
        }
        guard let first = rest.first, first.isWholeNumber || first == "." else { return nil }
        let mantissa = rest.prefix { $0 != "e" && $0 != "E" }
        let exponent = rest.dropFirst(mantissa.count)
        let parts = mantissa.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count <= 2, parts.joined().allSatisfy(\.isWholeNumber) else { return nil }
        let whole = String(parts[0].drop { $0 == "0" })
        let fraction = parts.count == 2 && !parts[1].isEmpty ? "." + parts[1] : ""
        return sign + (whole.isEmpty ? "0" : whole) + fraction + exponent
    }
}
