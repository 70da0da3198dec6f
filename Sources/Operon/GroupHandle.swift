internal import OperonModel
internal import OperonPorts

/// Operations that are one to those who wait for them: ended when all of its parts have.
///
/// The parts run wherever there is room, count against their queue's limit, and have no order but
/// by dependencies. The group itself takes no slot while they run. What the group depends on, each
/// part waits for; what depends on the group waits for all parts. It succeeds when all parts did or
/// were cancelled, and is skipped if one failed or was skipped (because of that one). Cancelling it
/// ends it at once as cancelled, and cancels its parts: what runs of them ends when it ends.
///
/// The group returns nothing: its parts may run anywhere, and no worker runs the group itself. What
/// needs what they returned depends on the parts as well: `.after(group.parts)`.
public final class GroupHandle: AnyOperationHandle, @unchecked Sendable {
    /// What becomes of the other parts once the group cannot succeed any more.
    public enum FailurePolicy: Hashable, Sendable {
        /// They go on.
        case goOn
        /// They are cancelled: what waits ends, what runs is asked to stop. Parts of parts, too.
        /// The coordinator sees to it, whatever becomes of this program.
        case cancelSiblings
    }

    /// In the order of adding.
    public let parts: [AnyOperationHandle]
    /// What becomes of the others when one part fails, or is skipped.
    public let onFailure: FailurePolicy

    /// A group of operations that are in no queue yet, or in one already.
    ///
    /// - Parameters:
    ///   - parts: What belongs to it.
    ///   - onFailure: What becomes of the others when one part fails, or is skipped.
    ///   - options: How the group itself is added, which runs nowhere: its name, for example.
    public init(
        _ parts: [AnyOperationHandle],
        onFailure: FailurePolicy = .goOn,
        options: OperationOptions = OperationOptions()
    ) {
        self.parts = parts
        self.onFailure = onFailure
        super.init(options: options)
    }

    /// A group, part by part.
    ///
    /// - Parameters:
    ///   - name: What people call it; `nil`: its kind and a number.
    ///   - onFailure: What becomes of the others when one part fails, or is skipped.
    ///   - parts: What belongs to it.
    public convenience init(
        _ name: String? = nil,
        onFailure: FailurePolicy = .goOn,
        @OperationBuilder _ parts: () -> [AnyOperationHandle]
    ) {
        self.init(parts(), onFailure: onFailure, options: OperationOptions(name: name))
    }

    /// A join: no worker has to know anything to run it.
    public override var kind: String { Work.nothingKind }

    override func work() throws -> Work { .nothing }

    override var cancelsSiblings: Bool { onFailure == .cancelSiblings }

    /// Those of groups among them, too.
    private var allParts: [AnyOperationHandle] {
        parts.flatMap { part in ((part as? GroupHandle)?.allParts ?? []) + [part] }
    }

    /// Parts first, so that names are chosen in their order.
    override var members: [AnyOperationHandle] {
        let parts = parts.flatMap(\.members)
        let own = draftDependencies
        for part in parts { for (handle, condition) in own { part.wait(for: handle, condition) } }
        // Directly for parts of parts as well: they are siblings, too.
        wait(forAll: cancelsSiblings ? allParts : self.parts)
        return parts + [self]
    }

    override func cancelParts(reason: String) async throws {
        for part in parts { try await part.cancel(reason: reason) }
    }
}

/// Collects operations: handles, and values that get one.
@resultBuilder public enum OperationBuilder {
    /// A handle.
    public static func buildExpression(_ handle: AnyOperationHandle) -> [AnyOperationHandle] {
        [handle]
    }

    /// Several handles.
    public static func buildExpression(_ handles: [AnyOperationHandle]) -> [AnyOperationHandle] {
        handles
    }

    /// A value, which needs no handle of its own here.
    public static func buildExpression<Op: Operation>(
        _ operation: Op
    ) -> [AnyOperationHandle] where Op.Output: Codable {
        [OperationHandle(work: operation, options: nil)]
    }

    /// A value that returns nothing.
    @_disfavoredOverload
    public static func buildExpression<Op: Operation>(
        _ operation: Op
    ) -> [AnyOperationHandle] where Op.Output == Void {
        [OperationHandle(work: operation, options: nil)]
    }

    /// One behind the other.
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
    /// Waits for others, in one expression: all parts of a group, for example. For handles that are
    /// in no queue yet.
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

    /// Waits for others, in one expression: for handles that are in no queue yet. One that is stays
    /// as it is: ``addDependency(_:when:)`` asks the coordinator.
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
    /// Adds a whole graph: all of it, or nothing.
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
    /// - Returns: Their handles, in order.
    /// - Throws: as ``addOperations(_:waitUntilFinished:)``.
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
