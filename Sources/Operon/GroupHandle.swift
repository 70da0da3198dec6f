internal import OperonModel
internal import OperonPorts

/// Several operations that their dependents see as one. The group has ended when all its parts
/// have.
///
/// The parts run wherever there is room and count against the limit of their queue. Only
/// dependencies order them. The group itself takes no slot while they run. Each part waits for
/// everything that the group depends on; an operation that depends on the group waits for all
/// parts. The group succeeds if every part succeeded or was cancelled. If a part failed or was
/// skipped, the group is skipped, with that part as the cause. Cancelling the group ends it at once
/// as cancelled and cancels its parts; parts that are running end when their code ends.
///
/// The group returns nothing: its parts may run anywhere, and no worker runs code for the group
/// itself. An operation that needs the values that the parts returned must depend on the parts as
/// well: `.after(group.parts)`.
public final class GroupHandle: AnyOperationHandle, @unchecked Sendable {
    /// What happens to the other parts once the group can no longer succeed.
    public enum FailurePolicy: Hashable, Sendable {
        /// The other parts go on.
        case goOn
        /// The other parts are cancelled, including parts of parts: waiting ones end, running ones
        /// are asked to stop. The coordinator does this even if this program has ended.
        case cancelSiblings
    }

    /// The parts in the order in which they were added.
    public let parts: [AnyOperationHandle]
    /// What happens to the other parts when one fails or is skipped.
    public let onFailure: FailurePolicy

    /// Creates a group of operations, each in no queue yet or already in one.
    ///
    /// - Parameters:
    ///   - parts: The operations of the group.
    ///   - onFailure: What happens to the other parts when one fails or is skipped.
    ///   - options: The options of the group itself, which runs no code: its name, for example.
    public init(
        _ parts: [AnyOperationHandle],
        onFailure: FailurePolicy = .goOn,
        options: OperationOptions = OperationOptions()
    ) {
        self.parts = parts
        self.onFailure = onFailure
        super.init(options: options)
    }

    /// Creates a group with a result builder.
    ///
    /// - Parameters:
    ///   - name: The name that is shown to people; `nil`: its kind and a number.
    ///   - onFailure: What happens to the other parts when one fails or is skipped.
    ///   - parts: The operations of the group.
    public convenience init(
        _ name: String? = nil,
        onFailure: FailurePolicy = .goOn,
        @OperationBuilder _ parts: () -> [AnyOperationHandle]
    ) {
        self.init(parts(), onFailure: onFailure, options: OperationOptions(name: name))
    }

    /// `nothing`: a join, for which a worker needs no code.
    public override var kind: String { Work.nothingKind }

    override func work() throws -> Work { .nothing }

    override var cancelsSiblings: Bool { onFailure == .cancelSiblings }

    /// The parts, including the parts of nested groups.
    private var allParts: [AnyOperationHandle] {
        parts.flatMap { part in ((part as? GroupHandle)?.allParts ?? []) + [part] }
    }

    /// Parts come first, so that names are chosen in their order.
    override var members: [AnyOperationHandle] {
        let parts = parts.flatMap(\.members)
        let own = draftDependencies
        for part in parts { for (handle, condition) in own { part.wait(for: handle, condition) } }
        // Depends on nested parts directly as well, so that they are siblings, too.
        wait(forAll: cancelsSiblings ? allParts : self.parts)
        return parts + [self]
    }

    override func cancelParts(reason: String) async throws {
        for part in parts { try await part.cancel(reason: reason) }
    }
}

/// Collects operations: handles, and values, for which it creates handles.
@resultBuilder public enum OperationBuilder {
    /// A handle.
    public static func buildExpression(_ handle: AnyOperationHandle) -> [AnyOperationHandle] {
        [handle]
    }

    /// Several handles.
    public static func buildExpression(_ handles: [AnyOperationHandle]) -> [AnyOperationHandle] {
        handles
    }

    /// A value, for which a handle is created.
    public static func buildExpression<Op: Operation>(
        _ operation: Op
    ) -> [AnyOperationHandle] where Op.Output: Codable {
        [OperationHandle(work: operation, options: nil)]
    }

    /// A value that returns nothing, for which a handle is created.
    @_disfavoredOverload
    public static func buildExpression<Op: Operation>(
        _ operation: Op
    ) -> [AnyOperationHandle] where Op.Output == Void {
        [OperationHandle(work: operation, options: nil)]
    }

    /// Joins the parts in order.
    public static func buildBlock(_ parts: [AnyOperationHandle]...) -> [AnyOperationHandle] {
        parts.flatMap { $0 }
    }

    /// An `if` without `else`.
    public static func buildOptional(_ part: [AnyOperationHandle]?) -> [AnyOperationHandle] {
        part ?? []
    }

    /// An `if`.
    public static func buildEither(first part: [AnyOperationHandle]) -> [AnyOperationHandle] {
        part
    }

    /// An `else`.
    public static func buildEither(second part: [AnyOperationHandle]) -> [AnyOperationHandle] {
        part
    }

    /// A `for`.
    public static func buildArray(_ parts: [[AnyOperationHandle]]) -> [AnyOperationHandle] {
        parts.flatMap { $0 }
    }
}

extension AnyOperationHandle {
    /// Adds dependencies on other operations, for example on all parts of a group, and returns the
    /// handle. For handles that are in no queue yet.
    ///
    /// - Returns: This handle.
    @discardableResult
    public func after(
        _ others: [AnyOperationHandle],
        when condition: DependencyCondition = .unlessFailed
    ) -> Self {
        wait(forAll: others, condition)
        return self
    }

    /// Adds dependencies on other operations and returns the handle. For handles that are in no
    /// queue yet. A handle that is in a queue is left unchanged; use ``addDependency(_:when:)`` for
    /// it, which asks the coordinator.
    ///
    /// - Returns: This handle.
    @discardableResult
    public func after(
        _ others: AnyOperationHandle...,
        when condition: DependencyCondition = .unlessFailed
    ) -> Self {
        wait(forAll: others, condition)
        return self
    }
}

extension OperationQueue {
    /// Adds a whole graph: all of its operations or none.
    ///
    /// ```swift
    /// let download = OperationHandle(Download(url))
    /// try await queue.addOperations {
    ///     download
    ///     GroupHandle("sizes") {
    ///         for width in [100, 200, 400] { Resize(width: width) }
    ///     }
    ///     .after(download)
    /// }
    /// ```
    ///
    /// - Returns: The handles, in order.
    /// - Throws: The same errors as ``addOperations(_:waitUntilFinished:)``.
    @discardableResult
    public func addOperations(
        waitUntilFinished: Bool = false,
        @OperationBuilder _ graph: () -> [AnyOperationHandle]
    ) async throws -> [AnyOperationHandle] {
        let handles = graph()
        try await addOperations(handles, waitUntilFinished: waitUntilFinished)
        return handles
    }
}
