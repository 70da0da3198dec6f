import OperonModel
import OperonTerminal
import Testing

/// Seconds after the start.
func at(_ seconds: Double) -> Timestamp { Timestamp(nanoseconds: Int64(seconds * 1e9)) }

let unicode = TerminalStyle(overprints: true, hasColor: false, hasUnicode: true)
let colored = TerminalStyle(overprints: true, hasColor: true, hasUnicode: true)
let ascii = TerminalStyle(overprints: true, hasColor: false, hasUnicode: false)

/// Forty operations of equal work: some done, some running, after twelve seconds.
func halfway(name: String = "wordcount") -> ProgressGroup {
    var model = ProgressModel(startedAt: at(0))
    let group = model.addGroup(name: name)
    model.operationsAdded(40, to: group, work: 40)
    func move(_ count: Int, _ path: ProgressPhase..., at seconds: Double) {
        for _ in 0..<count {
            for (old, new) in zip(path, path.dropFirst()) {
                model.operationMoved(in: group, from: old, to: new, work: 1, at: at(seconds))
            }
        }
    }
    move(30, .pending, .ready, at: 0)
    move(22, .ready, .executing, at: 2)
    move(9, .executing, .succeeded, at: 8)
    move(1, .executing, .failed, at: 9)
    move(2, .pending, .skipped, at: 9)
    return model.groups[group]
}

/// Keeps what was written, and what a terminal would show of it.
///
/// Unchecked because a test uses it from one task at a time, as a printer does.
final class ScreenOutput: TerminalOutput, @unchecked Sendable {
    var reportedSize: TerminalSize?
    var takesWrites = true
    private(set) var writes: [String] = []

    init(columns: Int = 80, rows: Int = 24) {
        reportedSize = TerminalSize(columns: columns, rows: rows)
    }

    func size() -> TerminalSize? { reportedSize }
    func isWritable() -> Bool { takesWrites }
    func write(_ bytes: [UInt8]) { writes.append(String(decoding: bytes, as: UTF8.self)) }

    /// The lines on the screen and above it, after replaying every write: knows line ends,
    /// `ESC [ n A`, carriage return and `ESC [ J`, and refuses anything else.
    func screen() throws -> [String] {
        var lines = [""]
        var row = 0
        var text = Substring(writes.joined())
        while let character = text.popFirst() {
            switch character {
            case "\n":
                row += 1
                if row == lines.count { lines.append("") }
            case "\r": break
            case "\u{1B}":
                let end = try #require(text.firstIndex { $0.isLetter })
                let sequence = text[...end]
                text = text[text.index(after: end)...]
                if sequence == "[J" {
                    lines.removeSubrange((row + 1)...)
                    lines[row] = ""
                } else {
                    try #require(sequence.last == "A")
                    row -= try #require(Int(sequence.dropFirst().dropLast()))
                }
            default: lines[row].append(character)
            }
        }
        return lines.last == "" ? lines.dropLast() : lines
    }
}
