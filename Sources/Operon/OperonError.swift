/// Why a call failed, in words that a user can act on.
public struct OperonError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The category of an error. Later versions may add codes.
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

        /// This program closed the cluster.
        public static let closed = Code(.closed)
        /// The coordinator denied access: the token is missing, unknown or not sufficient.
        public static let forbidden = Code(.forbidden)
        /// An argument is invalid.
        public static let invalid = Code(.invalid)
        /// The dependency has no output.
        public static let noOutput = Code(.noOutput)
        /// There is no such operation, queue or graph, or it has been dropped.
        public static let notFound = Code(.notFound)
        /// The coordinator refused the call; the message says why.
        public static let refused = Code(.refused)
        /// The operating system refused.
        public static let system = Code(.system)
        /// The call did not complete within its time limit.
        public static let timedOut = Code(.timedOut)
        /// The bytes cannot be decoded as the requested type.
        public static let undecodable = Code(.undecodable)
        /// The broker refused the connection, or no coordinator answered within the time allowed.
        public static let unreachable = Code(.unreachable)

        /// The name of the code, as in the source.
        public var description: String { name.rawValue }
    }

    /// The category of the error.
    public let code: Code
    /// The message, as one sentence for a person.
    public let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The same as `message`.
    public var description: String { message }
}
