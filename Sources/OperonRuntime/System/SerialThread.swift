import COperonProcess
import Glibc
import Synchronization

/// Starts Operon's own threads, for blocking system calls, which no cooperative thread may make.
enum OwnThread {
    /// Runs `body` on a new detached thread. `name`: at most 15 bytes.
    static func start(_ name: String, _ body: @escaping @Sendable () -> Void) throws(SystemError) {
        final class Start: Sendable {
            let name: String
            let body: @Sendable () -> Void

            init(_ name: String, _ body: @escaping @Sendable () -> Void) {
                self.name = name
                self.body = body
            }
        }

        let start = unsafe Unmanaged.passRetained(Start(name, body))
        var thread = pthread_t()
        let status = unsafe pthread_create(
            &thread,
            nil,
            { argument in
                guard let argument = unsafe argument else { return nil }
                let start = unsafe Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
                unsafe operon_process_name_thread(start.name)
                start.body()
                return nil
            },
            start.toOpaque()
        )
        guard status == 0 else {
            unsafe start.release()
            throw SystemError(doing: "starting a thread", code: status)
        }
        pthread_detach(thread)
    }
}

/// One long-lived thread that performs jobs in order: for the files of a worker, or for the lines
/// to a slow reader. Its queue is unbounded: its callers must bound what they submit.
package final class SerialThread: Sendable {
    private struct State {
        var jobs: [@Sendable () -> Void] = []
        var isStopping = false
    }

    private let state = Mutex(State())
    private let wakeup: Descriptor

    /// Starts the thread. `name`: at most 15 bytes.
    package init(name: String) throws(SystemError) {
        wakeup = try Descriptor.wakeup(blocking: true)
        try OwnThread.start(name) { [self] in work() }
    }

    /// Appends a job.
    package func submit(_ job: @escaping @Sendable () -> Void) {
        let wasEmpty = state.withLock { state in
            state.jobs.append(job)
            return state.jobs.count == 1
        }
        if wasEmpty { wakeup.signal() }
    }

    /// Appends a job and waits for its result.
    func perform<Value: Sendable>(_ job: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            submit { continuation.resume(returning: job()) }
        }
    }

    /// Ends the thread after the jobs it already has.
    package func stop() {
        state.withLock { $0.isStopping = true }
        wakeup.signal()
    }

    private func work() {
        while true {
            wakeup.await()
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
