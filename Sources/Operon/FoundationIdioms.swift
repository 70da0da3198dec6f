// What is written for Foundation's classes and cannot work across a network. Each is here only so
// that the compiler says what to write instead. Members of an extension of a protocol give way to
// those of the class, so nothing that works is affected.

/// Properties of Foundation's queues that only methods can set here: a setter cannot be `async`.
public protocol FoundationQueueIdioms: AnyObject {}

/// Properties of Foundation's operations that are set in another way here.
public protocol FoundationOperationIdioms: AnyObject {}

extension OperationQueue: FoundationQueueIdioms {}
extension AnyOperationHandle: FoundationOperationIdioms {}

extension FoundationQueueIdioms {
    @available(
        *,
        unavailable,
        message: "use try await setMaxConcurrentOperationCount(_:), or the argument of init"
    )
    public var maxConcurrentOperationCount: Int {
        get { fatalError("unavailable") }
        set { fatalError("unavailable") }
    }

    @available(*, unavailable, message: "use try await suspend(reason:) and try await resume()")
    public var isSuspended: Bool {
        get { fatalError("unavailable") }
        set { fatalError("unavailable") }
    }

    @available(
        *,
        unavailable,
        message: """
            try await operations gives summaries, such as the state of each; to control them, \
            keep the handles that addOperation returns
            """
    )
    public var operations: [AnyOperationHandle] { fatalError("unavailable") }
}

extension FoundationOperationIdioms {
    @available(
        *,
        unavailable,
        message: "the block takes the outcome: { outcome in … }"
    )
    public var completionBlock: (() -> Void)? {
        get { fatalError("unavailable") }
        set { fatalError("unavailable") }
    }

    @available(*, unavailable, message: "use try await setQueuePriority(_:)")
    public var queuePriority: QueuePriority {
        get { fatalError("unavailable") }
        set { fatalError("unavailable") }
    }
}

extension OperationQueue {
    @available(
        *,
        unavailable,
        message: """
            a block cannot travel to a worker: use try await addLocal { context in … }, which runs \
            it in this program, or add a type that conforms to Operation
            """
    )
    public func addOperation(_ block: @escaping @Sendable () -> Void) {
        fatalError("unavailable")
    }

    @available(*, unavailable, message: "a queue has no thread of its own: use the main actor")
    public static var main: OperationQueue { fatalError("unavailable") }
}

// An output that cannot be sent. Without these, the compiler compares it with `Void`.
extension OperationQueue {
    @available(*, unavailable, message: "the output of an operation must be Codable, or Void")
    @discardableResult
    public func addOperation<Op: Operation>(
        _ operation: Op,
        priority: QueuePriority? = nil,
        after dependencies: [AnyOperationHandle] = [],
        options: OperationOptions? = nil
    ) async throws -> OperationHandle<Op> { fatalError("unavailable") }

    @available(*, unavailable, message: "the outputs of operations must be Codable, or Void")
    @discardableResult
    public func addOperations<Op: Operation>(
        _ operations: [Op]
    ) async throws -> [OperationHandle<Op>] { fatalError("unavailable") }
}
