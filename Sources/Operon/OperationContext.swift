internal import OperonCore
public import OperonModel
internal import OperonRuntime

/// The information and functions that are available to a running operation.
public struct OperationContext: Sendable {
    private let invocation: Invocation
    /// The kinds of the worker, if it is in the process that adds operations; otherwise `nil`.
    private let registry: KindRegistry?

    init(_ invocation: Invocation, registry: KindRegistry? = nil) {
        self.invocation = invocation
        self.registry = registry
    }

    /// The name of the operation's graph.
    public var graphName: String { invocation.operation.graphName }

    /// The name of the operation in its graph.
    public var operationName: String { invocation.operation.name }

    /// The name of the operation's queue.
    public var queueName: String { invocation.operation.queue }

    /// The number of this attempt, from 1. An earlier attempt may still be running on a worker that
    /// the coordinator lost contact with. Changes outside of the operation should therefore be safe
    /// to repeat, or be refused if a larger attempt number has been seen.
    public var attempt: Int { Int(invocation.operation.ordinal) }

    /// What this attempt takes of its worker: see ``OperationOptions/resources``.
    public var resources: ResourceAmounts { invocation.operation.resources }

    /// The graphics processors that are this attempt's own, as their driver names them: what
    /// `CUDA_VISIBLE_DEVICES` and `ROCR_VISIBLE_DEVICES` say to a command. Empty, unless it asked
    /// for `gpus`. Nothing keeps the code from using others: all operations of a worker share its
    /// process.
    public var gpus: [String] { invocation.operation.allocation.gpus }

    /// Whether the operation was asked to stop. Stays true. Cheap; needs no network.
    public var isCancelled: Bool { invocation.isCancelled() }

    /// Asks this operation itself to stop: ``isCancelled`` becomes true, and its task is cancelled.
    /// If it then throws `CancellationError`, it ends as cancelled.
    public func cancel() { invocation.cancel() }

    /// Throws `CancellationError` if the operation was asked to stop.
    public func checkCancellation() throws {
        if isCancelled { throw CancellationError() }
    }

    /// The names of the direct dependencies, in the order in which the graph lists them.
    public var dependencies: [String] { invocation.operation.inputs.map(\.name) }

    /// Returns the output of a dependency.
    ///
    /// A dependency that returned nothing or did not succeed has no output. Asking for it is an
    /// error, unless `Value` is an optional.
    ///
    /// - Parameters:
    ///   - dependency: The name of a direct dependency. If it belongs to another graph, that
    ///     graph's name may precede its own or be left out.
    ///   - type: The type to decode. The output of a command is the JSON that it wrote.
    /// - Throws: ``OperonError`` with the code `invalid` (there is no such dependency), `noOutput`,
    ///   `notFound` (the dependency finished so long ago that its output, if it had any, has been
    ///   dropped) or `undecodable`.
    public func output<Value: Decodable>(
        of dependency: String,
        as type: Value.Type = Value.self
    ) throws -> Value {
        let inputs = invocation.operation.inputs
        // The name of a dependency in another graph starts with that graph. Programs that add many
        // operations continue in a next graph.
        let found =
            inputs.first { $0.name == dependency }
            ?? inputs.first { $0.name.split(separator: "/", maxSplits: 1).last ?? "" == dependency }
        guard let input = found else {
            let message = "“\(operationName)” does not depend on “\(dependency)”."
            throw OperonError(.invalid, message)
        }
        guard !input.isDropped else {
            let message = "What “\(dependency)” returned is not kept any more."
            throw OperonError(.notFound, message)
        }
        return try Self.decode(input.output, of: dependency, as: type)
    }

    private static func decode<Value: Decodable>(
        _ output: Payload?,
        of name: String,
        as type: Value.Type
    ) throws -> Value {
        guard let output, !output.isEmpty else {
            // The value that stands for no output, if the type has one.
            if let none = Any?.none as? Value { return none }
            throw OperonError(.noOutput, "“\(name)” has no output.")
        }
        do throws(PayloadError) {
            return try output.decoded(as: type)
        } catch {
            throw OperonError(
                .undecodable,
                "The output of “\(name)” is no \(type): \(error.message)."
            )
        }
    }

    /// Adds operations to the graph of this operation, and waits until the coordinator has stored
    /// them.
    ///
    /// They start without waiting for this operation, unless they list it as a dependency.
    /// Operations that an earlier attempt of this operation added are left as they are, so it is
    /// safe to add them again; an operation of the same name must then be the same, with the same
    /// options. (A deadline that is computed from the current time differs between attempts.) The
    /// call waits for as long as the coordinator does not answer.
    ///
    /// - Returns: How many of the operations are new, including those that their conditions add.
    /// - Throws: `Refusal` for a name that the graph already has, an unknown dependency or queue, a
    ///   cycle, an exceeded limit, or a cancelled graph; ``OperonError`` with the code `invalid`
    ///   for operations that cannot be sent. In these cases nothing was added. `CancellationError`
    ///   if this attempt was abandoned.
    @discardableResult
    public func add(_ operations: [NewOperation]) async throws -> Int {
        let descriptions = try operations.flatMap { try $0.descriptions(queue: queueName) }
        if let registry {
            for operation in descriptions { try registry.check(operation, operation.name) }
            for operation in operations { operation.register { registry.register($0) } }
        }
        var graph = GraphDescription(name: "added", operations: descriptions)
        graph.order = .submission
        let body: [UInt8]
        do throws(OperationSocketError) {
            body = try OperationSocketClient.body(of: graph)
        } catch {
            throw OperonError(.invalid, error.message)
        }
        switch await invocation.ask(.add(body)) {
        case .added(let count): return Int(count)
        case .refused(let refusal): throw refusal
        case .awaited, .read, .ended: throw CancellationError()
        }
    }

