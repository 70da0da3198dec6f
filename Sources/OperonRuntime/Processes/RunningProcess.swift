import COperonProcess
import Glibc
import OperonModel

/// One process that has started: its descriptors, its output, its watch.
///
/// Made by the spawn thread and handed to the loop thread, which is its only user from then on.
/// `@unchecked Sendable`: it is handed over through the loop's locked inbox, which orders the
/// accesses.
final class RunningProcess: @unchecked Sendable {
    /// The end of a process, before its output file was read.
    struct End: Sendable {
        /// `nil`: the process had to be given up at once.
        let status: ProcessStatus?
        let stopReason: ProcessWatch.StopReason?
        let startedAt: Timestamp
        let endedAt: Timestamp
        let log: KeptLog
        /// Whether a file exists at its output path.
        let hasOutput: Bool
        /// The CPU time of the process, and of those of its descendants that it collected.
        let cpuTime: Duration
        /// The system had no memory to watch the process, so it was ended at once.
        var isUnwatched = false
    }

    /// One of its two streams.
    struct Stream: ~Copyable {
        /// `nil` once it has ended or is given up.
        var reader: Descriptor?
        /// Bytes passed on so far.
        var offset: UInt64 = 0
        /// Masks secrets; `nil`: there are none.
        var mask: MaskedStream?
    }

    let id: UInt64
    /// Also the number of its group; it cannot be reused until the process is collected.
    let process: pid_t
    /// Readable when the process has ended; `nil` once it was collected.
    var descriptor: Descriptor?
    var output: Stream
    var error: Stream
    var watch: ProcessWatch
    var log: LogBuffer
    var status: ProcessStatus?
    private var cpuTime = Duration.zero
    private var isUnwatched = false
    let stopSignal: StopSignal
    /// The `epoll` that watches its descriptors; `nil`: none does yet.
    private var epoll: Int32?
    /// Its slot in the table of process groups.
    private let place: Int?
    private let request: SpawnRequest

    init(
        process: pid_t,
        descriptor: consuming Descriptor,
        output: consuming Descriptor,
        error: consuming Descriptor,
        startedAt: Timestamp,
        place: Int?,
        request: SpawnRequest
    ) {
        id = request.id
        self.process = process
        self.descriptor = consume descriptor
        let mask = request.mask.map { MaskedStream($0) }
        self.output = Stream(reader: consume output, mask: mask)
        self.error = Stream(reader: consume error, mask: mask)
        watch = ProcessWatch(
            startedAt: startedAt,
            timeout: request.timeout,
            grace: request.grace
        )
        log = LogBuffer(limit: request.logBytes)
        stopSignal = request.stopSignal
        self.place = place
        self.request = request
    }

    /// Its descriptors are watched by this `epoll` from now on.
    func willBeWatched(by epoll: Int32) { self.epoll = epoll }

    /// Closes a descriptor and ends its watch. Without that, the loop would spin on a pipe that has
    /// ended or a process that was collected for as long as another child is being started, which
    /// has copies of all descriptors meanwhile.
    private func close(_ descriptor: inout Descriptor?) {
        if let epoll, let number = descriptor.number { operon_process_unwatch(epoll, number) }
        descriptor = nil
    }

    /// Sends a signal to the group, but only before the process is collected: until then its number
    /// cannot be reused.
    func signalGroup(_ signal: Int32) {
        guard status == nil else { return }
        // Fails only when no process of the group can be signalled any more.
        _ = kill(-process, signal)
    }

    /// Collects the process if it has ended. Kills the rest of the group first, while the group's
    /// number cannot belong to another one. Returns whether the process has ended.
    func collect() -> Bool {
        guard status == nil else { return true }
        signalGroup(SIGKILL)
        let end = operon_process_collect(process)
        guard end.state != 0 else { return false }
        cpuTime = .nanoseconds(Int64(clamping: end.cpu_nanoseconds))
        if end.state < 0 {
            status = .unknown
        } else if end.signaled != 0 {
            status = .signaled(end.value)
        } else {
            status = .exited(code: end.value)
        }
        close(&descriptor)
        return true
    }

