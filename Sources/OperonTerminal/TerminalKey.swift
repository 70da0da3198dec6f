/// A key of a terminal.
package enum TerminalKey: Hashable, Sendable {
    case up
    case down
    case left
    case right
    case pageUp
    case pageDown
    case enter
    case escape
    case character(Character)

    /// The keys in a piece of input, which has whole keys: a terminal sends a key at once. Unknown
    /// keys are left out.
    package static func keys(in bytes: [UInt8]) -> [TerminalKey] {
        var keys: [TerminalKey] = []
        var rest = String(decoding: bytes, as: UTF8.self).unicodeScalars[...]
        while let scalar = rest.popFirst() {
            switch scalar {
            case "\r", "\n": keys.append(.enter)
            case "\u{1B}":
                guard let second = rest.first, second == "[" || second == "O" else {
                    keys.append(.escape)
                    continue
                }
                rest.removeFirst()
                if let key = sequence(&rest) { keys.append(key) }
            case let other where other.value >= 0x20 && other.value != 0x7F:
                keys.append(.character(Character(other)))
            default: continue
            }
        }
        return keys
    }

    /// The rest of a sequence after `ESC [` or `ESC O` (ECMA-48, 5.4: it ends with @ to ~).
    private static func sequence(_ rest: inout Substring.UnicodeScalarView) -> TerminalKey? {
        var parameters = ""
        while let scalar = rest.popFirst() {
            guard !(0x40...0x7E).contains(scalar.value) else {
                switch (scalar, parameters) {
                case ("A", _): return .up
                case ("B", _): return .down
                case ("C", _): return .right
                case ("D", _): return .left
                case ("~", "5"): return .pageUp
                case ("~", "6"): return .pageDown
                default: return nil
                }
            }
            parameters.unicodeScalars.append(scalar)
        }
        return nil
    }
}
