/// What is kept of the bytes that an attempt printed: all of them, or the first and the last.
package struct KeptLog: Hashable, Sendable {
    /// The first bytes; empty if none are missing.
    package var head: [UInt8]
    /// How many bytes between `head` and `tail` were not kept.
    package var missing: UInt64
    /// The last bytes.
    package var tail: [UInt8]

    /// The most bytes that can be missing: sums of such numbers are numbers.
    package static let missingMax = UInt64(1) << 62

    package static let empty = KeptLog(tail: [])

    package init(head: [UInt8] = [], missing: UInt64 = 0, tail: [UInt8]) {
        self.head = head
        self.missing = missing
        self.tail = tail
    }

    package var isEmpty: Bool { head.isEmpty && tail.isEmpty }
    /// The number of bytes that are kept.
    package var count: Int { head.count + tail.count }
    /// How many bytes were printed before `tail`.
    package var tailOffset: UInt64 { UInt64(head.count).addingCapped(missing) }
    /// How many bytes were printed.
    package var end: UInt64 { tailOffset.addingCapped(UInt64(tail.count)) }

    /// The log as people read it: a line says how much is missing, and where.
    package var text: [UInt8] {
        guard missing > 0 else { return head + tail }
        let isMidLine = head.last.map { $0 != UInt8(ascii: "\n") } ?? false
        return head + (isMidLine ? "\n" : "").utf8 + Self.gap(missing).utf8 + tail
    }

    /// The line that stands for missing bytes.
    package static func gap(_ bytes: UInt64) -> String {
        "operon: \(bytes) bytes are missing here\n"
    }

    /// How many of `limit` bytes are for the beginning of a log that does not fit. The rest is for
    /// the end, where errors usually are.
    package static func headBytes(of limit: Int) -> Int { limit / 8 }

    /// The same log in at most `limit` bytes.
    package func bounded(to limit: Int) -> KeptLog {
        guard count > limit else { return self }
        // Without a gap, the first bytes of the tail may be the first of all.
        let all = missing == 0 ? self.head + self.tail : nil
        let head = (all ?? self.head).prefix(Self.headBytes(of: limit))
        let tail = (all?.dropFirst(head.count) ?? self.tail[...]).suffix(limit - head.count)
        return KeptLog(
            head: Array(head),
            missing: end - UInt64(head.count + tail.count),
            tail: Array(tail)
        )
    }
}

extension UInt64 {
    /// The sum, or the largest number if it does not fit.
    package func addingCapped(_ other: UInt64) -> UInt64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
