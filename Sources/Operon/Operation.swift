/// A unit of work: a value that can be sent to a worker, and the code that runs there.
///
/// ```swift
/// struct Resize: Operation {
///     var file: String
///     var width: Int
///
///     func main(_ context: OperationContext) async throws -> String {
///         …
///     }
/// }
/// ```
///
/// A graph file names the operation by its kind and gives its properties as the input:
/// `{ operation: Resize, input: { file: a.png, width: 200 } }`. The properties are sent as the JSON
/// that `JSONEncoder` and `JSONDecoder` produce for the type by default. If there is no input, `{}`
/// is decoded.
///
/// An operation may run more than once: when a worker is lost, its operations run again elsewhere,
/// and nobody can tell a dead machine from a silent one. See ``OperationContext/attempt``.
///
/// `Foundation` has a class of the same name. In a file that imports it, write `Operon.Operation`,
/// or add `import protocol Operon.Operation`.
public protocol Operation<Output>: Codable, Sendable {
    /// The type that the operation returns: a `Codable` type, or `Void`. At most 1 MiB as JSON.
    associatedtype Output: Sendable

    /// The name by which graphs and workers know the operation, 1 to 256 bytes. By default the name
    /// of the type, without its module and enclosing types; two types of the same name cannot be
    /// added to one cluster. Not `command`, `external`, `wait` or `nothing`, which are built in.
    static var kind: String { get }

    /// The version of the input format; 1 unless a type sets another. Raise it when workers that
    /// know only the old format could not read the new one, or would misread it.
    static var version: Int { get }

    /// The versions of the input format that this code reads; by default only its own ``version``.
    /// A worker refuses any other version: the operation fails with `versionUnsupported`.
    static var supportedVersions: ClosedRange<Int> { get }

    /// Error types that ``main(_:)`` throws and that ``OperationHandle/value`` rethrows as
    /// themselves. All other errors arrive as an `OperationError`.
    static var errors: [any (Error & Codable).Type] { get }

    /// The conditions that must hold for the operation to run, in addition to its dependencies. The
    /// worker that is to run it evaluates them in this order.
    var conditions: [any Condition] { get }

    /// How the operation is run, unless the program that adds it sets other options.
    var options: OperationOptions { get }

    /// Does the work.
    ///
    /// The code runs on a thread of its slot, and may block that thread. If it throws, the attempt
    /// fails. The error's type and description are stored, and also its JSON if it is `Encodable`.
    ///
    /// When the operation is cancelled, or its `timeout` has passed, its task is cancelled and
    /// ``OperationContext/isCancelled`` becomes true. If the operation then throws
    /// `CancellationError`, it is cancelled; if it returns or throws anything else, it has
    /// succeeded or failed. (After a timeout it has failed, whatever it does.) Swift code cannot be
    /// stopped from outside: an operation that ignores the request keeps its slot until it ends.
    /// For this reason an operation that holds a key (`exclusive` in a graph) runs in its own
    /// process, as does an operation whose worker died while running it: see ``Worker``.
    @concurrent func main(_ context: OperationContext) async throws -> Output
}

extension Operation {
    /// The name of the type, without its module and enclosing types.
    public static var kind: String { TypeNames.name(of: Self.self) }

    /// 1.
    public static var version: Int { 1 }

    /// ``version`` alone.
    public static var supportedVersions: ClosedRange<Int> { version...version }

    /// No error types.
    public static var errors: [any (Error & Codable).Type] { [] }

    /// No conditions.
    public var conditions: [any Condition] { [] }

    /// Default options.
    public var options: OperationOptions { OperationOptions() }
}
