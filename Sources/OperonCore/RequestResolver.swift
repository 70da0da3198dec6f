package import OperonModel

/// Finds what requests of running operations name, because the scheduler knows only numbers. An
/// answer depends on nothing but the request and what the resolver was told before: it does no I/O,
/// and reads no clock.
///
/// `notices` are those of the step so far. An operation may have ended in it, so its result is
/// found there.
package protocol RequestResolver {
    /// Compiles the operations that a running operation adds to its graph.
    ///
    /// - Returns: `nil` if this operation has added all of them before.
    /// - Throws: The refusal that the running operation gets.
    mutating func compile(
        _ request: AdditionRequest,
        of held: HeldAttempt,
        to base: CompiledAddition.Base,
        _ notices: [Scheduler.Notice]
    ) throws(Refusal) -> CompiledAddition?

    /// The scheduler accepts the addition that was compiled last. Later requests can name it.
    mutating func added(_ addition: CompiledAddition, by held: HeldAttempt)

    /// The operations that a running operation waits for, in the order of their names.
    mutating func awaited(
        _ request: WaitRequest,
        of held: HeldAttempt
    ) throws(Refusal) -> [OperationID]

    /// The output of the operation that a running operation names.
    mutating func output(
        _ request: ReadRequest,
        of held: HeldAttempt,
        _ notices: [Scheduler.Notice]
    ) throws(Refusal) -> FoundOutput
}

/// An operation that was found by its name, and its output.
package struct FoundOutput: Hashable, Sendable {
    package enum Content: Hashable, Sendable {
        /// `nil`: the operation left none.
        case loaded(Payload?)
        /// It is in a store, and is not loaded yet: the worker has to ask again.
        case notLoaded
    }

    package var operation: OperationID
    package var content: Content

    package init(_ operation: OperationID, _ content: Content) {
        self.operation = operation
        self.content = content
    }
}
