internal import OperonCore
internal import OperonModel
internal import OperonRuntime

/// What a running operation knows of itself, and may ask.
public struct OperationContext: Sendable {
    private let invocation: Invocation
    /// Of a worker in the process that adds operations; `nil`: elsewhere.
    private let registry: KindRegistry?

    init(_ invocation: Invocation, registry: KindRegistry? = nil) {
        self.invocation = invocation
        self.registry = registry
    }

    /// The name of its graph.
    public var graphName: String { invocation.operation.graphName }

    /// Its name in the graph.
    public var operationName: String { invocation.operation.name }

    /// The name of its operation queue.
    public var queueName: String { invocation.operation.queue }

    /// Counts the attempts at this operation, from 1. An earlier one may still run, on a worker
    /// that was lost from sight: whatever is changed outside should be safe to repeat, or refuse a
    /// smaller number than it has seen.
    public var attempt: Int { Int(invocation.operation.ordinal) }

    /// Whether it was asked to stop; stays true. Cheap, and needs no network.
    public var isCancelled: Bool { invocation.isCancelled() }

    /// Asks this operation itself to stop: ``isCancelled`` is true from then on, and its task is
    /// cancelled. It ends as cancelled if it throws `CancellationError` then.
    public func cancel() { invocation.cancel() }

    /// Throws `CancellationError` if it was asked to stop.
    public func checkCancellation() throws {
        if isCancelled { throw CancellationError() }
    }

    /// The names of the operations it depends on directly, in the order the graph lists them.
    public var dependencies: [String] { invocation.operation.inputs.map(\.name) }

    /// What a dependency returned.
    ///
    /// One that returned nothing, or did not succeed, has no output: that is an error, unless
    /// `Value` is an optional.
    ///
    /// - Parameters:
    ///   - dependency: The name of an operation it depends on directly; of another graph with or
    ///     without that graph before it.
    ///   - type: What to read it as. A command's output is the JSON that it wrote.
    /// - Throws: ``OperonError`` with the code `invalid` (it does not depend on that operation),
    ///   `noOutput`, `notFound` (it ended so long ago that what it returned is not kept any more,
    ///   nor whether that was anything) or `undecodable`.
    public func output<Value: Decodable>(
        of dependency: String,
        as type: Value.Type = Value.self
    ) throws -> Value {
        let inputs = invocation.operation.inputs
        // One of another graph has that before its name: a program that adds very much at last goes
        // on in a next one.
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
            // What stands for nothing, if the type has it.
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

    /// Adds operations to the graph of this one, and waits until the coordinator has them for good.
    ///
    /// They start without waiting for this operation, unless they name it among their
    /// dependencies. What an earlier attempt at this operation has added already is left as it is,
    /// so that adding is safe to repeat: under the same name it must be the same operation, with
    /// the same options. (A deadline that is counted from now is another one in another attempt.)
    /// That takes as long as the coordinator is away.
    ///
    /// - Returns: How many of them are new, with what their conditions bring.
    /// - Throws: `Refusal` for a name that the graph has already, a dependency or a queue that it
    ///   has not, a cycle, a limit, or a graph that was cancelled; ``OperonError`` with the code
    ///   `invalid` for what cannot be sent. Then nothing was added. `CancellationError` if this
    ///   attempt was given up.
    @discardableResult
    public func add(_ operations: [NewOperation]) async throws -> Int {
        let descriptions = try operations.flatMap { try $0.descriptions(queue: queueName) }
        if let registry {
            for operation in operations { operation.register { registry.register($0) } }
        }
        var graph = GraphDescription(name: "added", operations: descriptions)
        graph.order = .submission
        let body: [UInt8]
        do throws(InsideError) {
            body = try InsideClient.body(of: graph)
        } catch {
            throw OperonError(.invalid, error.message)
        }
        switch await invocation.ask(.add(body)) {
        case .added(let count): return Int(count)
        case .refused(let refusal): throw refusal
        case .awaited, .read, .ended: throw CancellationError()
        }
    }

    /// Adds one operation to the graph of this one: see ``add(_:)``.
    ///
    /// - Parameters:
    ///   - operation: What to do.
    ///   - name: Its name, unique in the graph.
    ///   - dependencies: Names of operations that it waits for, unless they fail; for
    ///     other conditions add a ``NewOperation``.
    ///   - queue: The queue it belongs to, one that the graph has; `nil`: that of this operation.
    ///   - priority: Its place among ready operations; `nil`: as `options` say.
    ///   - options: How it is to be run; `nil`: as the operation itself says.
    /// - Returns: Whether it is new; an earlier attempt may have added it.
    /// - Throws: as ``add(_:)``.
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

    /// Waits until other operations have ended, those that this one has added for example.
    ///
    /// Until then this operation has no slot and no place in its queue, so that they are free for
    /// what it waits for; it keeps its exclusive keys, and its timeout goes on. When all have ended
    /// it goes on before anything new starts, as soon as its worker has a slot for it and its queue
    /// a place. One wait at a time: name all at once.
    ///
    /// - Parameter names: Of operations of its graph, or `graph/operation`; at most 10,000. None:
    ///   there is nothing to wait for.
    /// - Returns: How they ended, in the order of the names. A further round of one that had ended
    ///   is not waited for.
    ///   What they returned is read by ``value(of:as:)``.
    /// - Throws: `Refusal` for a name that there is not, one that waits for this operation itself
    ///   or needs a key that it holds, a second wait, or a limit. `CancellationError` if this
    ///   operation was asked to stop, or this attempt was given up.
    @discardableResult
    public func wait(for names: [String]) async throws -> [OutcomeKind] {
        guard !names.isEmpty else { return [] }
        switch await invocation.ask(.wait(names)) {
        case .awaited(let outcomes): return outcomes
        case .refused(let refusal): throw refusal
        case .added, .read, .ended: throw CancellationError()
        }
    }

    /// What an operation returned that has ended: one that ``wait(for:)`` waited for, for example.
    ///
    /// What it depends on is known without asking: ``output(of:as:)``. One that returned nothing,
    /// or did not succeed, has no output: that is an error, unless `Value` is an optional.
    ///
    /// - Parameters:
    ///   - name: Of an operation of its graph, or `graph/operation`.
    ///   - type: What to read it as. A command's output is the JSON that it wrote.
    /// - Throws: ``OperonError`` with the code `noOutput` or `undecodable`; `Refusal` for a name
    ///   that there is not, one that has not ended, or an output that is not kept any more.
    ///   `CancellationError` if this attempt was given up.
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

    /// Says how far it is, for those who look at it meanwhile. Cheap: of what is said within a
    /// quarter of a second the last counts. May be lost, as when it runs in a process of its own.
    ///
    /// - Parameters:
    ///   - progress: From 0 to 1; what is beyond counts as the nearer of both, and what is no
    ///     number as 0.
    ///   - text: What it is at; the first 256 bytes are shown.
    public func report(progress: Double, _ text: String? = nil) {
        let fraction = progress.isNaN ? 0 : min(max(progress, 0), 1)
        let shown = text?.cut(to: Limits().nameBytes)
        invocation.report(ReportedProgress(fraction: fraction, text: shown))
    }

    /// Appends a line to the operation's log, of which the last mebibyte is kept.
    public func log(_ message: String) { invocation.log(message) }
}
