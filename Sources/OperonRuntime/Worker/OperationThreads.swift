import DequeModule
import Glibc
import Synchronization

/// The threads on which registered code runs: as many as the worker has slots, each started when it
/// is needed. Code may block or compute for long here without delaying the rest of the worker.
///
/// Waking a thread costs more than most jobs do. If a thread is about to look for its next job
/// anyway, the job is left to it and no other thread is woken.
package final class OperationThreads: TaskExecutor {
    private struct State {
        /// One job for each task of a running operation that can continue.
        var jobs = Deque<UnownedJob>()
        var threadCount = 0
        /// The number of threads that sleep and have not been woken.
        var parkedCount = 0
        /// The number of threads that will look for a job next, without being woken again.
        var comingCount = 0
        /// Every thread, and whether it announced during its current job that it will look for
        /// another.
        var isHandingOver: [pthread_t: Bool] = [:]
        var isStopped = false
    }

    private enum Step {
        case run(UnownedJob)
        case sleep
        case end
    }

    private let state = Mutex(State())
    private let limit: Int
    private let wakeup: Descriptor

    /// Starts the first of at most `limit` threads.
    package init(limit: Int) throws(ProcessRunnerError) {
        self.limit = max(1, limit)
        do throws(SystemError) {
            wakeup = try Descriptor.semaphore()
            state.withLock { state in
                state.threadCount = 1
                state.comingCount = 1
            }
            try startThread()
        } catch {
            throw ProcessRunnerError(message: "Operations cannot be run: \(error).")
        }
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let (wakes, starts) = state.withLock { state -> (Bool, Bool) in
            state.jobs.append(job)
            guard state.jobs.count > state.comingCount else { return (false, false) }
            if state.parkedCount > 0 {
                state.parkedCount -= 1
                state.comingCount += 1
                return (true, false)
            }
            guard state.threadCount < limit else { return (false, false) }
            state.threadCount += 1
            state.comingCount += 1
            return (false, true)
        }
        if wakes { wakeup.signal() }
        guard starts else { return }
        do throws(SystemError) {
            try startThread()
        } catch {
            // The system has no thread left: the existing threads take the jobs in turn.
            state.withLock { state in
                state.threadCount -= 1
                state.comingCount -= 1
            }
        }
    }

    /// To be called as the last action of a job. Jobs that `body` enqueues are left to this thread
    /// where possible, because it is about to be free.
    func handOver(_ body: () -> Void) {
        let thread = pthread_self()
        state.withLock { state in
            guard state.isHandingOver[thread] == false else { return }
            state.isHandingOver[thread] = true
            state.comingCount += 1
        }
        body()
    }

    /// Lets the threads end when they have no more jobs. Code that continues later starts them
    /// again.
    package func stop() {
        let sleeping = state.withLock { state in
            state.isStopped = true
            defer { state.parkedCount = 0 }
            state.comingCount += state.parkedCount
            return state.parkedCount
        }
        for _ in 0..<sleeping { wakeup.signal() }
    }

    private func startThread() throws(SystemError) {
        try OwnThread.start("operon-code") { [self] in
            Self.beAsNiceAsTheProcess()
            work()
        }
    }

    /// A thread inherits the niceness of the thread that starts it. Where Dispatch has the
    /// privilege, its threads have a lower niceness than their process; without this call, the
    /// threads of a child would run as if the child had no niceness.
    private static func beAsNiceAsTheProcess() {
        let which = __priority_which_t(PRIO_PROCESS.rawValue)
        let niceness = getpriority(which, id_t(getpid()))
        if getpriority(which, 0) < niceness { _ = setpriority(which, 0, niceness) }
    }

    private func work() {
        let thread = pthread_self()
        state.withLock { $0.isHandingOver[thread] = false }
        while true {
            switch next(thread) {
            case .run(let job):
                unsafe job.runSynchronously(on: asUnownedTaskExecutor())
                state.withLock { state in
                    if state.isHandingOver[thread] == false { state.comingCount += 1 }
                    state.isHandingOver[thread] = false
                }
            case .sleep: wakeup.await()
            case .end: return
            }
        }
    }

    /// Takes the next step of a thread that has come for a job.
    private func next(_ thread: pthread_t) -> Step {
        state.withLock { state in
            state.comingCount -= 1
            if let job = state.jobs.popFirst() { return .run(job) }
            guard state.isStopped else {
                state.parkedCount += 1
                return .sleep
            }
            state.threadCount -= 1
            state.isHandingOver[thread] = nil
            return .end
        }
    }
}
