internal import OperonModel

/// An operation that a running one adds to its graph: see ``OperationContext/add(_:)``.
public struct NewOperation: Sendable {
    var description: OperationDescription
    /// What a worker in this process needs to run it.
    let kind: OperationKind?

    /// Its name, unique in the graph, 1 to 256 bytes.
    public var name: String {
        get { description.name }
        set { description.name = newValue }
    }

    /// The names of operations that it waits for: others that are added with it, or any of the
    /// graph. It is skipped when one of them fails.
    public var dependencies: [String] {
        get { description.dependencies.map(\.name) }
        set { description.dependencies = newValue.map { DependencyDescription($0) } }
    }

    /// The operation queue that it belongs to.
    public var queue: String {
        get { description.queue }
        set { description.queue = newValue }
    }

    /// The longest run of one attempt; `nil`: no bound.
    public var timeout: Duration? {
        get { description.timeout }
        set { description.timeout = newValue }
    }

    /// How often it is tried again after a failure of its own.
    public var retryLimit: Int {
        get { Int(description.retry.limit) }
        set { description.retry.limit = UInt16(clamping: newValue) }
    }

    /// An operation of a kind that workers have registered.
    ///
    /// - Throws: ``OperonError`` with the code `invalid` if its input cannot be encoded.
    public init<Op: Operation>(
        _ operation: Op,
        named name: String,
        after dependencies: [String] = []
    ) throws {
        let input: Payload
        do {
            input = try Payload(operation: operation)
        } catch {
            throw OperonError(.invalid, "The input of “\(name)” cannot be encoded: \(error)")
        }
        description = OperationDescription(
            name: name,
            work: .registered(kind: Op.kind, input: input)
        )
        kind = OperationKind(any: Op.self)
        self.dependencies = dependencies
    }

    /// A process: the program and its arguments. It starts where its worker started, unless a
    /// directory is named.
    public init(
        command arguments: [String],
        named name: String,
        after dependencies: [String] = [],
        directory: String? = nil
    ) {
        description = OperationDescription(
            name: name,
            work: .command(CommandDescription(arguments: arguments, directory: directory))
        )
        kind = nil
        self.dependencies = dependencies
    }
}

extension OperonError {
    /// Of a request that was not granted.
    init(_ refusal: Refusal) { self.init(.refused, "Nothing was added: \(refusal).") }
}
