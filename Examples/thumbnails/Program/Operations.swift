import FoundationEssentials
import Operon

/// Makes a folder, and those above it.
struct MakeFolder: Operation {
    var path: String

    func main(_ context: OperationContext) async throws {
        let manager = FileManager.default
        try manager.createDirectory(atPath: path, withIntermediateDirectories: true)
    }
}

/// Holds when there is a folder; brings the operation that makes it.
struct HasFolder: Condition {
    var path: String

    func dependency() -> AnyOperationHandle? { OperationHandle(MakeFolder(path: path)) }

    func evaluate(_ context: OperationContext) async throws -> ConditionResult {
        FileManager.default.fileExists(atPath: path) ? .satisfied : .failed
    }
}

/// Paints a picture to make thumbnails of, and returns its file.
struct Paint: Operation {
    var folder: String
    var number: Int
    var width: Int

    var conditions: [any Condition] { [HasFolder(path: folder)] }

    func main(_ context: OperationContext) async throws -> String {
        let picture = Picture(width: width, height: width * 3 / 4) { x, y in
            let ring = (x * x + y * y) / (200 * (number + 1)) % 256
            return (UInt8(ring), UInt8(x * 255 / width), UInt8((y + 40 * number) % 256))
        }
        let file = "\(folder)/picture\(number).ppm"
        try picture.write(to: file)
        return file
    }
}

/// Holds when a picture is at least so wide: none is enlarged.
struct IsWideEnough: Condition {
    var file: String
    var width: Int

    func evaluate(_ context: OperationContext) async throws -> ConditionResult {
        try Picture(reading: file).width >= width ? .satisfied : .failed
    }
}

/// Makes one thumbnail, and returns its file.
struct Scale: Operation {
    static let errors: [any (Error & Codable).Type] = [Picture.NotAPicture.self]

    var file: String
    var width: Int

    var conditions: [any Condition] { [IsWideEnough(file: file, width: width)] }
    var target: String { file.replacing(".ppm", with: "-\(width).ppm") }

    func main(_ context: OperationContext) async throws -> String {
        try Picture(reading: file).scaled(toWidth: width).write(to: target)
        return target
    }
}

/// Puts the thumbnails that there are on one sheet, a row for each picture; returns how many.
struct Sheet: Operation {
    var rows: [[String]]
    var target: String

    func main(_ context: OperationContext) async throws -> Int {
        let pictures = rows.map { row in row.compactMap { try? Picture(reading: $0) } }
        let width = pictures.map { $0.reduce(0) { $0 + $1.width } }.max() ?? 0
        let heights = pictures.map { $0.map(\.height).max() ?? 0 }
        var sheet = Picture(width: max(1, width), height: max(1, heights.reduce(0, +))) { _, _ in
            (255, 255, 255)
        }
        var top = 0
        for (row, height) in zip(pictures, heights) {
            try context.checkCancellation()
            var left = 0
            for picture in row {
                sheet.paste(picture, x: left, y: top)
                left += picture.width
            }
            top += height
        }
        try sheet.write(to: target)
        return pictures.reduce(0) { $0 + $1.count }
    }
}
