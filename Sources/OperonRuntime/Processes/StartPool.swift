import COperonProcess
import DequeModule
import Glibc
import OperonModel
import Synchronization

/// Starts processes one after the other on a thread of its own. If a start takes long, another
/// thread takes over: a directory or a program on an unresponsive file system delays only the
/// thread that starts it.
///
/// Owned by the `ProcessRunner`. The threads live as long as the runner, because the death signal
/// of a process is tied to the thread that started it. One more thread watches the starts while
/// there are any. It ends starts that were asked to stop, exceed their timeouts or take longer than
/// any start should. It also reports those whose thread never returns.
final class StartPool: Sendable {
    /// The result of one start.
    enum Result: Sendable {
        case running(RunningProcess)
        case failed(SpawnFailure)
        case short(SystemError)
    }

    typealias ThreadStart =
        @Sendable (_ name: String, _ body: @escaping @Sendable () -> Void) throws(SystemError) ->
        Void

    struct Configuration: Sendable {
        /// A start that takes longer does not delay other starts. A usual start takes a
        /// millisecond.
        var patience = Duration.milliseconds(50)
        /// The longest time for a start: a file server that restarts is back within a minute.
        var longest = Duration.seconds(60)
        /// How long a start may take to end after its child was killed; after that it is reported
        /// without waiting for its thread. A kill ends any wait except one for a file system that
        /// cannot be interrupted.
        var killTime = Duration.seconds(1)
        /// The most threads. Each start that hangs holds one. If all hang, the worker gives back
        /// what it should start, until one of them returns.
        var threadsMax = 64
        var now: @Sendable () -> Timestamp = { SystemClock.now() }
        /// Whether a thread watches the starts; otherwise a test calls `look`.
        var isWatched = true
        var startThread: ThreadStart = OwnThread.start
    }

    /// Why a start is ended.
    private enum Reason {
        case stopped
        case timedOut
        case tooLong
    }

    private struct Running {
        let request: SpawnRequest
        let progress: StartProgress
        let since: Timestamp
        var isOverdue = false
        /// Its thread has returned and reports it.
        var isReturned = false
        var ending: (reason: Reason, since: Timestamp)?
    }

    private struct State {
        var queue = Deque<SpawnRequest>()
        /// The current starts in the order in which they began, usually one.
        var running: [Running] = []
        /// Starts that were reported, but whose threads have not returned.
        var lost: Set<UInt64> = []
        var threadCount = 0
        var idleCount = 0
        /// The number of threads that were woken or started, or have finished a start, and have
        /// not checked the queue yet.
        var comingCount = 0
        var isWatching = false
        var isClosing = false
        var isStopped = false
        var whenClosed: [@Sendable () -> Void] = []

        /// Whether a thread will take the next start soon.
        var isServed: Bool { comingCount > 0 || running.contains { !$0.isOverdue } }
    }

    private enum Help {
        case none
        case wake
        case start
    }

    private typealias Report = (request: SpawnRequest, outcome: SpawnRequest.Outcome)

    /// The time between two checks of starts that take long.
    private static let lookMilliseconds: Int32 = 50

    private let configuration: Configuration
    private let spawn: @Sendable (SpawnRequest, StartProgress) -> Result
    private let deliver: @Sendable (RunningProcess) -> Void
    private let state = Mutex(State())
    private let wakeup: Descriptor
    private let watchWakeup: Descriptor

    /// Starts the first thread and the watching thread.
    ///
    /// - Parameters:
    ///   - spawn: Starts a process; blocks.
    ///   - deliver: Takes over a started process.
    init(
        _ configuration: Configuration = Configuration(),
        spawn: @escaping @Sendable (SpawnRequest, StartProgress) -> Result,
        deliver: @escaping @Sendable (RunningProcess) -> Void
    ) throws(SystemError) {
        self.configuration = configuration
        self.spawn = spawn
        self.deliver = deliver
        wakeup = try Descriptor.semaphore()
        watchWakeup = try Descriptor.wakeup(blocking: true)
        state.withLock { state in
            state.threadCount = 1
            state.comingCount = 1
        }
        try OwnThread.start("operon-spawn") { [self] in work() }
        if configuration.isWatched {
            try OwnThread.start("operon-starts") { [self] in watch() }
        }
    }

