import FoundationEssentials
import Operon

/// Puts the tiles together and writes the picture, on the machine where it runs.
struct Assemble: Operation {
    /// The names of the tiles, row by row from the top left.
    var tiles: [[String]]
    /// The file to write.
    var file: String

    func main(_ context: OperationContext) async throws -> Written {
        var rows: [[UInt8]] = []
        for names in tiles {
            let line = try names.map { try context.output(of: $0, as: Pixels.self) }
            for row in 0..<(line.first?.height ?? 0) {
                rows.append(
                    line.flatMap { tile in
                        tile.colours.dropFirst(row * tile.width).prefix(tile.width)
                    }
                )
            }
        }
        let picture = try PNG.encode(rows, palette: Palette.colours)
        try Data(picture).write(to: URL(filePath: file), options: .atomic)
        return Written(file: file, width: rows.first?.count ?? 0, height: rows.count)
    }

    /// What was written.
    struct Written: Codable, Sendable {
        var file: String
        var width: Int
        var height: Int
    }
}
