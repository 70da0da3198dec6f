import FoundationEssentials
import Operon

/// What is drawn, and how it is cut into tiles.
struct Picture {
    /// The middle of the picture, and how far apart its pixels are.
    var real: Double
    var imaginary: Double
    var step: Double
    /// Tiles in a row and in a column; pixels of a tile.
    var columns: Int
    var rows: Int
    var tileWidth: Int
    var tileHeight: Int
    var iterations: Int
    var file: String

    /// Between the heart and its largest bulb.
    static let seahorses = Picture(
        real: -0.7453,
        imaginary: 0.1127,
        step: 0.0065 / 800,
        columns: 8,
        rows: 8,
        tileWidth: 100,
        tileHeight: 70,
        iterations: 4_000,
        file: "mandelbrot.png"
    )

    /// The graph as JSON Lines: the tiles, and what puts them together.
    var graph: [String] {
        var lines: [any Encodable] = [Header(name: "mandelbrot")]
        var names: [[String]] = []
        for row in 0..<rows {
            names.append((0..<columns).map { "tile-\(row)-\($0)" })
            for column in 0..<columns {
                lines.append(
                    Line(name: names[row][column], operation: Tile.kind, input: tile(row, column))
                )
            }
        }
        lines.append(
            Line(
                name: "picture",
                operation: Assemble.kind,
                input: Assemble(tiles: names, file: file),
                dependencies: names.flatMap(\.self)
            )
        )
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return lines.map { line in
            guard let text = try? encoder.encode(line) else {
                preconditionFailure("numbers and texts can be encoded")
            }
            return String(decoding: text, as: UTF8.self)
        }
    }

    private func tile(_ row: Int, _ column: Int) -> Tile {
        let right = Double(column) + 0.5 - Double(columns) / 2
        let down = Double(row) + 0.5 - Double(rows) / 2
        return Tile(
            real: real + right * Double(tileWidth) * step,
            imaginary: imaginary - down * Double(tileHeight) * step,
            step: step,
            width: tileWidth,
            height: tileHeight,
            iterations: iterations
        )
    }

    private struct Header: Encodable {
        var name: String
    }

    private struct Line<Input: Encodable>: Encodable {
        var name: String
        var operation: String
        var input: Input
        var dependencies: [String]?
    }
}