    /// The number of threads that start processes.
    var threadCount: Int { state.withLock { $0.threadCount } }

    /// Appends a start. Its completion is called once: on a thread of the pool or, if nothing can
    /// be started, before this returns. If the process runs, its new owner calls the completion.
    func submit(_ request: SpawnRequest) {
        let (isRefused, help, watches) = state.withLock { state -> (Bool, Help, Bool) in
            guard !state.isClosing else { return (true, .none, false) }
            state.queue.append(request)
            defer { state.isWatching = true }
            return (false, callHelp(&state), !state.isWatching)
        }
        if isRefused { return request.completion(.stopped) }
        give(help)
        if watches { watchWakeup.signal() }
    }

    /// Starts nothing more. Calls `done` when every start has been handed over or reported.
    func close(_ done: @escaping @Sendable () -> Void) {
        let (refused, isOver) = state.withLock { state -> (Deque<SpawnRequest>, Bool) in
            state.isClosing = true
            defer { state.queue = [] }
            let isOver = state.running.isEmpty
            if !isOver { state.whenClosed.append(done) }
            return (state.queue, isOver)
        }
        for request in refused { request.completion(.stopped) }
        if isOver { done() }
    }

    /// Lets the threads end, which also ends the processes they started. A thread that hangs ends
    /// when its start returns.
    func stop() {
        let count = state.withLock { state in
            state.isStopped = true
            return state.threadCount
        }
        for _ in 0..<count { wakeup.signal() }
        watchWakeup.signal()
    }

    // MARK: - Threads that start processes

    /// Whether a further thread is needed for the waiting starts, and how to get it.
    private func callHelp(_ state: inout State) -> Help {
        guard !state.queue.isEmpty, !state.isServed else { return .none }
        if state.idleCount > 0 {
            state.idleCount -= 1
            state.comingCount += 1
            return .wake
        }
        guard state.threadCount < configuration.threadsMax else { return .none }
        state.threadCount += 1
        state.comingCount += 1
        return .start
    }

    private func give(_ help: Help) {
        switch help {
        case .none: break
        case .wake: wakeup.signal()
        case .start:
            do throws(SystemError) {
                try configuration.startThread("operon-spawn") { [self] in work() }
            } catch {
                // No thread will take the waiting starts: they are given back.
                let waiting = state.withLock { state -> Deque<SpawnRequest> in
                    state.threadCount -= 1
                    state.comingCount -= 1
                    guard !state.isServed else { return [] }
                    defer { state.queue = [] }
                    return state.queue
                }
                for request in waiting { request.completion(.short(error)) }
            }
        }
    }

    private func work() {
        while true {
            while let next = next() { perform(next) }
            guard !state.withLock({ $0.isStopped }) else { return }
            wakeup.await()
            guard !state.withLock({ $0.isStopped }) else { return }
        }
    }

    private func next() -> Running? {
        state.withLock { state in
            state.comingCount -= 1
            guard let request = state.queue.popFirst() else {
                state.idleCount += 1
                return nil
            }
            let running = Running(
                request: request,
                progress: StartProgress(),
                since: configuration.now()
            )
            state.running.append(running)
            return running
        }
    }

    private func perform(_ start: Running) {
        let request = start.request
        // A request that was asked to stop before its start is not started.
        let result = request.stopSignal.isRequested ? nil : spawn(request, start.progress)
        let id = request.id
        let (isLost, ending) = state.withLock { state -> (Bool, Reason?) in
            guard let place = state.running.firstIndex(where: { $0.request.id == id }) else {
                return (state.lost.remove(id) != nil, nil)
            }
            // From here on only this thread handles the start.
            state.running[place].isReturned = true
            return (false, state.running[place].ending?.reason)
        }
        if isLost || ending != nil, case .running(let process) = result { process.discard() }
        if let ending {
            request.completion(outcome(of: start, ending))
        } else if !isLost {
            hand(over: result, of: request)
        }
        // After the hand-over, because the caller that closes the pool waits for that as well.
        let closed = state.withLock { state in
            state.running.removeAll { $0.request.id == id }
            state.comingCount += 1
            return takeClosed(&state)
        }
        for done in closed { done() }
    }

