package import OperonModel

/// The only place that knows terminals. It keeps a block of status lines at the bottom of the
/// screen, overprints it in place, and prints other lines above it; where nothing can be
/// overprinted it prints those other lines alone. Every change of the screen is one write, so
/// nothing is torn.
///
/// Whoever owns it calls it from one place at a time; it starts nothing and keeps no time.
package struct LinePrinter: Sendable {
    private let output: any TerminalOutput
    package let style: TerminalStyle
    private let interval: Duration
    /// How many lines of the block are on the screen.
    private var drawn = 0
    private var lastDraw: Timestamp?

    /// Ten times a second: a faster number cannot be read.
    package static let defaultInterval = Duration.milliseconds(100)
    /// What a terminal has that does not say its size.
    private static let fallbackSize = TerminalSize(columns: 80, rows: 24)
    /// A draw takes the cursor up by this much at most; more groups than this are summed up.
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

    /// Prints whole lines: above the status block, or simply so. They may hold colours of ours but
    /// nothing untrusted that `TerminalText` has not seen. A line that is wider than the screen is
    /// left to wrap: it is not overprinted.
    package mutating func print(_ lines: [String]) {
        guard !lines.isEmpty else { return }
        var text = eraseBlock()
        drawn = 0
        for line in lines { text += line + "\n" }
        output.write(Array(text.utf8))
        // The block is not drawn again here, only at the next redraw: a burst of lines costs one.
        lastDraw = nil
    }

    /// Whether a redraw at this moment would be drawn: the last one is long enough ago.
    package func isDue(at now: Timestamp) -> Bool {
        guard style.overprints else { return false }
        guard let lastDraw else { return true }
        return now - lastDraw >= interval
    }

    /// Overprints the status block, if that is due and the terminal takes it; `lines` is asked for
    /// lines of that width, one per group, only then. The size is asked anew each time, so a
    /// resized window is right at the next redraw.
    package mutating func redraw(at now: Timestamp, lines: (_ width: Int) -> [String]) {
        guard isDue(at: now), output.isWritable() else { return }
        draw(lines)
        lastDraw = now
    }

    /// Draws the block a last time, whatever the time, and leaves it standing above the cursor.
    package mutating func finish(lines: (_ width: Int) -> [String]) {
        guard style.overprints else { return }
        draw(lines)
        drawn = 0
    }

    /// Takes the block off the screen.
    package mutating func clear() {
        guard drawn > 0 else { return }
        output.write(Array(eraseBlock().utf8))
        drawn = 0
        lastDraw = nil
    }

    private mutating func draw(_ lines: (_ width: Int) -> [String]) {
        let size = output.size() ?? LinePrinter.fallbackSize
        // One column less than there is: a full line makes some terminals wrap.
        let width = max(1, size.columns - 1)
        // One row stays for the cursor; a block taller than the screen could not be erased.
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

    /// Moves up over the block and erases to the end of the screen; nothing if there is no block.
    private func eraseBlock() -> String {
        drawn == 0 ? "" : "\u{1B}[\(drawn)A\r\u{1B}[J"
    }
}
