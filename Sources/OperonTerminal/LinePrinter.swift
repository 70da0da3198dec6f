package import OperonModel

/// The only type that controls a terminal. It keeps a block of status lines at the bottom of the
/// screen, overprints the block in place, and prints other lines above it. Where overprinting is
/// impossible it prints only the other lines. Every change of the screen is one write, so that no
/// line is torn.
///
/// The caller must not call it concurrently. It starts no tasks and has no clock.
package struct LinePrinter: Sendable {
    private let output: any TerminalOutput
    package let style: TerminalStyle
    private let interval: Duration
    /// How many lines of the block are on the screen.
    private var drawn = 0
    private var lastDraw: Timestamp?

    /// Ten times a second: people cannot read numbers that change faster.
    package static let defaultInterval = Duration.milliseconds(100)
    /// The size of a terminal that does not report one.
    private static let fallbackSize = TerminalSize(columns: 80, rows: 24)
    /// The most lines of the block. If there are more groups, the last line counts the rest.
    private static let blockLinesMax = 50

    package init(
        output: any TerminalOutput,
        style: TerminalStyle,
        interval: Duration = LinePrinter.defaultInterval
    ) {
        self.output = output
        self.style = style
        self.interval = interval
    }

    /// Whether a status block is drawn at all.
    package var overprints: Bool { style.overprints }

    /// Prints whole lines, above the status block if there is one. The lines may contain Operon's
    /// own colours, but untrusted text only after `TerminalText` has cleaned it. A line that is
    /// wider than the screen wraps: it is never overprinted.
    package mutating func print(_ lines: [String]) {
        guard !lines.isEmpty else { return }
        var text = eraseBlock()
        drawn = 0
        for line in lines { text += line + "\n" }
        output.write(Array(text.utf8))
        // The block is drawn again only at the next redraw, so that a burst of lines costs one
        // drawing.
        lastDraw = nil
    }

    /// Prints whole lines above a line that somebody completes, and its beginning again. What was
    /// typed of it stays typed, though it is not shown any more.
    package mutating func print(_ lines: [String], above prompt: String) {
        guard !lines.isEmpty else { return }
        let columns = (output.size() ?? LinePrinter.fallbackSize).columns
        // Of a prompt that wraps, only the last row could be erased.
        let fits = style.overprints && TerminalText.width(prompt) < columns
        let begin = fits ? Self.eraseLine : "\n"
        output.write(Array((begin + lines.map { $0 + "\n" }.joined() + prompt).utf8))
    }

    /// Prints the beginning of a line that somebody completes, in place of one that was printed
    /// again after they had ended the line.
    package func prompt(_ text: String) {
        output.write(Array(((style.overprints ? Self.eraseLine : "") + text).utf8))
    }

    /// Erases such a beginning that was printed again after they had ended the line.
    package func erasePrompt() { prompt("") }

    /// Ends a line that nobody completes.
    package func endLine() { output.write(Array("\n".utf8)) }

    private static let eraseLine = "\r\u{1B}[J"

    /// Whether enough time has passed since the last redraw.
    package func isDue(at now: Timestamp) -> Bool {
        guard style.overprints else { return false }
        guard let lastDraw else { return true }
        return now - lastDraw >= interval
    }

    /// Overprints the status block, if a redraw is due and the terminal accepts output. Only then
    /// `lines` is called, and returns lines of that width, one per group. The size is queried each
    /// time, so that a resized window is right at the next redraw.
    package mutating func redraw(at now: Timestamp, lines: (_ width: Int) -> [String]) {
        guard isDue(at: now), output.isWritable() else { return }
        draw(lines)
        lastDraw = now
    }

    /// Draws the block a last time, even if no redraw is due, and leaves it above the cursor.
    package mutating func finish(lines: (_ width: Int) -> [String]) {
        guard style.overprints else { return }
        draw(lines)
        drawn = 0
    }

    /// Removes the block from the screen.
    package mutating func clear() {
        guard drawn > 0 else { return }
        output.write(Array(eraseBlock().utf8))
        drawn = 0
        lastDraw = nil
    }

    private mutating func draw(_ lines: (_ width: Int) -> [String]) {
        let size = output.size() ?? LinePrinter.fallbackSize
        // One column is left free, because a full line makes some terminals wrap.
        let width = max(1, size.columns - 1)
        // One row is left for the cursor, because a block taller than the screen could not be
        // erased.
        let rows = max(1, min(size.rows - 1, LinePrinter.blockLinesMax))
        var shown = lines(width)
        if shown.count > rows {
            let more = shown.count - rows + 1
            shown = Array(shown.prefix(rows - 1))
            let note = style.spelled("… and \(more) more")
            shown.append(TerminalText.elided(note, to: width, mark: style.ellipsis))
        }
        var text = eraseBlock()
        for line in shown { text += line + "\n" }
        output.write(Array(text.utf8))
        drawn = shown.count
    }

    /// Moves up over the block and erases to the end of the screen; empty if there is no block.
    private func eraseBlock() -> String {
        drawn == 0 ? "" : "\u{1B}[\(drawn)A\r\u{1B}[J"
    }
}