    private func hand(over result: Result?, of request: SpawnRequest) {
        switch result {
        case .running(let process): deliver(process)
        case .failed(let failure): request.completion(.failed(failure))
        case .short(let error): request.completion(.short(error))
        case nil: request.completion(.stopped)
        }
    }

    private func takeClosed(_ state: inout State) -> [@Sendable () -> Void] {
        guard state.running.isEmpty else { return [] }
        defer { state.whenClosed = [] }
        return state.whenClosed
    }

    // MARK: - The watching thread

    private func watch() {
        while true {
            watchWakeup.await()
            while !state.withLock({ $0.isStopped }) {
                var polled = pollfd(fd: watchWakeup.number, events: Int16(POLLIN), revents: 0)
                _ = unsafe poll(&polled, 1, Self.lookMilliseconds)
                look()
                let isOver = state.withLock { state in
                    guard state.queue.isEmpty, state.running.isEmpty else { return false }
                    state.isWatching = false
                    return true
                }
                if isOver { break }
            }
            if state.withLock({ $0.isStopped }) { return }
        }
    }

    /// Ends the starts that must end, reports those that hang, and makes sure that a thread takes
    /// the waiting ones.
    func look() {
        let now = configuration.now()
        var reports: [Report] = []
        let (help, closed) = state.withLock { state -> (Help, [@Sendable () -> Void]) in
            for place in state.running.indices.reversed() {
                let start = state.running[place]
                guard !start.isReturned, now - start.since >= configuration.patience
                else { continue }
                state.running[place].isOverdue = true
                if let report = end(place, &state, at: now) { reports.append(report) }
            }
            let help = callHelp(&state)
            if help == .none, !state.queue.isEmpty, !state.isServed {
                let error = SystemError(
                    doing: "starting a process while \(state.threadCount) starts hang",
                    code: EAGAIN
                )
                for request in state.queue { reports.append((request, .short(error))) }
                state.queue = []
            }
            return (help, takeClosed(&state))
        }
        give(help)
        for (request, outcome) in reports { request.completion(outcome) }
        for done in closed { done() }
    }

    /// Kills the child of a start that must end; reports the start if that did not help.
    private func end(_ place: Int, _ state: inout State, at now: Timestamp) -> Report? {
        let start = state.running[place]
        guard let ending = start.ending else {
            guard let reason = reason(to: start, state.isClosing, at: now) else { return nil }
            state.running[place].ending = (reason, now)
            start.progress.interrupt()
            return nil
        }
        guard now - ending.since >= configuration.killTime else { return nil }
        state.running.remove(at: place)
        state.lost.insert(start.request.id)
        return (start.request, outcome(of: start, ending.reason))
    }

    private func reason(to start: Running, _ isClosing: Bool, at now: Timestamp) -> Reason? {
        if isClosing || start.request.stopSignal.isRequested { return .stopped }
        let lasted = now - start.since
        if let timeout = start.request.timeout, lasted >= timeout { return .timedOut }
        return lasted >= configuration.longest ? .tooLong : nil
    }

    private func outcome(of start: Running, _ reason: Reason) -> SpawnRequest.Outcome {
        let held = Self.holder(of: start)
        switch reason {
        case .stopped: return .stopped
        case .timedOut:
            return .timedOut("the process had not started when its time was over: \(held)")
        case .tooLong:
            let seconds = configuration.longest.components.seconds
            return .failed(
                SpawnFailure(message: "The process did not start within \(seconds) s: \(held).")
            )
        }
    }

    /// What a start waits for, as far as can be seen.
    private static func holder(of start: Running) -> String {
        let request = start.request
        switch start.progress.step {
        case OPERON_PROCESS_DIRECTORY where request.directory != nil:
            return "the directory “\(request.directory ?? "")” does not answer"
        case OPERON_PROCESS_EXECUTE:
            let program = request.arguments.first ?? ""
            return "the file system that has the program “\(program)” does not answer"
        default: return "the system does not answer"
        }
    }
}
