/// How many lists' elements, strings and messages lie in an encoded envelope, without building any.
///
/// Two bytes can be an empty operation, which takes hundreds of bytes once it is decoded: the limit
/// of a message's size alone would let eight mebibytes become more than a gibibyte. So the elements
/// are counted before anything is allocated for them, at the levels where lists lie: in the body of
/// a message, in the operations of a dispatch or of an addition, and in their commands.
struct ElementCount {
    /// More than 4,096 slots with a read-ahead of 60 operations each, all listed in one beat.
    static let max = 1 << 18
    /// In what a running operation adds at once: as many operations as it may have, each with ten
    /// parts, which those of an ordinary command are.
    static let additionMax = 1 << 19

    /// Where in an envelope the count is.
    enum Level {
        case envelope
        case dispatch
        case body
        case operation
        case command
        /// What a process asks its worker.
        case question
        /// A piece of operations as a store keeps them.
        case stored
        case storedOperation

        /// What the field of this number is, where lists may lie in it.
        func below(_ field: UInt64) -> Level? {
            switch (self, field) {
            case (.envelope, 7): .dispatch
            case (.envelope, 8...13), (.envelope, 33...34): .body
            case (.dispatch, 2): .operation
            case (.operation, 13), (.storedOperation, 13): .command
            case (.question, 3): .body
            case (.stored, 3): .storedOperation
            case (.envelope, _), (.dispatch, _), (.body, _), (.operation, _), (.command, _),
                (.question, _), (.stored, _), (.storedOperation, _):
                nil
            }
        }
    }

    private let bytes: [UInt8]
    private let limit: Int
    private var count = 0

    /// Whether there are at most `max`. Bytes that are no message count as far as they can be read:
    /// the parser refuses them.
    static func isBounded(_ bytes: [UInt8], at level: Level = .envelope) -> Bool {
        // An element takes two bytes at least.
        bytes.count / 2 <= max || count(bytes, bytes.indices, at: level, upTo: max) <= max
    }

    /// How many there are in a range; not exactly, if they are more than a limit.
    static func count(
        _ bytes: [UInt8],
        _ range: Range<Int>,
        at level: Level,
        upTo limit: Int
    ) -> Int {
        var counter = ElementCount(bytes, upTo: limit)
        counter.add(range, at: level)
        return counter.count
    }

    private init(_ bytes: [UInt8], upTo limit: Int) {
        self.bytes = bytes
        self.limit = limit
    }

    /// Recursion: as deep as there are levels.
    private mutating func add(_ range: Range<Int>, at level: Level) {
        var place = range.lowerBound
        while place < range.upperBound, count <= limit {
            guard let tag = varint(at: &place, before: range.upperBound) else { return }
            switch tag & 7 {
            case 0:
                guard varint(at: &place, before: range.upperBound) != nil else { return }
            case 1: place += 8
            case 5: place += 4
            case 2:
                guard
                    let length = varint(at: &place, before: range.upperBound),
                    length <= UInt64(range.upperBound - place)
                else { return }
                let end = place + Int(length)
                count += 1
                if let below = level.below(tag >> 3) { add(place..<end, at: below) }
                place = end
            case 3, 4:
                // A group of another program begins or ends. What is in it counts as if it stood
                // here: too much rather than too little.
                continue
            default: return
            }
        }
    }

    private func varint(at place: inout Int, before end: Int) -> UInt64? {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while place < end, shift < 64 {
            let byte = bytes[place]
            place += 1
            value |= UInt64(byte & 0x7F) << shift
            guard byte >= 0x80 else { return value }
            shift += 7
        }
        return nil
    }
}
