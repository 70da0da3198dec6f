/// Counts the list elements, strings and messages in an encoded envelope without building any of
/// them.
///
/// An empty operation can be encoded in two bytes but takes hundreds of bytes when decoded. A limit
/// on the message size alone would let eight mebibytes become more than a gibibyte. So the elements
/// are counted before anything is allocated for them, at the levels that contain lists: the body of
/// a message, the operations of a dispatch or an addition, and their commands.
struct ElementCount {
    /// Enough for one beat that lists 4,096 slots with a read-ahead of 60 operations each.
    static let max = 1 << 18
    /// The bound for one addition by a running operation: the most operations it may add, each with
    /// ten parts, as many as those of an ordinary command.
    static let additionMax = 1 << 19

    /// The part of an envelope that is being counted.
    enum Level {
        case envelope
        case dispatch
        case body
        case operation
        case command
        /// Orders or reports about watches, one of them, and a part of it.
        case watches
        case watch
        case watchPart
        /// A request from a process of an operation to its worker.
        case question
        /// A piece of operations in the format of the store.
        case stored
        case storedOperation

        /// The level of the field with this number; `nil` if it contains no lists.
        func below(_ field: UInt64) -> Level? {
            switch (self, field) {
            case (.envelope, 7): .dispatch
            case (.envelope, 8...13), (.envelope, 33...34): .body
            case (.envelope, 36...37): .watches
            case (.watches, 1): .watch
            // A source, or all that a worker watches.
            case (.watch, 1...2): .watchPart
            case (.watchPart, 5): .body
            case (.dispatch, 2): .operation
            case (.operation, 13), (.operation, 32): .command
            case (.storedOperation, 13), (.storedOperation, 29): .command
            case (.question, 3): .body
            case (.stored, 3): .storedOperation
            case (.envelope, _), (.dispatch, _), (.body, _), (.operation, _), (.command, _),
                (.question, _), (.stored, _), (.storedOperation, _), (.watches, _), (.watch, _),
                (.watchPart, _):
                nil
            }
        }
    }

    private let bytes: [UInt8]
    private let limit: Int
    private var count = 0

    /// Whether there are at most `max` elements. Invalid bytes are counted as far as they can be
    /// read; the parser refuses them later.
    static func isBounded(_ bytes: [UInt8], at level: Level = .envelope) -> Bool {
        // An element takes at least two bytes.
        bytes.count / 2 <= max || count(bytes, bytes.indices, at: level, upTo: max) <= max
    }

    /// The number of elements in a range. It is not exact once it exceeds the limit.
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

    /// Recursive; the depth is at most the number of levels.
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
                // A group starts or ends; only other programs send groups. Its content counts as if
                // it were here: rather too much than too little.
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
