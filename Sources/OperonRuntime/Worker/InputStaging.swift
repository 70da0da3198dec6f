import OperonCore
import OperonModel
import Synchronization

/// Keeps fetched inputs until the operation that takes them starts: in a file for a process, in
/// memory for any other operation.
///
/// Owned by the executor. Performs the steps of an `OutputFetcher` in their order and reports when
/// they are done; it decides nothing.
final class InputStaging: Sendable {
    private enum Place {
        case file(StoredInputs)
        case memory([NamedInput])
    }

    private struct Staged {
        let job: UInt64
        var place: Place
    }

    /// Reports of completed steps, for the worker's agent.
    let progress: AsyncStream<WorkerAgent.InputProgress>
    private let continuation: AsyncStream<WorkerAgent.InputProgress>.Continuation
    private let processes: ProcessRunner
    private let staged = Mutex<[AttemptID: Staged]>([:])

    init(processes: ProcessRunner) {
        self.processes = processes
        // This stream is unbounded, but the agent's slots bound it: each has one step at a time.
        (progress, continuation) = AsyncStream.makeStream()
    }

    /// Performs a step; returns its result if that is known at once.
    func perform(_ step: OutputFetcher.Step) -> WorkerAgent.InputProgress? {
        switch step {
        case .begin(let operation, let job):
            guard let place = place(for: operation) else { return nil }
            staged.withLock {
                $0[operation.held.attempt] = Staged(job: job, place: place)
            }
            return nil
        case .check(let hash, let bytes):
            return .checked(hash, isRight: ContentHash(of: bytes) == hash)
        case .give(let attempt, let job, let inputs): return give(inputs, to: attempt, job: job)
        case .abandon(let attempt, let job):
            let abandoned = staged.withLock { staged in
                staged[attempt]?.job == job ? staged.removeValue(forKey: attempt) : nil
            }
            if case .file(let file) = abandoned?.place { processes.discard(file) }
            return nil
        }
    }

    private func place(for operation: DispatchedOperation) -> Place? {
        switch operation.work {
        case .command: processes.makeInputs(ofQueue: operation.queue).map { .file($0) }
        case .nothing, .wait, .registered, .external: .memory([])
        }
    }

    private func give(
        _ inputs: [NamedInput],
        to attempt: AttemptID,
        job: UInt64
    ) -> WorkerAgent.InputProgress? {
        let file = staged.withLock { staged -> StoredInputs? in
            guard let entry = staged[attempt], entry.job == job else { return nil }
            switch entry.place {
            case .file(let file): return file
            case .memory(let before):
                staged[attempt]?.place = .memory(before + inputs)
                return nil
            }
        }
        guard let file else { return .stored(attempt, job: job) }
        processes.store(inputs, in: file) { [continuation] failure in
            continuation.yield(
                failure.map { .failed(attempt, job: job, $0) } ?? .stored(attempt, job: job)
            )
        }
        return nil
    }

    /// Takes the inputs file of an attempt that starts now; `nil`: the dispatch carried its inputs.
    func file(for attempt: AttemptID) -> StoredInputs? {
        guard case .file(let file) = take(attempt) else { return nil }
        return file
    }

    /// Takes the inputs, in memory, of an attempt that starts now; `nil`: the dispatch carried
    /// them.
    func inputs(for attempt: AttemptID) -> [NamedInput]? {
        guard case .memory(let inputs) = take(attempt) else { return nil }
        return inputs
    }

    private func take(_ attempt: AttemptID) -> Place? {
        staged.withLock { $0.removeValue(forKey: attempt)?.place }
    }
}
