/// Why a call could not do what it was asked for, in words that a user can act on.
public struct OperonError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of thing went wrong. Further codes may come.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        private enum Name: String {
            case closed
            case forbidden
            case invalid
            case noOutput
            case notFound
            case refused
            case system
            case timedOut
            case undecodable
            case unreachable
        }

        private let name: Name

        private init(_ name: Name) { self.name = name }

        /// The cluster was closed, by this program.
        public static let closed = Code(.closed)
        /// The coordinator takes no token, or another one.
        public static let forbidden = Code(.forbidden)
        /// An argument that cannot be used.
        public static let invalid = Code(.invalid)
        /// The dependency has no output.
        public static let noOutput = Code(.noOutput)
        /// There is no such operation, queue or graph, or it is not kept any more.
        public static let notFound = Code(.notFound)
        /// The coordinator refuses; the message says why.
        public static let refused = Code(.refused)
        /// The operating system refused.
        public static let system = Code(.system)
        /// Not done in the time that was given.
        public static let timedOut = Code(.timedOut)
        /// Bytes that are not a value of the type.
        public static let undecodable = Code(.undecodable)
        /// The broker refuses, or no coordinator answered for as long as was to be waited.
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
