/// Why the API cannot be served.
package struct HTTPServerError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        /// Others could use the API without authentication.
        case unsafe
        /// A setting is not valid.
        case invalid
        /// A file cannot be read or has the wrong content.
        case file
        /// Another process listens on the address.
        case addressInUse
        /// The system does not allow listening on the address.
        case bind
    }

    package var code: Code
    /// A sentence for a person; it says what to do.
    package var message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { message }
}
