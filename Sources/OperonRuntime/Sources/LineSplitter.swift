import OperonModel

/// Cuts a stream of bytes into lines of a bounded length. A value without I/O.
struct LineSplitter {
    enum Item: Hashable {
        /// A line without its end: a newline, or a carriage return and a newline.
        case line([UInt8])
        /// A line over the limit, which was passed over; told when it begins to be too long.
        case tooLong
    }

    private let bytesMax: Int
    private var partial: [UInt8] = []
    private var isSkipping = false

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    /// The lines that these bytes complete.
    mutating func append(_ bytes: ArraySlice<UInt8>) -> [Item] {
        var items: [Item] = []
        var rest = bytes
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            add(rest[..<end], to: &items)
            rest = rest[(end + 1)...]
            let wasTooLong = isSkipping
            if let line = finish() {
                items.append(line)
            } else if !wasTooLong {
                items.append(.line([]))
            }
        }
        add(rest, to: &items)
        return items
    }

    /// The stream has ended: what came after the last newline is a line, too.
    mutating func finish() -> Item? {
        defer {
            partial = []
            isSkipping = false
        }
        guard !isSkipping, !partial.isEmpty else { return nil }
        if partial.last == UInt8(ascii: "\r") { partial.removeLast() }
        return .line(partial)
    }

    private mutating func add(_ bytes: ArraySlice<UInt8>, to items: inout [Item]) {
        guard !isSkipping else { return }
        guard partial.count + bytes.count <= bytesMax else {
            partial = []
            isSkipping = true
            return items.append(.tooLong)
        }
        partial += bytes
    }
}

/// Lines as occurrences.
enum LineOccurrence {
    /// The bytes of a line: as much as a pipe holds by default.
    static let bytesMax = 64 << 10

    /// Lines have no identity of their own, so one is drawn for each line when it is read.
    ///
    /// - Parameter stream: What the lines come from, in messages.
    static func make(
        _ item: LineSplitter.Item,
        of stream: String
    ) -> Result<Occurrence, TriggerSourceError> {
        guard case .line(let bytes) = item else {
            return .failure(
                TriggerSourceError(
                    .limitExceeded,
                    "a line of \(stream) has more than \(bytesMax) bytes and was left out"
                )
            )
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            return .failure(
                TriggerSourceError(
                    .unreadable,
                    "a line of \(stream) is not UTF-8 and was left out"
                )
            )
        }
        return Result { () throws(TriggerSourceError) in
            try Occurrence(identity: "line:\(drawn())", event: ["line": .text(text)])
        }
    }

    /// 128 random bits, in hexadecimal digits.
    static func drawn() -> String {
        var generator = SystemRandomNumberGenerator()
        return (0..<2).map { _ in
            let word = String(generator.next() as UInt64, radix: 16)
            return String(repeating: "0", count: 16 - word.count) + word
        }.joined()
    }
}
