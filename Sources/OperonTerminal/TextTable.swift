/// Rows under titles, in columns that are as wide as their contents.
///
/// If there is a width, flexible columns are shortened in the middle, down to a readable minimum;
/// then whole columns are left out, least important first. Without a width (a pipe) nothing is
/// shortened or left out, because a program must not get half a name.
struct TextTable {
    struct Column {
        let title: String
        var isRight = false
        /// Whether the column may be shortened.
        var isFlexible = false
        /// Other columns are left out before this one is shortened further than to this width.
        var preferred = TextTable.flexibleMin
        /// The column with the smallest value is left out first; `Int.max`: never left out.
        var importance = Int.max
    }

    struct Cell {
        var text: String
        let tint: Tint?

        init(_ text: String, _ tint: Tint? = nil) {
            self.text = text
            self.tint = tint
        }
    }

    private let columns: [Column]
    private var rows: [[Cell]] = []

    /// The minimum width of a shortened column.
    fileprivate static let flexibleMin = 10
    private static let gap = 2

    init(_ columns: [Column]) { self.columns = columns }

    /// Adds a row with one cell per column; the texts are safe to print.
    mutating func add(_ cells: [Cell]) {
        precondition(cells.count == columns.count, "a row has a cell for each column")
        rows.append(cells)
    }

    /// The titles and the rows. Empty columns are left out.
    func lines(style: TerminalStyle, width: Int?) -> [String] {
        var widths = columns.map { TerminalText.width($0.title) }
        var isEmpty = columns.map { _ in true }
        for row in rows {
            for (index, cell) in row.enumerated() where !cell.text.isEmpty {
                widths[index] = max(widths[index], TerminalText.width(cell.text))
                isEmpty[index] = false
            }
        }
        var shown = columns.indices.filter { !isEmpty[$0] || columns[$0].importance == .max }
        if let width { fit(&shown, &widths, into: width) }
        let titles = columns.map { Cell($0.title, .faint) }
        return ([titles] + rows).map { line($0, shown, widths, style) }
    }

    private func fit(_ shown: inout [Int], _ widths: inout [Int], into width: Int) {
        func excess() -> Int {
            shown.reduce(-Self.gap) { $0 + widths[$1] + Self.gap } - width
        }
        func least(_ index: Int) -> Int {
            columns[index].isFlexible ? min(widths[index], Self.flexibleMin) : widths[index]
        }
        func preferredTotal() -> Int {
            shown.reduce(-Self.gap) { sum, index in
                sum + max(least(index), min(widths[index], columns[index].preferred)) + Self.gap
            }
        }
        while preferredTotal() > width,
            let worst = shown.filter({ columns[$0].importance < .max })
                .min(by: { columns[$0].importance < columns[$1].importance })
        {
            shown.removeAll { $0 == worst }
        }
        // What is wider than it need be is shortened first, and the widest of that, so that short
        // names stay whole.
        func shorten(to bound: (Int) -> Int) {
            while excess() > 0,
                let widest = shown.filter({ widths[$0] > max(least($0), bound($0)) }).max(by: {
                    widths[$0] < widths[$1]
                })
            {
                widths[widest] -= 1
            }
        }
        shorten { columns[$0].preferred }
        shorten { _ in 0 }
    }

    private func line(
        _ cells: [Cell],
        _ shown: [Int],
        _ widths: [Int],
        _ style: TerminalStyle
    ) -> String {
        var line = ""
        for (place, index) in shown.enumerated() {
            let cell = cells[index]
            let text = TerminalText.elided(cell.text, to: widths[index], mark: style.ellipsis)
            let space = String(
                repeating: " ",
                count: max(0, widths[index] - TerminalText.width(text))
            )
            let tinted = cell.tint.map { style.tinted(text, $0) } ?? text
            if place > 0 { line += String(repeating: " ", count: Self.gap) }
            let isLast = place == shown.count - 1
            line += columns[index].isRight ? space + tinted : tinted + (isLast ? "" : space)
        }
        while line.last == " " { line.removeLast() }
        return line
    }
}
