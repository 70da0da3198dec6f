import COperonProcess
import Glibc
import OperonModel
import Synchronization

/// The single thread that watches all running processes of a worker: reads their output, notices
/// their ends, and sends signals when they are due.
///
/// It waits only in `epoll_wait`. `@unchecked Sendable`: the inbox is locked; after `init` only the
/// loop's own thread uses everything else.
final class ProcessLoop: @unchecked Sendable {
    private enum Message {
        case started(RunningProcess)
        case stop(UInt64, StopSignal.Request)
        /// The process cannot be watched, so it must not run.
        case abandon(UInt64)
        /// Kill all processes, report their ends, end the thread.
        case close(@Sendable () -> Void)
    }

    private struct Inbox {
        var messages: [Message] = []
        /// Whether the loop was woken for these messages.
        var isSignalled = false
    }

    /// The subject of an event, packed with the process's id into the 64 bits of the event.
    private enum Source: UInt64 {
        case wakeup
        case exit
        case output
        case error

        static let bits: UInt64 = 2
    }

    /// The most events taken at once; the rest come with the next call.
    private static let eventsMax = 64
    /// Bytes read at once: the default capacity of a pipe.
    static let readBytes = 65_536
    /// The most reads in a row from a stream whose process has ended: sixteen full pipes. Then
    /// other processes get their turn.
    private static let readsInARow = 16

    let epoll: Descriptor
    private let wakeup: Descriptor
    private let inbox = Mutex(Inbox())

    private var processes: [UInt64: RunningProcess] = [:]
    private var buffer = [UInt8](repeating: 0, count: ProcessLoop.readBytes)
    /// No process has a deadline before this time. It may be too early but never too late, so that
    /// removing a deadline costs nothing.
    private var nextDeadline = Timestamp.distantFuture
    private var whenClosed: [@Sendable () -> Void] = []

    /// Starts the thread.
    init() throws(SystemError) {
        let number = operon_process_epoll()
        guard number >= 0 else { throw .current("making an epoll") }
        epoll = Descriptor(owning: number)
        wakeup = try Descriptor.wakeup(blocking: false)
        try watch(wakeup.number, .wakeup, of: 0)
        try OwnThread.start("operon-process") { [self] in work() }
    }

    // MARK: - From any thread

    /// Takes over a process that has just started.
    ///
    /// The loop is not woken for this, because waking it would cost as much as everything else
    /// here. It finds the process in its inbox when the first event of the process arrives.
    func add(_ process: RunningProcess) {
        let id = process.id
        let deadline = process.watch.deadline
        let numbers = process.numbers
        process.willBeWatched(by: epoll.number)
        inbox.withLock { $0.messages.append(.started(process)) }
        // From here on the loop owns the process. The exit descriptor is watched last, because
        // until then none of the descriptors can have been closed.
        let asked = process.stopSignal.attach { [weak self] request in self?.stop(id, request) }
        do throws(SystemError) {
            if let output = numbers.output { try watch(output, .output, of: id) }
            if let error = numbers.error { try watch(error, .error, of: id) }
            if let exit = numbers.exit { try watch(exit, .exit, of: id) }
        } catch {
            // The kernel has no memory left.
            return post(.abandon(id))
        }
        if let asked { stop(id, asked) }
        if deadline != nil { wake() }
    }

    /// Passes on a stop request; ignores one that comes too late.
    func stop(_ id: UInt64, _ request: StopSignal.Request) { post(.stop(id, request)) }

    /// Kills all processes, waits for their ends, then ends the thread and calls `done`.
    func close(_ done: @escaping @Sendable () -> Void) { post(.close(done)) }

    private func post(_ message: Message) {
        inbox.withLock { $0.messages.append(message) }
        wake()
    }

    private func wake() {
        let isFirst = inbox.withLock { inbox in
            defer { inbox.isSignalled = true }
            return !inbox.isSignalled
        }
        if isFirst { wakeup.signal() }
    }

    // MARK: - On the loop's thread

