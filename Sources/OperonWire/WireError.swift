/// Why bytes are not a message, or why a message cannot be encoded.
///
/// The receiver counts and logs the error and drops the message. The list of held attempts in the
/// next beat makes up for the loss.
package struct WireError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of error; it is the label of a counter.
    package enum Code: Hashable, Sendable {
        /// The message exceeds the limit `messageBytes` or has more elements than any valid
        /// message. Nothing was allocated for it.
        case tooLarge
        /// The bytes are not Protocol Buffers, or are cut off.
        case malformed
        /// This version does not know the kind of message, or the kind belongs to the other side.
        case unknownMessage
        /// The message has another major version of the schema.
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
