import OperonCore

/// Numbers, names and bytes at the edges of what can be sent, drawn from a seed.
package struct HostileValues: Sendable {
    private var generator: SeededGenerator
    /// Numbers that mean something to the receiver. They are drawn too, and so are their
    /// neighbours.
    package var knownNumbers: [UInt64] = []
    /// Names of things that exist.
    package var knownNames: [String] = []
    /// Of a hundred fields that have a correct value, this many get another one.
    package var wrongPercent = 10

    package init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    // MARK: - Choices

    package mutating func below(_ bound: Int) -> Int {
        Int.random(in: 0..<bound, using: &generator)
    }

    package mutating func isIn(_ percent: Int) -> Bool { below(100) < percent }

    /// Once in this many draws.
    package mutating func isRare(_ oneIn: Int) -> Bool { below(oneIn) == 0 }

    package mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[below(elements.count)]
    }

    // MARK: - Numbers

    /// Edges of integer types, of varints, and of limits that receivers have, with one over.
    private static let edges: [UInt64] = [
        0, 1, 2, 3, 8, 127, 128, 255, 256, 257, 1_000, 1_001, 4_096, 4_097, 10_000, 10_001,
        32_767, 32_768, 65_535, 65_536, 262_144, 262_145, 1_000_000, 1_000_001,
        1 << 20, (1 << 20) + 1, 1 << 30, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, 4_000_000_000,
        (1 << 32) - 2, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, 1 << 53, (1 << 53) + 1,
        (1 << 62) - 1, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, .max - 1, .max,
    ]

    package mutating func number() -> UInt64 {
        if !knownNumbers.isEmpty, isIn(30) {
            let known = pick(knownNumbers)
            return pick([known, known &+ 1, known &- 1])
        }
        return isIn(10) ? generator.next() : pick(Self.edges)
    }

    /// The correct one mostly.
    package mutating func number(or right: UInt64) -> UInt64 {
        guard isIn(wrongPercent) else { return right }
        return isIn(40) ? pick([right &+ 1, right &- 1]) : number()
    }

    package mutating func signed() -> Int64 {
        let number = Int64(bitPattern: number())
        return isIn(30) ? 0 &- number : number
    }

    package mutating func signed(or right: Int64) -> Int64 {
        isIn(wrongPercent) ? signed() : right
    }

    package mutating func flag() -> Bool { below(2) == 0 }

    package mutating func real() -> Double {
        pick([
            0, -0.0, 1, -1, 0.5, 1.000_000_1, 1e308, -1e308, .infinity, -.infinity, .nan,
            .leastNonzeroMagnitude, .greatestFiniteMagnitude, 9.3e18,
        ])
    }

    /// As JSON and addresses write numbers, those that are none included.
    package mutating func numberText() -> String {
        switch below(6) {
        case 0:
            pick([
                "-1", "-0", "1e999", "1e-999", "1.5", "0.1e1", "NaN", "Infinity", "0x10", "+1",
                "18446744073709551616", "-9223372036854775809", "1 ", "", "٣",
                String(repeating: "9", count: 400),
            ])
        case 1: "\(signed())"
        default: "\(number())"
        }
    }

    // MARK: - Texts and bytes

    private static let texts = [
        "", " ", "a", "default", "o0-0", "0", "-1", "@latest", "@0", "0/0", "0/o0-0",
        "4000000000/0", "4000000000/4000000000", "18446744073709551616/1", "1/-1", "/", "//", "a/b",
        "..", "../../../etc/passwd", "%00", "%2e%2e", "x\u{0}y", "\n", "\r\nX: y", "\t", "\u{7F}",
        "\u{1B}]0;title\u{7}", "\u{1B}[2J", "\u{9B}31m", "\u{202E}txt.exe", "\u{2066}a\u{2069}",
        "\u{FEFF}", "größe-→-🧵", "e\u{301}", "null", "true", "NaN", "{}", "[]", "\"", "\\", "'",
        "$(reboot)", "`id`", "; drop table graphs", "__proto__", "operon.coordinator",
        String(repeating: "n", count: 255), String(repeating: "n", count: 256),
        String(repeating: "n", count: 257), String(repeating: "🧵", count: 64),
        String(repeating: "🧵", count: 65),
    ]

    package mutating func text() -> String {
        if !knownNames.isEmpty, isIn(30) { return pick(knownNames) }
        if isRare(100) { return String(repeating: "t", count: pick([4_096, 65_536, 70_000])) }
        return pick(Self.texts)
    }

    package mutating func text(or right: String) -> String {
        isIn(wrongPercent) ? text() : right
    }

    /// Mostly few, seldom as many as a limit allows or one over it.
    package mutating func byteCount() -> Int {
        if isRare(200) { return pick([262_144, 262_145, (1 << 20) - 1, 1 << 20, (1 << 20) + 1]) }
        return pick([0, 0, 1, 2, 127, 128, 300, 1_024, 4_096, 65_535, 65_536, 65_537])
    }

    package mutating func bytes(_ count: Int? = nil) -> [UInt8] {
        let count = count ?? byteCount()
        switch below(4) {
        case 0: return [UInt8](repeating: UInt8(truncatingIfNeeded: below(256)), count: count)
        case 1: return Array("\"\(String(repeating: "x", count: max(0, count - 2)))\"".utf8)
        default:
            // What is long repeats itself: drawing is to take less time than receiving.
            var bytes: [UInt8] = []
            while bytes.count < min(count, 1_024) {
                let word = generator.next()
                for byte in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: word >> (8 * byte))) }
            }
            return Array(Self.repeated(bytes, count / max(1, bytes.count) + 1).prefix(count))
        }
    }

    // MARK: - Damage

    /// The same bytes with a few of them changed, missing, added or repeated; or cut off.
    package mutating func damaged(_ whole: [UInt8]) -> [UInt8] {
        var bytes = whole
        for _ in 0...below(4) {
            guard !bytes.isEmpty else { return bytes }
            let place = below(bytes.count)
            switch below(6) {
            case 0: bytes[place] ^= 1 << UInt8(below(8))
            case 1: bytes[place] = UInt8(below(256))
            case 2: bytes.remove(at: place)
            case 3: bytes.insert(UInt8(below(256)), at: place)
            case 4:
                let end = min(bytes.count, place + 1 + below(16))
                bytes.insert(contentsOf: bytes[place..<end], at: place)
            default: bytes.removeLast(bytes.count - place)
            }
        }
        return bytes
    }

    /// A field that no version has, as a group that begins again and again and never ends.
    package static func deepGroups(_ depth: Int) -> [UInt8] {
        repeated([0xA3, 0x06], depth)
    }

    /// The same bytes so many times.
    package static func repeated(_ bytes: [UInt8], _ times: Int) -> [UInt8] {
        var all = bytes
        while all.count < bytes.count * times { all += all }
        return Array(all.prefix(bytes.count * times))
    }
}
