import Glibc
import NIOConcurrencyHelpers
import Synchronization

/// One thread that runs its jobs in order. Work that blocks on a disk must not block a thread of
/// the cooperative pool.
///
/// Owned by a `SQLiteStore` or a `BackupFile`, which stops it at its own end.
final class BlockingThread: Sendable {
    private struct State {
        var jobs: [@Sendable () -> Void] = []
        var isStopping = false
    }

    private let state = Mutex(State())
    /// `true` if the thread has something to do.
    private let hasWork = ConditionLock(value: false)

    /// Starts the thread.
    ///
    /// - Throws: the error number if the system has no more threads.
    init() throws(ThreadFailure) {
        let start = unsafe Unmanaged.passRetained(self)
        var thread = pthread_t()
        let code = unsafe pthread_create(
            &thread,
            nil,
            { argument in
                guard let argument = unsafe argument else { return nil }
                unsafe Unmanaged<BlockingThread>.fromOpaque(argument).takeRetainedValue().work()
                return nil
            },
            start.toOpaque()
        )
        guard code == 0 else {
            unsafe start.release()
            throw ThreadFailure(code: code)
        }
        pthread_detach(thread)
    }

    struct ThreadFailure: Error {
        let code: Int32
    }

    /// Runs `job` after all earlier jobs and returns its result.
    func perform<Value: Sendable>(
        _ job: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            submit { continuation.resume(with: Result { try job() }) }
        }
    }

    /// Runs `job` after all earlier jobs and returns its result. `rest` runs before any later job,
    /// and its end is not awaited.
    func perform<Value: Sendable>(
        _ job: @escaping @Sendable () throws -> Value,
        andThen rest: @escaping @Sendable () -> Void
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            submit {
                continuation.resume(with: Result { try job() })
                rest()
            }
        }
    }

    private func submit(_ job: @escaping @Sendable () -> Void) {
        state.withLock { $0.jobs.append(job) }
        wake()
    }

    /// Ends the thread after all earlier jobs.
    func stop() {
        state.withLock { $0.isStopping = true }
        wake()
    }

    private func wake() {
        hasWork.lock()
        hasWork.unlock(withValue: true)
    }

    private func work() {
        while true {
            hasWork.lock(whenValue: true)
            hasWork.unlock(withValue: false)
            let (jobs, isStopping) = state.withLock { state in
                let jobs = state.jobs
                state.jobs = []
                return (jobs, state.isStopping)
            }
            for job in jobs { job() }
            if isStopping { return }
        }
    }
}
