import COperonProcess
import Glibc
import NIOConcurrencyHelpers
import OperonModel

/// The one thread that watches all running processes of a worker: reads what they print, notices
/// their ends, sends the signals that are due.
///
/// It waits in `epoll_wait` and nowhere else. `@unchecked Sendable`: the inbox is locked;
/// everything else is touched by the loop's own thread only, after `init`.
final class ProcessLoop: @unchecked Sendable {
    private enum Message {
        case started(RunningProcess)
        case stop(UInt64, StopSignal.Request)
        /// Kill everything, report it, end the thread.
        case close(@Sendable () -> Void)
    }

    /// What an event is about, packed with the process's id into its 64 bits.
    private enum Source: UInt64 {
        case wakeup
        case exit
        case output
        case error

        static let bits: UInt64 = 2
    }

    /// Events taken at once; the rest comes with the next call.
    private static let eventsMax = 64
    /// Bytes read at once: the default capacity of a pipe.
    private static let readBytes = 65_536
    /// Reads of one stream in a row after its process has ended: sixteen pipes full, then others
    /// get their turn.
    private static let readsInARow = 16

    private let epoll: Descriptor
    private let wakeup: Descriptor
    private let inbox = NIOLockedValueBox<[Message]>([])

    private var processes: [UInt64: RunningProcess] = [:]
    private var buffer = [UInt8](repeating: 0, count: ProcessLoop.readBytes)
    /// No process has a deadline before this moment. May be too early, never too late, so that
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
    func add(_ process: RunningProcess) { post(.started(process)) }

    /// Passes on a request to stop; one that is too late is ignored.
    func stop(_ id: UInt64, _ request: StopSignal.Request) { post(.stop(id, request)) }

    /// Kills all processes, waits for their ends, then ends the thread and calls `done`.
    func close(_ done: @escaping @Sendable () -> Void) { post(.close(done)) }

    private func post(_ message: Message) {
        let wasEmpty = inbox.withLockedValue { inbox in
            inbox.append(message)
            return inbox.count == 1
        }
        if wasEmpty { wakeup.signal() }
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
        case .wakeup: readInbox()
        // Benign: an event of a process that finished earlier in this batch.
        case .exit: if let process = processes[id] { exited(process) }
        case .output: if let process = processes[id] { readable(process, .output) }
        case .error: if let process = processes[id] { readable(process, .error) }
        }
    }

    private func readInbox() {
        wakeup.await()
        let messages = inbox.withLockedValue { inbox in
            let messages = inbox
            inbox = []
            return messages
        }
        for message in messages {
            switch message {
            case .started(let process): started(process)
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

    private func started(_ process: RunningProcess) {
        processes[process.id] = process
        do {
            try watchAll(of: process)
        } catch {
            // No memory left in the kernel: what cannot be watched must not run.
            process.signalGroup(SIGKILL)
            process.abandon()
            remove(process)
            return
        }
        if let deadline = process.watch.deadline { nextDeadline = min(nextDeadline, deadline) }
        let id = process.id
        let asked = process.stopSignal.attach { [weak self] request in self?.stop(id, request) }
        if let asked {
            perform(process.watch.requested(asked, at: SystemClock.now()), on: process)
        }
    }

    private func watchAll(of process: RunningProcess) throws(SystemError) {
        if let number = process.output.number { try watch(number, .output, of: process.id) }
        if let number = process.error.number { try watch(number, .error, of: process.id) }
        if let number = process.descriptorNumber { try watch(number, .exit, of: process.id) }
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

    /// Lets every process whose deadline has come do what is due, and finds the next one.
    private func passTime() {
        let now = SystemClock.now()
        guard now >= nextDeadline else { return }
        nextDeadline = .distantFuture
        for process in Array(processes.values) {
            perform(process.watch.timePassed(now), on: process)
        }
    }

    /// For `epoll_wait`: rounded up, so that it never wakes before the deadline.
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
