/// Spans cannot be sent as the environment asks for.
package struct TracingError: Error {
    /// One line for a person.
    package let message: String

    init(message: String) { self.message = message }
}
