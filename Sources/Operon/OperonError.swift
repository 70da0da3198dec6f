/// Why a call could not do what it was asked for, in words that a user can act on.
public struct OperonError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of thing went wrong. Further codes may come.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        private enum Name: String {
            case invalid
            case noOutput
            case refused
            case system
            case undecodable
            case unreachable
        }

        private let name: Name

        private init(_ name: Name) { self.name = name }

        /// An argument that cannot be used.
        public static let invalid = Code(.invalid)
        /// The dependency has no output.
        public static let noOutput = Code(.noOutput)
        /// The coordinator refuses; the message says why.
        public static let refused = Code(.refused)
        /// The operating system refused.
        public static let system = Code(.system)
        /// Bytes that are not a value of the type.
        public static let undecodable = Code(.undecodable)
        /// The broker refuses, and trying again is useless.
        public static let unreachable = Code(.unreachable)

        /// Its name, as in the code.
        public var description: String { name.rawValue }
    }

    /// What kind of thing went wrong.
    public let code: Code
    /// One sentence for a person.
    public let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The message.
    public var description: String { message }
}