    /// Adds one operation to the graph of this operation: see ``add(_:)``.
    ///
    /// - Parameters:
    ///   - operation: The operation to add.
    ///   - name: Its name, unique in the graph.
    ///   - dependencies: The names of operations to wait for; it is skipped if one of them fails.
    ///     For other conditions add a ``NewOperation``.
    ///   - queue: Its queue, which the graph must have; `nil`: the queue of this operation.
    ///   - priority: Its priority among ready operations; `nil`: the priority in `options`.
    ///   - options: How it is run; `nil`: the operation's own options.
    /// - Returns: Whether the operation is new; an earlier attempt may have added it.
    /// - Throws: The same errors as ``add(_:)``.
    @discardableResult
    public func addOperation(
        _ operation: some Operation,
        named name: String,
        after dependencies: [String] = [],
        queue: String? = nil,
        priority: QueuePriority? = nil,
        options: OperationOptions? = nil
    ) async throws -> Bool {
        var new = try NewOperation(operation, named: name, after: dependencies, options: options)
        new.queue = queue
        if let priority { new.options.queuePriority = priority }
        return try await add([new]) > 0
    }

    /// Waits until other operations have finished, for example operations that this one has added.
    ///
    /// Meanwhile this operation occupies no slot and no place under the limit of its queue, so both
    /// are free for the operations it waits for. It keeps its exclusive keys, and its timeout keeps
    /// running. When all have finished, it continues before any new operation starts, as soon as
    /// its worker has a slot for it and its queue has room. An operation can have only one wait at
    /// a time: pass all names together.
    ///
    /// - Parameter names: The names of operations of the same graph, or `graph/operation`; at most
    ///   10,000. With no names, the call returns at once.
    /// - Returns: The outcomes, in the order of the names. If a finished operation is retried, the
    ///   retry is not waited for. ``value(of:as:)`` returns the values that the operations
    ///   returned.
    /// - Throws: `Refusal` for an unknown name, for an operation that waits for this one or needs a
    ///   key that this one holds, for a second wait, or for an exceeded limit. `CancellationError`
    ///   if this operation was asked to stop, or this attempt was abandoned.
    @discardableResult
    public func wait(for names: [String]) async throws -> [OutcomeKind] {
        guard !names.isEmpty else { return [] }
        switch await invocation.ask(.wait(names)) {
        case .awaited(let outcomes): return outcomes
        case .refused(let refusal): throw refusal
        case .added, .read, .ended: throw CancellationError()
        }
    }

    /// Returns the output of a finished operation, for example one that ``wait(for:)`` waited for.
    ///
    /// The outputs of dependencies are available without asking the coordinator:
    /// ``output(of:as:)``. An operation that returned nothing or did not succeed has no output.
    /// Asking for it is an error, unless `Value` is an optional.
    ///
    /// - Parameters:
    ///   - name: The name of an operation of the same graph, or `graph/operation`.
    ///   - type: The type to decode. The output of a command is the JSON that it wrote.
    /// - Throws: ``OperonError`` with the code `noOutput` or `undecodable`; `Refusal` for an
    ///   unknown name, an unfinished operation, or an output that has been dropped.
    ///   `CancellationError` if this attempt was abandoned.
    public func value<Value: Decodable>(
        of name: String,
        as type: Value.Type = Value.self
    ) async throws -> Value {
        switch await invocation.ask(.read(name)) {
        case .read(let output): return try Self.decode(output, of: name, as: type)
        case .refused(let refusal): throw refusal
        case .added, .awaited, .ended: throw CancellationError()
        }
    }

    /// Reports progress for display while the operation runs. Cheap: of all reports within a
    /// quarter of a second, only the last is sent. Reports may be lost, for example when the
    /// operation runs in its own process.
    ///
    /// - Parameters:
    ///   - progress: From 0 to 1. Values outside are clamped; NaN counts as 0.
    ///   - text: The current step; the first 256 bytes are shown.
    public func report(progress: Double, _ text: String? = nil) {
        let fraction = progress.isNaN ? 0 : min(max(progress, 0), 1)
        let shown = text?.cut(to: Limits().nameBytes)
        invocation.report(ReportedProgress(fraction: fraction, text: shown))
    }

    /// Appends a line to the operation's log. The last mebibyte of the log is kept.
    public func log(_ message: String) { invocation.log(message) }
}
