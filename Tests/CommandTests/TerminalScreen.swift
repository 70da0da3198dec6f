/// What a terminal of this many columns shows after a stream of characters: enough of one for what
/// our programs may send to it. Anything else is noted in `unknown`.
struct TerminalScreen {
    private(set) var rows: [[Character]] = [[]]
    private(set) var unknown: [String] = []
    /// How often something was coloured.
    private(set) var colors = 0
    /// How often the cursor went up.
    private(set) var redraws = 0
    private var row = 0
    private var column = 0
    private let columns: Int

    init(columns: Int, _ text: String) {
        self.columns = columns
        var rest = Array(text.unicodeScalars)[...]
        while let scalar = rest.popFirst() {
            switch scalar {
            case "\u{1B}": escape(&rest)
            case "\r": column = 0
            case "\n": lineFeed()
            default: put(Character(scalar))
            }
        }
    }

    /// The rows, without what is empty at their ends.
    var lines: [String] {
        let lines = rows.map { row in
            String(row.reversed().drop { $0 == " " }.reversed())
        }
        return Array(lines.reversed().drop { $0.isEmpty }.reversed())
    }

    private mutating func lineFeed() {
        row += 1
        if row == rows.count { rows.append([]) }
    }

    private mutating func put(_ character: Character) {
        if column == columns {
            column = 0
            lineFeed()
        }
        while rows[row].count <= column { rows[row].append(" ") }
        rows[row][column] = character
        column += 1
    }

    private mutating func escape(_ rest: inout ArraySlice<Unicode.Scalar>) {
        var sequence = ""
        guard rest.popFirst() == "[" else {
            unknown.append("no sequence")
            return
        }
        while let scalar = rest.popFirst() {
            sequence.unicodeScalars.append(scalar)
            if scalar.properties.isAlphabetic { break }
        }
        switch sequence.last {
        case "m": colors += 1
        case "A":
            redraws += 1
            row = max(0, row - (Int(sequence.dropLast()) ?? 1))
        case "J":
            rows[row] = Array(rows[row].prefix(column))
            rows.removeSubrange((row + 1)...)
        default: unknown.append(sequence)
        }
    }
}
