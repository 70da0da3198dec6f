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
/// A graph file names it by its kind, and its properties are the input:
/// `{ operation: Resize, input: { file: a.png, width: 200 } }`. They travel as the JSON that
/// `JSONEncoder` and `JSONDecoder` make of the type by default; without an input, `{}` is decoded.
///
/// An operation may run more than once: when a worker is lost, its operations run again elsewhere,
/// and nobody can tell a dead machine from a silent one. See ``OperationContext/attempt``.
///
/// Beside `import Foundation`, which has a class of this name, write `Operon.Operation`, or
/// `import protocol Operon.Operation`.
public protocol Operation<Output>: Codable, Sendable {
    /// What it returns: a `Codable` type, or `Void`. At most 1 MiB as JSON.
    associatedtype Output: Sendable

    /// The name by which graphs and workers know it, 1 to 256 bytes. By default the name of the
    /// type, without its module and the types it stands in: two of one name cannot be added to one
    /// cluster. Not `command`, `external`, `wait` or `nothing`, which are built in.
    static var kind: String { get }

    /// Which form its input has; 1 unless a type says otherwise. Raise it when workers that know
    /// only the old form could not read the new one, or would misunderstand it.
    static var version: Int { get }

    /// The forms of its input that this code reads; by default its own ``version`` alone. A worker
    /// refuses any other: the operation fails with `versionUnsupported`.
    static var supportedVersions: ClosedRange<Int> { get }

    /// Types of errors that ``main(_:)`` throws and that arrive as themselves where
    /// ``OperationHandle/value`` is asked for. Others arrive as an `OperationError`.
    static var errors: [any (Error & Codable).Type] { get }

    /// What has to hold for it to run, beside its dependencies: asked by the worker that is to run
    /// it, in this order.
    var conditions: [any Condition] { get }

    /// How it is to be run, unless whoever adds it says otherwise.
    var options: OperationOptions { get }

    /// Does the work.
    ///
    /// It runs on a thread of its slot, and may block it. What it throws fails the attempt: the
    /// error's type and description are kept, and its JSON if it is `Encodable`.
    ///
    /// Asked to stop, by a cancel or because its `timeout` is over, its task is cancelled and
    /// ``OperationContext/isCancelled`` becomes true. An operation that throws `CancellationError`
    /// then is cancelled; one that returns or throws anything else has succeeded or failed
    /// (after a timeout it has failed, whatever it does). Swift code cannot be ended from outside:
    /// an operation that ignores the request keeps its slot until it ends. Therefore one that
    /// holds a key (`exclusive` in a graph) runs in a process of its own, as one does whose worker
    /// died under it: see ``Worker``.
    @concurrent func main(_ context: OperationContext) async throws -> Output
}

extension Operation {
    /// The name of the type, without its module and the types it stands in.
    public static var kind: String { TypeNames.name(of: Self.self) }

    /// 1.
    public static var version: Int { 1 }

    /// ``version`` alone.
    public static var supportedVersions: ClosedRange<Int> { version...version }

    /// None.
    public static var errors: [any (Error & Codable).Type] { [] }

    /// None.
    public var conditions: [any Condition] { [] }

    /// Nothing special.
    public var options: OperationOptions { OperationOptions() }
}
