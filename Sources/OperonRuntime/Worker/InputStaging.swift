import NIOConcurrencyHelpers
import OperonCore
import OperonModel

/// Where fetched inputs wait for the start of what needs them: in a file for a process, in memory
/// for anything else.
///
/// Owned by the executor. Takes the steps of an `OutputFetcher` in their order and says when they
/// are done; it decides nothing.
final class InputStaging: Sendable {
    private enum Place {
        case file(StoredInputs)
        case memory([NamedInput])
    }

    private struct Staged {
        let job: UInt64
        var place: Place
    }

    /// What was done, for the worker's agent.
    let progress: AsyncStream<WorkerAgent.InputProgress>
    private let continuation: AsyncStream<WorkerAgent.InputProgress>.Continuation
    private let processes: ProcessRunner
    private let staged = NIOLockedValueBox<[AttemptID: Staged]>([:])

    init(processes: ProcessRunner) {
        self.processes = processes
        // Unbounded here, bounded by the slots of the agent: one step of each at a time.
        (progress, continuation) = AsyncStream.makeStream()
    }

    /// What is known at once, if anything.
    func perform(_ step: OutputFetcher.Step) -> WorkerAgent.InputProgress? {
        switch step {
        case .begin(let operation, let job):
            guard let place = place(for: operation.work) else { return nil }
            staged.withLockedValue {
                $0[operation.held.attempt] = Staged(job: job, place: place)
            }
            return nil
        case .check(let hash, let bytes):
            return .checked(hash, isRight: ContentHash(of: bytes) == hash)
        case .give(let attempt, let job, let inputs): return give(inputs, to: attempt, job: job)
        case .abandon(let attempt, let job):
            let abandoned = staged.withLockedValue { staged in
                staged[attempt]?.job == job ? staged.removeValue(forKey: attempt) : nil
            }
            if case .file(let file) = abandoned?.place { processes.discard(file) }
            return nil
        }
    }

    private func place(for work: Work) -> Place? {
        switch work {
        case .command: processes.makeInputs().map { .file($0) }
        case .nothing, .wait, .registered, .external: .memory([])
        }
    }

    private func give(
        _ inputs: [NamedInput],
        to attempt: AttemptID,
        job: UInt64
    ) -> WorkerAgent.InputProgress? {
        let file = staged.withLockedValue { staged -> StoredInputs? in
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

    /// The file of an attempt that starts now; `nil`: its inputs came with it.
    func file(for attempt: AttemptID) -> StoredInputs? {
        guard case .file(let file) = take(attempt) else { return nil }
        return file
    }

    /// The inputs of an attempt that starts now, in memory; `nil`: they came with it.
    func inputs(for attempt: AttemptID) -> [NamedInput]? {
        guard case .memory(let inputs) = take(attempt) else { return nil }
        return inputs
    }

    private func take(_ attempt: AttemptID) -> Place? {
        staged.withLockedValue { $0.removeValue(forKey: attempt)?.place }
    }
}
