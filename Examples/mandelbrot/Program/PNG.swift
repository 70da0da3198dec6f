import CZlib

/// As much of PNG (RFC 2083) as a picture with a palette needs.
enum PNG {
    /// zlib refused, by its number for the reason.
    struct Failure: Error {
        let code: Int32
    }

    /// A picture with a byte for each pixel, its place in the palette. All rows of one length.
    static func encode(_ rows: [[UInt8]], palette: [Colour]) throws -> [UInt8] {
        let width = rows.first?.count ?? 0
        // Every row begins with its filter: none, which suits a palette best.
        let pixels = try deflate(rows.flatMap { [0] + $0 })
        let depth: UInt8 = 8
        let withPalette: UInt8 = 3
        return [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
            + chunk("IHDR", number(width) + number(rows.count) + [depth, withPalette, 0, 0, 0])
            + chunk("PLTE", palette.flatMap { [$0.red, $0.green, $0.blue] })
            + chunk("IDAT", pixels)
            + chunk("IEND", [])
    }

    /// Length, type, data, check sum of type and data.
    private static func chunk(_ type: String, _ data: [UInt8]) -> [UInt8] {
        let checked = Array(type.utf8) + data
        return number(data.count) + checked + number(Int(crc32(0, checked, uInt(checked.count))))
    }

    /// Four bytes, the highest first.
    private static func number(_ value: Int) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) }
    }

    private static func deflate(_ bytes: [UInt8]) throws -> [UInt8] {
        var count = compressBound(uLong(bytes.count))
        var compressed = [UInt8](repeating: 0, count: Int(count))
        let code = compress2(&compressed, &count, bytes, uLong(bytes.count), Z_BEST_COMPRESSION)
        guard code == Z_OK else { throw Failure(code: code) }
        return Array(compressed[..<Int(count)])
    }
}
