/// A checksum over the values of a row, stored in the row. SQLite detects a torn page, but not a
/// bit that the disk changed inside a value.
///
/// Every step is invertible and folds the upper half of the product into the lower half. So two
/// rows that differ in one word always have different states; only the cut to 32 bits can make
/// their sums equal.
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

    /// The sum; it takes four bytes in the file. The last step has already folded the state.
    /// Folding it again would undo that, and the sum would not depend on the upper half of the last
    /// word.
    var value: Int64 { Int64(Int32(truncatingIfNeeded: state)) }
}
