import OperonModel

/// Values that do not fit in a number, as text that people can read. Bars separate the fields; a
/// bar within a field has a backslash before it.
enum RowText {
    /// The detail of the outcome of an operation whose files were up to date.
    static let upToDate = "up to date"

    static func text(_ error: OperationError) -> String {
        var fields = [error.code]
        switch error {
        case .kindUnknown(let text), .undecodable(let text), .versionUnsupported(let text),
            .signal(let text), .conditionFailed(let text):
            fields.append(text)
        case .thrown(let type, let message, let payload):
            fields += [type, message, hexadecimal(payload)]
        case .exit(let code): fields.append(String(code))
        case .timeout, .deadline, .workerLost: break
        case .inputTooLarge(let bytes, let limit), .outputTooLarge(let bytes, let limit):
            fields += [String(bytes), String(limit)]
        }
        return join(fields)
    }

    /// - Throws: `RowDamage` for any text that `text` does not write.
    static func error(_ text: String?) throws(RowDamage) -> OperationError {
        let fields = split(text ?? "")
        switch (fields[0], fields.count) {
        case ("kindUnknown", 2): return .kindUnknown(fields[1])
        case ("thrown", 4):
            let payload = try bytes(fields[3])
            return .thrown(type: fields[1], message: fields[2], payload: payload)
        case ("exit", 2): return .exit(code: try number(fields[1]))
        case ("signal", 2): return .signal(name: fields[1])
        case ("timeout", 1): return .timeout
        case ("deadline", 1): return .deadline
        case ("workerLost", 1): return .workerLost
        case ("inputTooLarge", 3):
            return .inputTooLarge(bytes: try number(fields[1]), limit: try number(fields[2]))
        case ("outputTooLarge", 3):
            return .outputTooLarge(bytes: try number(fields[1]), limit: try number(fields[2]))
        case ("undecodable", 2): return .undecodable(fields[1])
        case ("versionUnsupported", 2): return .versionUnsupported(fields[1])
        case ("conditionFailed", 2): return .conditionFailed(name: fields[1])
        case _: throw RowDamage(what: "an error that there is not")
        }
    }

    static func text(_ graphs: [GraphID]) -> String {
        graphs.map(\.description).joined(separator: " ")
    }

    static func graphs(_ text: String) throws(RowDamage) -> [GraphID] {
        var graphs: [GraphID] = []
        for word in text.split(separator: " ") {
            graphs.append(GraphID(rawValue: try number(String(word))))
        }
        return graphs
    }

    static func number<Number: FixedWidthInteger>(_ text: String) throws(RowDamage) -> Number {
        guard let number = Number(text) else { throw RowDamage(what: "a text that is no number") }
        return number
    }

    // MARK: - Fields

    private static func join(_ fields: [String]) -> String {
        var text = ""
        for (place, field) in fields.enumerated() {
            if place > 0 { text.unicodeScalars.append("|") }
            for scalar in field.unicodeScalars {
                if scalar == "|" || scalar == "\\" { text.unicodeScalars.append("\\") }
                text.unicodeScalars.append(scalar)
            }
        }
        return text
    }

    private static func split(_ text: String) -> [String] {
        var fields = [""]
        var isEscaped = false
        for scalar in text.unicodeScalars {
            if !isEscaped, scalar == "\\" {
                isEscaped = true
            } else if !isEscaped, scalar == "|" {
                fields.append("")
            } else {
                isEscaped = false
                fields[fields.count - 1].unicodeScalars.append(scalar)
            }
        }
        return fields
    }

    private static func hexadecimal(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count * 2)
        for byte in bytes { text += [digits[Int(byte >> 4)], digits[Int(byte & 15)]] }
        return String(decoding: text, as: UTF8.self)
    }

    private static func bytes(_ text: String) throws(RowDamage) -> [UInt8] {
        let digits = text.utf8.map { digit -> UInt8? in
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
            case _: nil
            }
        }
        guard digits.count.isMultiple(of: 2) else { throw RowDamage(what: "half a byte") }
        var bytes: [UInt8] = []
        for place in stride(from: 0, to: digits.count, by: 2) {
            guard let high = digits[place], let low = digits[place + 1] else {
                throw RowDamage(what: "a text that is no bytes")
            }
            bytes.append(high << 4 | low)
        }
        return bytes
    }
}
