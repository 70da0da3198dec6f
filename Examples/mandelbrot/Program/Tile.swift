import FoundationEssentials
import Glibc
import Operon

/// Renders one rectangle of the picture.
struct Tile: Operation {
    /// The point in the middle of the tile, and how far apart its pixels are.
    var real: Double
    var imaginary: Double
    var step: Double
    var width: Int
    var height: Int
    /// After so many steps a point counts as one of the set.
    var iterations: Int

    func main(_ context: OperationContext) async throws -> Pixels {
        var colours: [UInt8] = []
        colours.reserveCapacity(width * height)
        for row in 0..<height {
            try context.checkCancellation()
            let y = imaginary - step * (Double(row) + 0.5 - Double(height) / 2)
            for column in 0..<width {
                let x = real + step * (Double(column) + 0.5 - Double(width) / 2)
                colours.append(colour(x, y))
            }
        }
        context.log("\(width) × \(height) pixels around \(real) + \(imaginary)i")
        return Pixels(width: width, height: height, colours: Data(colours))
    }

    /// Number of a colour: 0 for points of the set, else by how soon it is known that they are not.
    private func colour(_ x: Double, _ y: Double) -> UInt8 {
        var (a, b) = (0.0, 0.0)
        for count in 0..<iterations {
            let (aa, bb) = (a * a, b * b)
            if aa + bb > 256 { return Palette.colour(of: smooth(count, aa + bb)) }
            (a, b) = (aa - bb + x, 2 * a * b + y)
        }
        return 0
    }

    /// The count, with what lies between two counts.
    private func smooth(_ count: Int, _ square: Double) -> Double {
        max(0, Double(count) + 1 - log2(log2(square) / 2))
    }
}

/// What a tile returns: a number of a colour for each pixel, row by row from the top.
struct Pixels: Codable, Sendable {
    var width: Int
    var height: Int
    var colours: Data
}
