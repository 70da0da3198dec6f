/// Checks JSON (RFC 8259) without building a value from it: an output may be large, and
/// Operon only transports it.
package struct JSONCheck {
    /// The deepest nesting of arrays and objects. Readers of `OPERON_INPUTS` find an output one
    /// level deeper; Foundation's parser refuses more than 512 levels.
    static let depthMax = 256

    /// Why some bytes are not one JSON value.
    package struct Malformed: Error, Hashable, CustomStringConvertible {
        let offset: Int
        let expected: String

        package var description: String { "at byte \(offset), \(expected) was expected" }
    }

    private let bytes: [UInt8]
    private var index = 0
    /// The open brackets, outermost first.
    private var open: [UInt8] = []

    private init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Whether `bytes` are exactly one JSON value in UTF-8.
    package static func isJSON(_ bytes: [UInt8]) -> Bool {
        do throws(Malformed) {
            try check(bytes)
            return true
        } catch {
            return false
        }
    }

    /// Throws unless `bytes` are exactly one JSON value in UTF-8, optionally surrounded by white
    /// space.
    package static func check(_ bytes: [UInt8]) throws(Malformed) {
        var text = JSONCheck(bytes)
        try text.document()
        guard String(validating: bytes, as: UTF8.self) != nil else {
            throw Malformed(offset: firstBeyondUTF8(bytes), expected: "UTF-8")
        }
    }

    private static func firstBeyondUTF8(_ bytes: [UInt8]) -> Int {
        var decoder = UTF8()
        var iterator = CountingIterator(bytes: bytes)
        while case .scalarValue = decoder.decode(&iterator) { continue }
        return max(0, iterator.index - 1)
    }

    private struct CountingIterator: IteratorProtocol {
        let bytes: [UInt8]
        var index = 0

        mutating func next() -> UInt8? {
            guard index < bytes.count else { return nil }
            defer { index += 1 }
            return bytes[index]
        }
    }
}

// MARK: - The grammar

extension JSONCheck {
    private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

    private func expected(_ what: String) -> Malformed {
        Malformed(offset: index, expected: what)
    }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 {
            index += 1
        }
    }

    private mutating func skip(_ character: Unicode.Scalar) -> Bool {
        guard next == UInt8(ascii: character) else { return false }
        index += 1
        return true
    }

    private mutating func document() throws(Malformed) {
        repeat { try value() } while try continues()
    }

    /// Parses a scalar, an empty array or object, or the beginning of one, up to its first value.
    private mutating func value() throws(Malformed) {
        while true {
            skipSpace()
            guard let byte = next else { throw expected("a value") }
            switch byte {
            case UInt8(ascii: "{"):
                try opens(byte)
                if skip("}") { return closes() }
                try key()
            case UInt8(ascii: "["):
                try opens(byte)
                if skip("]") { return closes() }
            case UInt8(ascii: "\""): return try string()
            case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
            default: return try literal()
            }
        }
    }

    /// Closes the arrays and objects that end here. Returns whether another value follows.
    private mutating func continues() throws(Malformed) -> Bool {
        while true {
            skipSpace()
            guard let bracket = open.last else {
                guard index == bytes.count else { throw expected("the end") }
                return false
            }
            let isObject = bracket == UInt8(ascii: "{")
            if skip(",") {
                if isObject {
                    skipSpace()
                    try key()
                }
                return true
            }
            guard skip(isObject ? "}" : "]") else {
                throw expected(isObject ? "“,” or “}”" : "“,” or “]”")
            }
            closes()
        }
    }

    private mutating func opens(_ bracket: UInt8) throws(Malformed) {
        guard open.count < JSONCheck.depthMax else {
            throw expected("an end to \(JSONCheck.depthMax) levels of nesting")
        }
        open.append(bracket)
        index += 1
        skipSpace()
    }

    private mutating func closes() { open.removeLast() }

    private mutating func key() throws(Malformed) {
        guard next == UInt8(ascii: "\"") else { throw expected("a name in quotes") }
        try string()
        skipSpace()
        guard skip(":") else { throw expected("“:”") }
    }

    private mutating func string() throws(Malformed) {
        index += 1
        while true {
            index = endOfText
            guard let byte = next else { throw expected("the end of a string") }
            switch byte {
            case UInt8(ascii: "\""):
                index += 1
                return
            case UInt8(ascii: "\\"):
                index += 1
                try escape()
            default: throw expected("no control character in a string")
            }
        }
    }

    /// The first place from `index` on with a quote, a backslash or a control character. Nearly all
    /// bytes of a large output are passed here.
    private var endOfText: Int {
        let (quote, backslash) = (UInt8(ascii: "\""), UInt8(ascii: "\\"))
        return unsafe bytes.withUnsafeBufferPointer { bytes in
            var place = index
            while place < bytes.count {
                let byte = unsafe bytes[place]
                if byte < 0x20 || byte == quote || byte == backslash { break }
                place += 1
            }
            return place
        }
    }

    private mutating func escape() throws(Malformed) {
        guard let byte = next else { throw expected("an escape") }
        if "\"\\/bfnrt".utf8.contains(byte) {
            index += 1
            return
        }
        guard skip("u") else { throw expected("an escape") }
        for _ in 0..<4 {
            guard let digit = next, Character(Unicode.Scalar(digit)).isHexDigit, digit < 0x80 else {
                throw expected("four hexadecimal digits")
            }
            index += 1
        }
    }

    private mutating func number() throws(Malformed) {
        _ = skip("-")
        if !skip("0") { try digits() }
        if skip(".") { try digits() }
        if skip("e") || skip("E") {
            if !skip("+") { _ = skip("-") }
            try digits()
        }
    }

    private mutating func digits() throws(Malformed) {
        let start = index
        while let byte = next, byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") { index += 1 }
        guard index > start else { throw expected("a digit") }
    }

    private mutating func literal() throws(Malformed) {
        for word in ["true", "false", "null"] where bytes[index...].starts(with: word.utf8) {
            index += word.utf8.count
            return
        }
        throw expected("a value")
    }
}
