import SwiftProtobuf

/// Writes the fields of messages as Protocol Buffers. The caller writes them in the order of their
/// numbers, as the generated encoder does, so the bytes are the same.
package struct FieldWriter {
    package private(set) var bytes: [UInt8] = []

    package init(reserving count: Int) { bytes.reserveCapacity(count) }

    /// Removes everything that was written, and keeps the memory.
    mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

    // MARK: - Values. Default values are left out, as in the generated encoder.

    package mutating func add(_ tag: UInt64, _ value: UInt64) {
        if value != 0 { addEvenZero(tag, value) }
    }

    package mutating func add(_ tag: UInt64, _ value: UInt32) { add(tag, UInt64(value)) }

    mutating func add(_ tag: UInt64, _ value: Int64) { add(tag, UInt64(bitPattern: value)) }

    package mutating func add(_ tag: UInt64, _ flag: Bool) {
        if flag { addEvenZero(tag, 1 as UInt64) }
    }

    package mutating func add(_ tag: UInt64, _ text: String) {
        if !text.isEmpty { addEvenEmpty(tag, text) }
    }

    package mutating func add(_ tag: UInt64, _ data: [UInt8]) {
        if !data.isEmpty { addEvenEmpty(tag, data) }
    }

    package mutating func addFixed(_ tag: UInt64, _ value: UInt64) {
        guard value != 0 else { return }
        addVarint(tag)
        for shift in stride(from: 0, to: 64, by: 8) {
            bytes.append(UInt8(truncatingIfNeeded: value >> UInt64(shift)))
        }
    }

    // MARK: - Values whose presence counts

    package mutating func addEvenZero(_ tag: UInt64, _ value: UInt64) {
        addVarint(tag)
        addVarint(value)
    }

    package mutating func addEvenZero(_ tag: UInt64, _ value: Int64) {
        addEvenZero(tag, UInt64(bitPattern: value))
    }

    package mutating func addEvenEmpty(_ tag: UInt64, _ text: String) {
        addVarint(tag)
        addVarint(UInt64(text.utf8.count))
        bytes.append(contentsOf: text.utf8)
    }

    package mutating func addEvenEmpty(_ tag: UInt64, _ data: [UInt8]) {
        addVarint(tag)
        addVarint(UInt64(data.count))
        bytes += data
    }

    // MARK: - Messages

    mutating func addEmptyMessage(_ tag: UInt64) {
        addVarint(tag)
        bytes.append(0)
    }

    /// Adds a message that the generated encoder writes.
    ///
    /// - Throws: if the message has 2 GiB or more.
    mutating func addGenerated(_ tag: UInt64, _ message: some Message) throws {
        addEvenEmpty(tag, try message.serializedBytes() as [UInt8])
    }

    /// Begins a message inside this one.
    ///
    /// - Returns: what `endMessage` takes.
    package mutating func beginMessage(_ tag: UInt64) -> Int {
        addVarint(tag)
        // The length: one byte is enough for most messages.
        bytes.append(0)
        return bytes.count
    }

    /// Writes the length of a message, and moves its bytes if the length takes more than one.
    package mutating func endMessage(_ start: Int) {
        var length = bytes.count - start
        var place = start - 1
        while length > 0x7F {
            bytes[place] = UInt8(truncatingIfNeeded: length) | 0x80
            place += 1
            bytes.insert(0, at: place)
            length >>= 7
        }
        bytes[place] = UInt8(length)
    }

    @inline(__always)
    private mutating func addVarint(_ value: UInt64) {
        if value <= 0x7F { bytes.append(UInt8(value)) } else { addLongVarint(value) }
    }

    private mutating func addLongVarint(_ value: UInt64) {
        var value = value
        while value > 0x7F {
            bytes.append(UInt8(truncatingIfNeeded: value) | 0x80)
            value >>= 7
        }
        bytes.append(UInt8(value))
    }
}
