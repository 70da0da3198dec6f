package import OperonModel

/// Observes something outside of the cluster (files, a pipe, signals, a process, a queue of the
/// broker) and reports each occurrence. It decides nothing about what follows.
package protocol TriggerSource: Sendable {
    /// Observes until the task is cancelled, or until nothing more can occur.
    ///
    /// A source that cannot observe at present (the folder is missing, the broker is unreachable)
    /// says so as a status and tries again by itself, for ever.
    ///
    /// - Parameters:
    ///   - report: Returns when the occurrence is stored. The source reports one occurrence at a
    ///     time and in order, and keeps what follows (in the kernel, in the broker) until then. An
    ///     error that it throws ends the source with that error: the occurrence counts as not
    ///     reported.
    ///   - status: Called at each change of whether the source observes, and for each occurrence
    ///     that cannot be reported. It must return at once.
    /// - Throws: `TriggerSourceError` if the source can never observe; what `report` throws;
    ///   `CancellationError`.
    func run(
        _ report: @escaping @Sendable (Occurrence) async throws -> Void,
        status: @escaping @Sendable (TriggerSourceStatus) -> Void
    ) async throws
}
