import OperonModel

/// Checks that every field passes before it becomes a value of the model. Each error names the
/// refused field.
enum Check {
    /// A duration; 0 is allowed.
    static func duration(_ nanoseconds: Int64, _ field: String) throws(WireError) -> Duration {
        guard nanoseconds >= 0 else {
            throw .invalid(field, "is negative: \(nanoseconds) ns")
        }
        return .nanoseconds(nanoseconds)
    }

    /// A duration that must be more than 0.
    static func interval(_ nanoseconds: Int64, _ field: String) throws(WireError) -> Duration {
        guard nanoseconds > 0 else {
            throw .invalid(field, "must be more than 0 ns, is \(nanoseconds) ns")
        }
        return .nanoseconds(nanoseconds)
    }

    /// A time of a clock that started at 0.
    static func moment(_ nanoseconds: Int64, _ field: String) throws(WireError) -> Timestamp {
        guard nanoseconds >= 0 else {
            throw .invalid(field, "is before its clock began: \(nanoseconds) ns")
        }
        return Timestamp(nanoseconds: nanoseconds)
    }

    /// A number that counts from 1.
    static func ordinal<N: FixedWidthInteger>(
        _ number: N,
        _ field: String
    ) throws(WireError) -> N {
        guard number >= 1 else { throw .invalid(field, "is \(number): it counts from 1") }
        return number
    }

    /// A count of bytes that must fit the machine's integers.
    static func bytes(_ count: UInt64, _ field: String) throws(WireError) -> Int {
        guard let count = Int(exactly: count) else {
            throw .invalid(field, "is \(count): more bytes than there are")
        }
        return count
    }

    /// A name of 1 to `nameBytes` bytes.
    static func name(
        _ name: String,
        _ field: String,
        limits: Limits
    ) throws(WireError) -> String {
        let bytes = name.utf8.count
        guard 1...limits.nameBytes ~= bytes else {
            throw .invalid(
                field,
                "has \(bytes) bytes: a name has 1 to \(limits.nameBytes) (nameBytes)"
            )
        }
        return name
    }

    /// A name that only people read, and that may be empty.
    static func label(
        _ label: String,
        _ field: String,
        limits: Limits
    ) throws(WireError) -> String {
        let bytes = label.utf8.count
        guard bytes <= limits.nameBytes else {
            throw .invalid(
                field,
                "has \(bytes) bytes: it may have \(limits.nameBytes) (nameBytes)"
            )
        }
        return label
    }
}

/// Converts bytes to the byte string type of a generated message.
func byteString<B: RangeReplaceableCollection>(_ bytes: [UInt8]) -> B where B.Element == UInt8 {
    B(bytes)
}
