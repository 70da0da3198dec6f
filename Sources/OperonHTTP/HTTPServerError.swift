/// Why the API does not serve.
package struct HTTPServerError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        /// Others could use it without being asked who they are.
        case unsafe
        /// A setting makes no sense.
        case invalid
        /// A file cannot be read or is not what it should be.
        case file
        /// Something else listens there.
        case addressInUse
        /// The system does not let it listen there.
        case bind
    }

    package var code: Code
    /// A sentence for a person that says what to do.
    package var message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { message }
}
