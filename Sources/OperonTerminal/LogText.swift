package import OperonModel

/// Prints logs of operations: of one, or of several with the name in front of each line.
package struct LogText: Sendable {
    private let style: TerminalStyle
    private let isTerminal: Bool
    private let isPrefixed: Bool
    /// The lines that have begun, by operation; only with prefixes.
    private var begun: [OperationName: Line] = [:]
    /// The state of a terminal that shows one log.
    private var sequence = EscapeSequence.none
    /// Whether the last line printed has no end yet; only without prefixes.
    package private(set) var isMidLine = false

    private struct Line {
        var number: UInt32
        var bytes: [UInt8] = []
    }

    /// A line that is longer is printed in parts.
    private static let lineBytesMax = 64 << 10

    /// - Parameters:
    ///   - isTerminal: Whether control characters are removed or escaped.
    ///   - isPrefixed: Whether each line begins with the name of its operation.
    package init(style: TerminalStyle, isTerminal: Bool, isPrefixed: Bool) {
        self.style = style
        self.isTerminal = isTerminal
        self.isPrefixed = isPrefixed
    }

    /// What to print for a part of a log. With prefixes, a gap has a line; without them, the caller
    /// says it.
    package mutating func text(of log: LogView) -> [UInt8] {
        guard isPrefixed else { return plain(log.bytes) }
        var line = begun.removeValue(forKey: log.operation) ?? Line(number: log.number)
        var text: [UInt8] = []
        if log.missedBytes > 0 || line.number != log.number, !line.bytes.isEmpty {
            text += prefixed(line, of: log.operation)
            line.bytes = []
        }
        line.number = log.number
        if log.missedBytes > 0 {
            let gap = KeptLog.gap(log.missedBytes).dropLast()
            text += prefixed(Line(number: log.number, bytes: Array(gap.utf8)), of: log.operation)
        }
        for part in log.bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            .enumerated()
        {
            if part.offset > 0 {
                text += prefixed(line, of: log.operation)
                line.bytes = []
            }
            line.bytes += part.element
        }
        if line.bytes.count > Self.lineBytesMax {
            text += prefixed(line, of: log.operation)
            line.bytes = []
        }
        if !line.bytes.isEmpty { begun[log.operation] = line }
        return text
    }

    /// The line of an operation that has begun and has no end.
    package mutating func end(of operation: OperationName) -> [UInt8] {
        begun.removeValue(forKey: operation).map { prefixed($0, of: operation) } ?? []
    }

    /// The line above the whole output of an attempt.
    package static func heading(
        _ operation: OperationName,
        attempt: UInt32,
        _ style: TerminalStyle
    ) -> String {
        let name = TerminalText.line(operation.name)
        let text = attempt > 1 ? "\(name) (attempt \(attempt)):" : "\(name):"
        return style.tinted(style.spelled(text), .strong)
    }

    /// The lines that have begun and have no end.
    package mutating func end() -> [UInt8] {
        guard isPrefixed else { return isTerminal && isMidLine ? [UInt8(ascii: "\n")] : [] }
        let left = begun.sorted { ($0.key.graph, $0.key.index) < ($1.key.graph, $1.key.index) }
        begun = [:]
        return left.flatMap { prefixed($1, of: $0) }
    }

    private mutating func plain(_ bytes: [UInt8]) -> [UInt8] {
        guard let last = bytes.last else { return [] }
        isMidLine = last != UInt8(ascii: "\n")
        guard isTerminal else { return bytes }
        var text = ""
        for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars {
            if sequence.swallows(scalar) { continue }
            // A carriage return overprints only the line of the same log.
            if scalar == "\n" || scalar == "\r" || scalar == "\t" {
                text.unicodeScalars.append(scalar)
            } else {
                text += TerminalText.line(String(scalar))
            }
        }
        return Array(style.spelled(text).utf8)
    }

    private func prefixed(_ line: Line, of operation: OperationName) -> [UInt8] {
        let attempt = line.number > 1 ? " (attempt \(line.number))" : ""
        let name = TerminalText.line(operation.name) + attempt
        let prefix = style.labelled(style.spelled(name), by: operation.index) + " | "
        guard isTerminal else { return Array(prefix.utf8) + line.bytes + [UInt8(ascii: "\n")] }
        // A line that carriage returns overprinted shows its final text.
        let shown = line.bytes.split(separator: UInt8(ascii: "\r")).last ?? []
        let text = TerminalText.line(String(decoding: shown, as: UTF8.self))
        return Array((prefix + style.spelled(text) + "\n").utf8)
    }
}