    private func work() {
        var events = [UInt64](repeating: 0, count: ProcessLoop.eventsMax)
        while whenClosed.isEmpty || !processes.isEmpty {
            let count = unsafe operon_process_wait(
                epoll.number,
                &events,
                Int32(events.count),
                milliseconds(to: nextDeadline)
            )
            for event in events.prefix(Int(count)) { handle(event) }
            passTime()
        }
        for done in whenClosed { done() }
    }

    private func handle(_ data: UInt64) {
        let id = data >> Source.bits
        guard let source = Source(rawValue: data & ((1 << Source.bits) - 1)) else { return }
        switch source {
        case .wakeup:
            wakeup.await()
            readInbox()
        // Harmless: an event of a process that finished earlier in this batch.
        case .exit: if let process = process(id) { exited(process) }
        case .output: if let process = process(id) { readable(process, .output) }
        case .error: if let process = process(id) { readable(process, .error) }
        }
    }

    private func process(_ id: UInt64) -> RunningProcess? {
        if let process = processes[id] { return process }
        readInbox()
        return processes[id]
    }

    private func readInbox() {
        let messages = inbox.withLock { inbox in
            defer { inbox = Inbox() }
            return inbox.messages
        }
        for message in messages {
            switch message {
            case .started(let process):
                processes[process.id] = process
                if let deadline = process.watch.deadline {
                    nextDeadline = min(nextDeadline, deadline)
                }
            case .abandon(let id):
                guard let process = processes[id] else { continue }
                process.abandon()
                remove(process)
            case .stop(let id, let request):
                guard let process = processes[id] else { continue }
                perform(process.watch.requested(request, at: SystemClock.now()), on: process)
            case .close(let done):
                whenClosed.append(done)
                for process in processes.values {
                    perform(process.watch.requested(.kill, at: SystemClock.now()), on: process)
                }
            }
        }
    }

    private func exited(_ process: RunningProcess) {
        guard process.collect() else { return }
        perform(process.watch.exited(at: SystemClock.now()), on: process)
        for stream in [LogStream.output, .error] {
            for _ in 0..<ProcessLoop.readsInARow {
                guard readable(process, stream) == .bytes else { break }
            }
        }
    }

    @discardableResult
    private func readable(
        _ process: RunningProcess,
        _ stream: LogStream
    ) -> RunningProcess.ReadProgress {
        let progress = process.read(stream, into: &buffer)
        if progress == .ended { perform(process.watch.streamEnded(), on: process) }
        return progress
    }

    private func perform(_ steps: [ProcessWatch.Step], on process: RunningProcess) {
        for step in steps {
            switch step {
            case .terminate:
                process.signalGroup(SIGTERM)
                process.signalGroup(SIGCONT)
            case .kill: process.signalGroup(SIGKILL)
            case .finish: remove(process)
            }
        }
        if let deadline = process.watch.deadline { nextDeadline = min(nextDeadline, deadline) }
    }

    private func remove(_ process: RunningProcess) {
        guard processes.removeValue(forKey: process.id) != nil else { return }
        process.finish(at: SystemClock.now())
    }

    /// Lets every process whose deadline has come act, and finds the next deadline.
    private func passTime() {
        let now = SystemClock.now()
        guard now >= nextDeadline else { return }
        nextDeadline = .distantFuture
        for process in Array(processes.values) {
            perform(process.watch.timePassed(now), on: process)
        }
    }

    /// A timeout for `epoll_wait`, rounded up so that it never wakes before the deadline.
    private func milliseconds(to deadline: Timestamp) -> Int32 {
        guard deadline < .distantFuture else { return -1 }
        let left = max(0, (deadline - SystemClock.now()).nanoseconds)
        return Int32(clamping: (left + 999_999) / 1_000_000)
    }

    private func watch(_ number: Int32, _ source: Source, of id: UInt64) throws(SystemError) {
        let data = id << Source.bits | source.rawValue
        guard operon_process_watch(epoll.number, number, data) == 0 else {
            throw .current("watching a process")
        }
    }
}
