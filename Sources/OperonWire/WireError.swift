/// Why bytes are not a message, or a message cannot become bytes.
///
/// Whoever receives it counts and logs it and drops the message: what it said is repaired by the
/// holdings of the next beat.
package struct WireError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of trouble it is: the label of a counter.
    package enum Code: Hashable, Sendable {
        /// Over the limit `messageBytes`, or with more elements than any message has. Nothing was
        /// allocated for it.
        case tooLarge
        /// Not Protocol Buffers, or cut off.
        case malformed
        /// A kind of message that this version does not know, or of the other side.
        case unknownMessage
        /// Of another major version of the schema.
        case versionUnsupported
        /// This field has a value that no sender may send.
        case invalidField(String)
    }

    package let code: Code
    /// One sentence for a person.
    package let message: String

    package var description: String { message }

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    static func tooLarge(_ bytes: Int, limit: Int) -> WireError {
        WireError(
            .tooLarge,
            "a message of \(bytes) bytes is over the limit of \(limit) (messageBytes)"
        )
    }

    static func invalid(_ field: String, _ why: String) -> WireError {
        WireError(.invalidField(field), "the field “\(field)” of a message \(why)")
    }

    static func missing(_ field: String) -> WireError {
        invalid(field, "is missing, or says something that only a newer version knows")
    }
}
