import OperonSystem

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
        /// It has listened, and does not any more, though nobody has asked for that.
        case ended
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

extension HTTPServerError {
    /// A file that cannot be read, or whose secret other users can read. The message calls the
    /// secret `what`.
    init(_ problem: SecretFile.Problem, _ what: String, in path: String) {
        self.init(.file, problem.sentence(what, in: path))
    }
}
