// The form of keys, tokens and sealed messages: fields of known sizes one after the other, numbers
// with the most significant byte first, texts and lists behind their sizes in two bytes.

/// Writes fields.
struct TrustWriter {
    private(set) var bytes: [UInt8] = []

    mutating func append(_ value: some FixedWidthInteger & UnsignedInteger) {
        for shift in stride(from: value.bitWidth - 8, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: value >> shift))
        }
    }

    mutating func append(_ other: [UInt8]) { bytes += other }

    /// - Parameter counted: At most 65,535 bytes.
    mutating func append(counted other: [UInt8]) {
        append(UInt16(other.count))
        bytes += other
    }

    /// - Parameter texts: At most 65,535 of as many bytes each.
    mutating func append(_ texts: [String]) {
        append(UInt16(texts.count))
        for text in texts { append(counted: Array(text.utf8)) }
    }
}

/// Reads fields of bytes that come from anybody. A field that is not there is `nil`.
struct TrustReader {
    private let bytes: [UInt8]
    private(set) var place: Int

    init(_ bytes: [UInt8], from place: Int = 0) {
        self.bytes = bytes
        self.place = place
    }

    var isAtEnd: Bool { place == bytes.count }

    mutating func number<Number: FixedWidthInteger & UnsignedInteger>(
        _ kind: Number.Type = Number.self
    ) -> Number? {
        guard let field = take(Number.bitWidth / 8) else { return nil }
        return field.reduce(0) { $0 << 8 | Number($1) }
    }

    mutating func take(_ count: Int) -> [UInt8]? {
        guard count >= 0, bytes.count - place >= count else { return nil }
        defer { place += count }
        return Array(bytes[place..<place + count])
    }

    mutating func takeCounted() -> [UInt8]? { number(UInt16.self).flatMap { take(Int($0)) } }

    /// Everything that is left.
    mutating func takeRest() -> [UInt8] {
        defer { place = bytes.count }
        return Array(bytes[place...])
    }

    mutating func texts(countMax: Int, bytesMax: Int) -> [String]? {
        guard let count = number(UInt16.self), Int(count) <= countMax else { return nil }
        var texts: [String] = []
        for _ in 0..<count {
            guard let bytes = takeCounted(), (1...bytesMax).contains(bytes.count),
                let text = String(validating: bytes, as: UTF8.self)
            else { return nil }
            texts.append(text)
        }
        return texts
    }
}

/// Hexadecimal digits, as files and people have keys.
enum Hex {
    static func text(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        let text = bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        return String(decoding: text, as: UTF8.self)
    }

    /// `nil` unless the text has exactly two digits for each of this many bytes.
    static func bytes(_ text: some StringProtocol, count: Int) -> [UInt8]? {
        let digits = text.utf8.compactMap { byte in
            Character(Unicode.Scalar(byte)).hexDigitValue.map(UInt8.init)
        }
        guard text.utf8.count == 2 * count, digits.count == 2 * count else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
}
