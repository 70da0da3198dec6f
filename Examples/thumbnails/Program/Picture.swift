import FoundationEssentials

/// A picture in memory: three bytes for each pixel, row by row, as a PPM file has them.
struct Picture: Equatable {
    let width: Int
    let height: Int
    private(set) var bytes: [UInt8]

    init(width: Int, height: Int, _ color: (_ x: Int, _ y: Int) -> (UInt8, UInt8, UInt8)) {
        self.width = width
        self.height = height
        bytes = []
        bytes.reserveCapacity(3 * width * height)
        for y in 0..<height {
            for x in 0..<width {
                let (red, green, blue) = color(x, y)
                bytes += [red, green, blue]
            }
        }
    }

    /// Reads a file of the binary kind, P6, with 8 bits for each color.
    init(reading file: String) throws {
        let data = try Data(contentsOf: URL(filePath: file))
        // The header: four words, each with one space or line end behind it.
        var words: [String] = []
        var rest = data[...]
        while words.count < 4, let end = rest.firstIndex(where: { $0 == 10 || $0 == 32 }) {
            words.append(String(decoding: rest[..<end], as: UTF8.self))
            rest = rest[(end + 1)...]
        }
        guard words.count == 4, words[0] == "P6", words[3] == "255",
            let width = Int(words[1]), let height = Int(words[2]),
            (1...16_384).contains(width), (1...16_384).contains(height),
            rest.count == 3 * width * height
        else { throw NotAPicture(file: file) }
        self.width = width
        self.height = height
        bytes = Array(rest)
    }

    struct NotAPicture: Error, Codable, Hashable, CustomStringConvertible {
        var file: String
        var description: String { "\(file) is no PPM file" }
    }

    /// In one step: an attempt that is repeated writes the same again, and nobody reads a half.
    func write(to file: String) throws {
        let header = Data("P6\n\(width) \(height)\n255\n".utf8)
        try (header + bytes).write(to: URL(filePath: file), options: .atomic)
    }

    /// As wide as this, and as high as that makes it: each pixel is the mean of those it covers.
    func scaled(toWidth newWidth: Int) -> Picture {
        let newHeight = max(1, height * newWidth / width)
        return Picture(width: newWidth, height: newHeight) { x, y in
            let columns = (x * width / newWidth)..<max((x + 1) * width / newWidth, 1)
            let rows = (y * height / newHeight)..<max((y + 1) * height / newHeight, 1)
            var sum = (0, 0, 0)
            for row in rows {
                for column in columns {
                    let place = 3 * (row * width + column)
                    sum.0 += Int(bytes[place])
                    sum.1 += Int(bytes[place + 1])
                    sum.2 += Int(bytes[place + 2])
                }
            }
            let count = max(1, rows.count * columns.count)
            return (UInt8(sum.0 / count), UInt8(sum.1 / count), UInt8(sum.2 / count))
        }
    }

    /// Puts another picture into this one; what is beyond the border is left away.
    mutating func paste(_ other: Picture, x left: Int, y top: Int) {
        for y in 0..<min(other.height, height - top) {
            for x in 0..<min(other.width, width - left) {
                let from = 3 * (y * other.width + x)
                let to = 3 * ((top + y) * width + left + x)
                for color in 0..<3 { bytes[to + color] = other.bytes[from + color] }
            }
        }
    }
}
