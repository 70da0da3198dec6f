import COperonProcess
import Glibc
package import OperonCore
import OperonModel
import Synchronization

/// Keeps a program running: starts it, waits for its end, restarts it after a pause, and passes on
/// signals. A `RestartPolicy` decides what follows an end.
package actor Supervisor {
    /// A program to start. It shares this process's standard output and error.
    package struct Command: Sendable {
        /// The paths to try, in order.
        package var candidates: [String]
        package var arguments: [String]
        package var environment: [String: String]

        package init(
            candidates: [String],
            arguments: [String],
            environment: [String: String]
        ) {
            self.candidates = candidates
            self.arguments = arguments
            self.environment = environment
        }
    }

    private let command: Command
    private var policy: RestartPolicy
    private let restarting: @Sendable (RestartPolicy.End, Duration) -> Void
    private var child: ChildProcess?
    private var wasAsked = false
    private let asked = Latch()

    /// - Parameter restarting: Receives how the program ended and how long the pause will be.
    package init(
        _ command: Command,
        policy: RestartPolicy,
        restarting: @escaping @Sendable (RestartPolicy.End, Duration) -> Void
    ) {
        self.command = command
        self.policy = policy
        self.restarting = restarting
    }

    /// Runs until the program has ended for good; returns its exit code.
    package func run() async -> Int32 {
        while true {
            // A signal came during a pause: nothing runs.
            guard !wasAsked else { return 0 }
            let startedAt = SystemClock.now()
            let child = ChildProcess(command)
            self.child = child
            let end = await child.end()
            self.child = nil
            let lived = SystemClock.now() - startedAt
            switch policy.ended(end, after: lived, wasAsked: wasAsked) {
            case .end(let code): return code
            case .restart(let pause):
                restarting(end, pause)
                await asked.wait(within: pause)
            }
        }
    }

    /// Passes a signal on; from then on nothing is started.
    package func forward(_ signal: Int32) {
        wasAsked = true
        asked.open()
        child?.signal(signal)
    }
}

/// A child process, and the thread that started it and waits for it. The child is killed when that
/// thread ends, which happens only when this process ends. A gentler death signal would arrive
/// several times, once for each thread of a dying process.
private final class ChildProcess: Sendable {
    private enum State: Sendable {
        case starting(signals: [Int32])
        case running(pid_t)
        case ended
    }

    private let state = Mutex(State.starting(signals: []))
    private let ending: AsyncStream<RestartPolicy.End>

    init(_ command: Supervisor.Command) {
        let (ending, continuation) = AsyncStream<RestartPolicy.End>.makeStream()
        self.ending = ending
        do throws(SystemError) {
            try OwnThread.start("operon-child") { [self] in
                continuation.yield(run(command))
                continuation.finish()
            }
        } catch {
            continuation.yield(.notStarted)
            continuation.finish()
        }
    }

    func end() async -> RestartPolicy.End {
        for await end in ending { return end }
        return .notStarted
    }

    /// Sends a signal; a child that is being started gets it once it has started.
    func signal(_ number: Int32) {
        state.withLock { state in
            switch state {
            case .starting(let signals): state = .starting(signals: signals + [number])
            case .running(let process): kill(process, number)
            case .ended: break
            }
        }
    }

    /// Blocks while the child lives.
    private func run(_ command: Supervisor.Command) -> RestartPolicy.End {
        operon_process_keep_children()
        guard let process = ProcessSpawn.spawn(command) else {
            state.withLock { $0 = .ended }
            return .notStarted
        }
        state.withLock { state in
            if case .starting(let signals) = state {
                for number in signals { kill(process, number) }
            }
            state = .running(process)
        }
        operon_process_await(process)
        // The number belongs to the child until it is collected, so no signal reaches another
        // process.
        return state.withLock { state in
            state = .ended
            let end = operon_process_collect(process)
            guard end.state == 1 else { return .notStarted }
            return end.signaled != 0 ? .signal(end.value) : .exit(code: end.value)
        }
    }
}
