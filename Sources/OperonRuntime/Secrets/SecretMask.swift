/// The values of secrets that must not appear in what an attempt prints.
///
/// Every byte that belongs to an occurrence of a value is left out, and three asterisks stand for
/// each run of such bytes.
struct SecretMask: Sendable {
    /// Shorter values are not masked: they would be found in ordinary words.
    static let valueBytesMin = 8
    static let replacement = Array("***".utf8)

    /// One value, prepared so that text is compared with it in one pass (Knuth, Morris and Pratt).
    fileprivate struct Pattern: Sendable {
        let bytes: [UInt8]
        /// For each length of a matching beginning: the length of the longest shorter beginning
        /// that is also its end.
        let shorter: [Int32]

        init(_ bytes: [UInt8]) {
            self.bytes = bytes
            var shorter = [Int32](repeating: 0, count: bytes.count + 1)
            var length = 0
            for place in bytes.indices.dropFirst() {
                while length > 0, bytes[length] != bytes[place] { length = Int(shorter[length]) }
                if bytes[length] == bytes[place] { length += 1 }
                shorter[place + 1] = Int32(length)
            }
            self.shorter = shorter
        }

        /// The length of the matching beginning after one more byte.
        func length(after length: Int, _ byte: UInt8) -> Int {
            var length = length
            if length == bytes.count { length = Int(shorter[length]) }
            while length > 0, bytes[length] != byte { length = Int(shorter[length]) }
            return bytes[length] == byte ? length + 1 : 0
        }
    }

    fileprivate let patterns: [Pattern]
    /// Whether a value begins with the byte.
    fileprivate let begins: [Bool]

    /// `nil`: no value is long enough.
    init?(_ values: some Sequence<String>) {
        let long = Set(values.map { Array($0.utf8) }.filter { $0.count >= Self.valueBytesMin })
        guard !long.isEmpty else { return nil }
        patterns = long.map { Pattern($0) }
        var begins = [Bool](repeating: false, count: 256)
        for value in long { begins[Int(value[0])] = true }
        self.begins = begins
    }
}

/// One stream of an attempt with secrets. It holds back the last bytes for as long as they may be
/// the beginning of a value.
struct MaskedStream: Sendable {
    private let mask: SecretMask
    /// For each value: the length of its beginning with which the bytes so far end.
    private var lengths: [Int]
    private var isIdle = true
    /// The last bytes, which were not passed on yet.
    private var held: [UInt8] = []
    /// The number of bytes before those that are held.
    private var start = 0
    /// The occurrences among the held bytes, joined where they touch, in order.
    private var found: [Range<Int>] = []
    /// The end of the occurrence whose asterisks were passed on last.
    private var maskedEnd = -1

    init(_ mask: SecretMask) {
        self.mask = mask
        lengths = [Int](repeating: 0, count: mask.patterns.count)
    }

    /// Takes bytes, and returns those that can be passed on.
    mutating func append(_ chunk: ArraySlice<UInt8>) -> [UInt8] {
        var end = start + held.count
        held += chunk
        for byte in chunk {
            end += 1
            if isIdle, !mask.begins[Int(byte)] { continue }
            isIdle = true
            for index in lengths.indices {
                let pattern = mask.patterns[index]
                let length = pattern.length(after: lengths[index], byte)
                lengths[index] = length
                guard length > 0 else { continue }
                isIdle = false
                if length == pattern.bytes.count { add(end - length..<end) }
            }
        }
        return take(to: end - longestBeginning)
    }

    /// How many of the last bytes may be the beginning of a value. One that is complete may begin
    /// another one.
    private var longestBeginning: Int {
        guard !isIdle else { return 0 }
        var longest = 0
        for (pattern, length) in zip(mask.patterns, lengths) {
            let isComplete = length == pattern.bytes.count
            longest = max(longest, isComplete ? Int(pattern.shorter[length]) : length)
        }
        return longest
    }

    /// Returns what is held: the stream has ended.
    mutating func finish() -> [UInt8] {
        defer {
            isIdle = true
            for index in lengths.indices { lengths[index] = 0 }
        }
        return take(to: start + held.count)
    }

    private mutating func add(_ occurrence: Range<Int>) {
        var joined = occurrence
        while let last = found.last, last.upperBound >= joined.lowerBound {
            joined = min(last.lowerBound, joined.lowerBound)..<joined.upperBound
            found.removeLast()
        }
        found.append(joined)
    }

    /// Passes on the bytes before a place; occurrences that go beyond it are passed on in part.
    private mutating func take(to end: Int) -> [UInt8] {
        guard end > start else { return [] }
        var passed: [UInt8] = []
        var place = start
        var next = 0
        while next < found.count, found[next].lowerBound < end {
            let range = found[next]
            if range.lowerBound > place { passed += held[place - start..<range.lowerBound - start] }
            // The rest of an occurrence whose asterisks were passed on, or one that touches it.
            if maskedEnd < range.lowerBound { passed += SecretMask.replacement }
            place = min(end, range.upperBound)
            maskedEnd = place
            guard range.upperBound <= end else {
                found[next] = end..<range.upperBound
                break
            }
            next += 1
        }
        if place < end { passed += held[place - start..<end - start] }
        found.removeFirst(next)
        held.removeFirst(end - start)
        start = end
        return passed
    }
}
