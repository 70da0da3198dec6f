import OperonModel
import SwiftProtobuf

/// Reads the fields of a message in their regular form, the one that our encoders write: in the
/// order of their numbers, each of them once unless it is repeated, and all of them known.
///
/// Protocol Buffers allow more than that. Whatever is not regular or not valid is an error here,
/// and the message is then decoded with the generated types, which decide what it means. So no
/// error of this type ever reaches a person.
struct FieldReader {
    private let bytes: [UInt8]
    private var position = 0
    /// The end of the message that is being read.
    private var end: Int

    /// - Parameter bytes: fewer than 2 GiB. The generated decoder refuses longer fields.
    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        end = bytes.count
    }

    var isAtEnd: Bool { position == end }

    static var irregular: WireError {
        WireError(.malformed, "a message is not in its regular form")
    }

    // MARK: - Tags and messages

    /// The next tag; `nil` at the end of the message.
    ///
    /// - Parameter last: the tag before; 0 at the beginning. The caller lowers it by one where the
    ///   same field may follow.
    @inline(__always)
    mutating func nextTag(after last: inout UInt64) throws(WireError) -> UInt64? {
        guard position < end else { return nil }
        let tag = try tag()
        guard tag > last else { throw Self.irregular }
        last = tag
        return tag
    }

    /// A tag of one or two bytes: that is enough for fields up to 2,047.
    @inline(__always)
    private mutating func tag() throws(WireError) -> UInt64 {
        let low = UInt64(bytes[position])
        position += 1
        guard low > 0x7F else { return low }
        guard position < end, 1...0x7F ~= bytes[position] else { throw Self.irregular }
        defer { position += 1 }
        return low & 0x7F | UInt64(bytes[position]) << 7
    }

    /// Enters the message that the last tag announced. `nextTag` then ends where it ends.
    ///
    /// - Returns: what `leave` takes.
    mutating func enter() throws(WireError) -> Int {
        let inner = try range()
        defer { (position, end) = (inner.lowerBound, inner.upperBound) }
        return end
    }

    /// Goes on behind a message whose fields have all been read.
    mutating func leave(_ outer: Int) { end = outer }

    /// Reads past a message without fields.
    mutating func skipEmptyMessage() throws(WireError) {
        guard try range().isEmpty else { throw Self.irregular }
    }

    /// Reads a message with its generated type.
    ///
    /// - Parameter depth: the number of messages around it.
    mutating func generated<M: Message>(depth: Int) throws(WireError) -> M {
        var options = BinaryDecodingOptions()
        options.messageDepthLimit = Wire.messageDepthMax - depth
        do {
            return try M(serializedBytes: try data(), options: options)
        } catch {
            throw Self.irregular
        }
    }

    /// How many fields with this tag follow one another, of which the first has been announced.
    func count(of tag: UInt64) throws(WireError) -> Int {
        var ahead = self
        var count = 1
        _ = try ahead.range()
        while !ahead.isAtEnd, try ahead.tag() == tag {
            _ = try ahead.range()
            count += 1
        }
        return count
    }

    // MARK: - Values

    @inline(__always)
    mutating func number() throws(WireError) -> UInt64 {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while position < end, shift < 64 {
            let byte = bytes[position]
            position += 1
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
            shift += 7
        }
        throw Self.irregular
    }

    mutating func number32() throws(WireError) -> UInt32 {
        // The generated decoder cuts larger numbers.
        guard let number = UInt32(exactly: try number()) else { throw Self.irregular }
        return number
    }

    mutating func signed() throws(WireError) -> Int64 { Int64(bitPattern: try number()) }

    mutating func flag() throws(WireError) -> Bool { try number() != 0 }

    mutating func fixed() throws(WireError) -> UInt64 {
        guard end - position >= 8 else { throw Self.irregular }
        var value: UInt64 = 0
        for shift in stride(from: 0, to: 64, by: 8) {
            value |= UInt64(bytes[position]) << UInt64(shift)
            position += 1
        }
        return value
    }

    mutating func text() throws(WireError) -> String {
        let content = bytes[try range()]
        // Most texts are ASCII. The initializer that refuses what is not UTF-8 takes twice as long.
        if content.allSatisfy({ $0 < 0x80 }) { return String(decoding: content, as: UTF8.self) }
        guard let text = String(validating: content, as: UTF8.self) else { throw Self.irregular }
        return text
    }

    mutating func data() throws(WireError) -> [UInt8] { Array(bytes[try range()]) }

    @inline(__always)
    private mutating func range() throws(WireError) -> Range<Int> {
        let count = try number()
        guard count <= UInt64(end - position) else { throw Self.irregular }
        defer { position += Int(count) }
        return position..<position + Int(count)
    }
}
