import DequeModule
import Glibc
import NIOConcurrencyHelpers

/// The threads on which registered code runs: as many as the worker has slots, started when they
/// are needed. So code may block, or compute for long, and nothing else of the worker waits for it.
///
/// To wake a thread costs more than most of what is done with one job: a thread that is about to
/// look for its next job by itself is counted on, and nobody else is woken in its place.
package final class OperationThreads: TaskExecutor {
    private struct State {
        /// One for each task of running operations that may go on.
        var jobs = Deque<UnownedJob>()
        var threadCount = 0
        /// Those that sleep, and that nobody has woken.
        var parkedCount = 0
        /// Those that will look for a job next, without being woken again.
        var comingCount = 0
        /// Every thread, and whether it said in the middle of its job that it is coming.
        var isHandingOver: [pthread_t: Bool] = [:]
        var isStopped = false
    }

    private enum Step {
        case run(UnownedJob)
        case sleep
        case end
    }

    private let state = NIOLockedValueBox(State())
    private let limit: Int
    private let wakeup: Descriptor

    /// Starts the first of at most `limit` threads.
    package init(limit: Int) throws(ProcessRunnerError) {
        self.limit = max(1, limit)
        do throws(SystemError) {
            wakeup = try Descriptor.semaphore()
            state.withLockedValue { state in
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
        let (wakes, starts) = state.withLockedValue { state -> (Bool, Bool) in
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
            // The system has none left: those that run take it in turn.
            state.withLockedValue { state in
                state.threadCount -= 1
                state.comingCount -= 1
            }
        }
    }

    /// To be called as the last act of a job: what `body` enqueues is left to this thread, as far
    /// as it can be, for it is about to be free.
    func handOver(_ body: () -> Void) {
        let thread = pthread_self()
        state.withLockedValue { state in
            guard state.isHandingOver[thread] == false else { return }
            state.isHandingOver[thread] = true
            state.comingCount += 1
        }
        body()
    }

    /// Lets the threads end when they have nothing more to do. What goes on later starts them
    /// again.
    package func stop() {
        let sleeping = state.withLockedValue { state in
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

    /// A thread begins as nice as the one that starts it, and where Dispatch has the privilege, its
    /// own threads are less nice than their process: a child's would be as if it had none.
    private static func beAsNiceAsTheProcess() {
        let which = __priority_which_t(PRIO_PROCESS.rawValue)
        let niceness = getpriority(which, id_t(getpid()))
        if getpriority(which, 0) < niceness { _ = setpriority(which, 0, niceness) }
    }

    private func work() {
        let thread = pthread_self()
        state.withLockedValue { $0.isHandingOver[thread] = false }
        while true {
            switch next(thread) {
            case .run(let job):
                unsafe job.runSynchronously(on: asUnownedTaskExecutor())
                state.withLockedValue { state in
                    if state.isHandingOver[thread] == false { state.comingCount += 1 }
                    state.isHandingOver[thread] = false
                }
            case .sleep: wakeup.await()
            case .end: return
            }
        }
    }

    /// What a thread that came does.
    private func next(_ thread: pthread_t) -> Step {
        state.withLockedValue { state in
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
