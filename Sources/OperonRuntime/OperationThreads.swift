import DequeModule
import NIOConcurrencyHelpers

/// The threads on which registered code runs: as many as the worker has slots, started when they
/// are needed. So code may block, or compute for long, and nothing else of the worker waits for it.
///
/// `@unchecked Sendable`: everything that varies is touched under `lock` alone.
package final class OperationThreads: TaskExecutor, @unchecked Sendable {
    /// Its value: whether a thread that waits has anything to do.
    private let lock = ConditionLock(value: false)
    private let limit: Int
    /// One for each task of running operations that may go on.
    private var jobs = Deque<UnownedJob>()
    private var threadCount = 1
    private var busyCount = 0
    private var isStopped = false

    /// Starts the first of at most `limit` threads.
    package init(limit: Int) throws(ProcessRunnerError) {
        self.limit = max(1, limit)
        do throws(SystemError) {
            try startThread()
        } catch {
            throw ProcessRunnerError(message: "Operations cannot be run: \(error).")
        }
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        lock.lock()
        jobs.append(job)
        let needsThread = threadCount - busyCount < jobs.count && threadCount < limit
        if needsThread { threadCount += 1 }
        lock.unlock(withValue: true)
        guard needsThread else { return }
        do throws(SystemError) {
            try startThread()
        } catch {
            // The system has none left: those that run take it in turn.
            lock.lock()
            threadCount -= 1
            lock.unlock()
        }
    }

    /// Lets the threads end when they have nothing more to do. What goes on later starts them
    /// again.
    package func stop() {
        lock.lock()
        isStopped = true
        lock.unlock(withValue: true)
    }

    private func startThread() throws(SystemError) {
        try OwnThread.start("operon-code") { [self] in work() }
    }

    private func work() {
        while let job = next() {
            unsafe job.runSynchronously(on: asUnownedTaskExecutor())
            lock.lock()
            busyCount -= 1
            lock.unlock()
        }
    }

    /// Waits for the next job; `nil`: there will be none.
    private func next() -> UnownedJob? {
        lock.lock(whenValue: true)
        let job = jobs.popFirst()
        if job == nil { threadCount -= 1 } else { busyCount += 1 }
        lock.unlock(withValue: !jobs.isEmpty || isStopped)
        return job
    }
}
