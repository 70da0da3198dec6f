/// Sizes as people write them: `512MiB`, `2GiB`, `1.5GiB`, or a number of bytes.
package enum ByteCountText {
    private static let units: [(name: String, bytes: Int)] = [
        ("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1),
    ]

    package static let hint = "a size such as 64KiB, 512MiB, 2GiB, or a number of bytes from 1"

    /// A whole number of bytes, at least 1; `nil`: the text is not a size. Fractions of a byte are
    /// dropped.
    package static func count(_ text: String) -> Int? {
        let digits = text.prefix { $0.isASCII && ($0.isWholeNumber || $0 == ".") }
        let unit = text.dropFirst(digits.count)
        guard let scale = unit.isEmpty ? 1 : units.first(where: { $0.name == unit })?.bytes
        else { return nil }
        let parts = digits.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count <= 2, let whole = Int(parts[0]) else { return nil }
        let (bytes, overflow) = whole.multipliedReportingOverflow(by: scale)
        guard !overflow else { return nil }
        var total = bytes
        if parts.count == 2 {
            // The sixth decimal of a tebibyte is about a mebibyte; nobody needs more.
            guard (1...6).contains(parts[1].count), scale > 1, let fraction = Int(parts[1])
            else { return nil }
            let power = parts[1].reduce(1) { power, _ in power * 10 }
            let (sum, overflow) = bytes.addingReportingOverflow(fraction * scale / power)
            guard !overflow else { return nil }
            total = sum
        }
        return total >= 1 ? total : nil
    }

    /// The size in the largest unit that divides it, such as `1536MiB`. `count` reads it back.
    package static func text(_ count: Int) -> String {
        guard let unit = units.first(where: { count % $0.bytes == 0 && count >= $0.bytes }) else {
            return String(count)
        }
        return unit.bytes == 1 ? String(count) : "\(count / unit.bytes)\(unit.name)"
    }
}
