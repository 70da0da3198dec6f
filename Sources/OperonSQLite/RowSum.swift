/// A check sum over the values of a row, kept in the row: SQLite notices a page that is torn, not
/// a bit that the disk changed inside a value.
///
/// Every step is invertible, and folds what the multiplication took to the upper half into the
/// lower one, so two rows that differ in one word never meet before 32 bits of it are taken.
struct RowSum {
    private var state: UInt64 = 0x9E37_79B9_7F4A_7C15

    mutating func add(_ word: UInt64) {
        state = (state ^ word) &* 0xFF51_AFD7_ED55_8CCD
        state ^= state >> 32
    }

    mutating func addNothing() { add(0xA5A5_A5A5_0000_0001) }

    mutating func add(_ bytes: UnsafeRawBufferPointer) {
        add(UInt64(bytes.count))
        var offset = 0
        while offset + 8 <= bytes.count {
            unsafe add(bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            offset += 8
        }
        var rest: UInt64 = 0
        while offset < bytes.count {
            unsafe rest = rest << 8 | UInt64(bytes[offset])
            offset += 1
        }
        add(rest)
    }

    /// Four bytes in the file. Folded by the last step already: to fold it again would undo that,
    /// and nothing would tell of the upper half of the last word.
    var value: Int64 { Int64(Int32(truncatingIfNeeded: state)) }
}