    /// The numbers of the open descriptors, which `epoll` watches.
    var numbers: (output: Int32?, error: Int32?, exit: Int32?) {
        (output.number, error.number, descriptor.number)
    }

    /// Kills a process that cannot be watched, and waits for its end; SIGKILL usually takes effect
    /// at once.
    func abandon() {
        isUnwatched = true
        signalGroup(SIGKILL)
        while waitpid(process, nil, 0) < 0, errno == EINTR {}
        close(&descriptor)
    }

    /// Ends a process that started too late, before it was handed to the loop.
    func discard() {
        abandon()
        if let place { request.state?.ended(place) }
    }

    /// Reads once from a stream into `buffer`.
    func read(_ stream: LogStream, into buffer: inout [UInt8]) -> ReadProgress {
        switch stream {
        case .output: read(&output, stream, into: &buffer)
        case .error: read(&error, stream, into: &buffer)
        }
    }

    /// The result of one read.
    enum ReadProgress {
        case bytes
        /// Nothing to read at present.
        case empty
        /// The stream ended with this read.
        case ended
        /// The stream had ended before.
        case closed
    }

    private func read(
        _ source: inout Stream,
        _ stream: LogStream,
        into buffer: inout [UInt8]
    ) -> ReadProgress {
        guard let number = source.number else { return .closed }
        let count = unsafe buffer.withUnsafeMutableBytes { bytes in
            unsafe Glibc.read(number, bytes.baseAddress, bytes.count)
        }
        if count < 0, errno == EAGAIN || errno == EINTR { return .empty }
        guard count > 0 else {
            // A read error on a pipe should not happen; if it does, nothing more would come.
            close(&source.reader)
            passOnHeld(of: &source, stream)
            return .ended
        }
        let chunk = buffer[..<count]
        if let masked = source.mask?.append(chunk) {
            passOnInPieces(masked, of: &source, stream)
        } else {
            passOn(chunk, of: &source, stream)
        }
        return .bytes
    }

    private func passOn(
        _ chunk: ArraySlice<UInt8>,
        of source: inout Stream,
        _ stream: LogStream
    ) {
        request.onLog?(
            PrintedPiece(
                stream: stream,
                offset: source.offset,
                position: log.end,
                bytes: Array(chunk)
            )
        )
        log.append(chunk)
        source.offset += UInt64(chunk.count)
    }

    /// With what was held back before, it may be longer than what one read gives.
    private func passOnInPieces(
        _ bytes: [UInt8],
        of source: inout Stream,
        _ stream: LogStream
    ) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(ProcessLoop.readBytes)
            passOn(piece, of: &source, stream)
            rest = rest.dropFirst(piece.count)
        }
    }

    /// Passes on what may have been the beginning of a secret: nothing follows.
    private func passOnHeld(of source: inout Stream, _ stream: LogStream) {
        guard let held = source.mask?.finish() else { return }
        passOnInPieces(held, of: &source, stream)
    }

    /// Closes both streams and reports the end.
    func finish(at now: Timestamp) {
        close(&output.reader)
        close(&error.reader)
        // A stream that is given up has not ended.
        passOnHeld(of: &output, .output)
        passOnHeld(of: &error, .error)
        stopSignal.detach()
        if let place { request.state?.ended(place) }
        let end = End(
            status: status,
            stopReason: watch.stopReason,
            startedAt: watch.startedAt,
            endedAt: watch.endedAt ?? now,
            log: log.kept,
            hasOutput: ProcessFiles.hasOutput(request.outputPath),
            cpuTime: cpuTime,
            isUnwatched: isUnwatched
        )
        request.completion(.ended(end))
    }
}

extension RunningProcess.Stream {
    /// The number of the open descriptor.
    var number: Int32? { reader.number }
}

extension Optional where Wrapped: ~Copyable, Wrapped == Descriptor {
    /// The number of the open descriptor.
    var number: Int32? {
        switch self {
        case .some(let descriptor): descriptor.number
        case .none: nil
        }
    }
}
