internal import OperonCore
internal import OperonModel
internal import OperonRuntime

extension OperationContext {
    /// A context without a coordinator, for calling an operation's `main` directly, for example in
    /// a test. It is never cancelled, cannot add operations or wait for them, and discards log
    /// messages.
    public static var local: OperationContext { local() }

    /// Creates a context without a coordinator.
    ///
    /// - Parameters:
    ///   - attempt: The value of ``attempt``.
    ///   - operationName: The value of ``operationName``.
    ///   - queueName: The value of ``queueName``.
    ///   - outputs: The outputs of the dependencies, by name, in this order.
    ///   - isCancelled: Returns the value of ``isCancelled``.
    ///   - cancel: Called by ``cancel()``.
    ///   - log: Called with each log message.
    /// - Throws: The error from encoding an output.
    public static func local(
        attempt: Int = 1,
        operationName: String = "local",
        queueName: String = "local",
        outputs: KeyValuePairs<String, any Encodable & Sendable>,
        isCancelled: @escaping @Sendable () -> Bool = { false },
        cancel: @escaping @Sendable () -> Void = {},
        log: @escaping @Sendable (String) -> Void = { _ in }
    ) throws -> OperationContext {
        var inputs: [NamedInput] = []
        for (name, output) in outputs {
            inputs.append(NamedInput(name: name, output: try Payload(encoding: output)))
        }
        return local(
            attempt: attempt,
            operationName: operationName,
            queueName: queueName,
            inputs: inputs,
            isCancelled: isCancelled,
            cancel: cancel,
            log: log
        )
    }

    static func local(
        attempt: Int = 1,
        operationName: String = "local",
        queueName: String = "local",
        inputs: [NamedInput] = [],
        isCancelled: @escaping @Sendable () -> Bool = { Task.isCancelled },
        cancel: @escaping @Sendable () -> Void = {},
        log: @escaping @Sendable (String) -> Void = { _ in }
    ) -> OperationContext {
        let id = OperationID(graph: GraphID(rawValue: 0), index: 0)
        let attemptID = AttemptID(epoch: Epoch(rawValue: 0), number: UInt64(clamping: attempt))
        let operation = DispatchedOperation(
            held: HeldAttempt(attempt: attemptID, operation: id),
            ordinal: UInt32(clamping: attempt),
            graphName: "local",
            name: operationName,
            queue: queueName,
            work: .nothing,
            priority: .normal,
            rank: 0,
            timeout: nil,
            qualityOfService: .default,
            inputs: inputs
        )
        return OperationContext(
            Invocation(
                operation: operation,
                input: .empty,
                isCancelled: isCancelled,
                cancel: cancel,
                log: log,
                ask: { _ in .refused(.unreachable("there is no coordinator here")) }
            )
        )
    }
}
