import OperonArguments
import OperonCore
import OperonModel
import OperonRuntime
import Synchronization

/// Writes the output of operations to files, one per attempt that printed anything:
/// `DIRECTORY/<index>-<operation>.<attempt>.log`. Both numbers are those of the graph and its
/// report.
///
/// Pieces are appended as they arrive. The result of an attempt carries the first and the last
/// bytes, which replace the file unless the file has more.
final class LogWriter: Sendable {
    /// Writes on a thread of its own, because a disk may block: no task waits for it.
    private let thread: SerialThread
    private let files: Mutex<LogFiles>
    private let state: Mutex<State>

    private static let waitingBytesMax = 16 << 20

    private struct State {
        /// The bytes that are not written yet.
        var waitingBytes = 0
        /// Attempts that have not ended and of which pieces were dropped.
        var gaps: Set<AttemptID> = []
    }

    fileprivate enum Item: Sendable {
        case granted(OperationID, AttemptID)
        case chunk(LogChunk)
        case ended(OperationID, AttemptID, EndOfLog)
        /// The end of an attempt whose last bytes were dropped for lack of room.
        case left(OperationID, AttemptID)

        /// The approximate memory use until the item is written. A piece of one byte has a fixed
        /// cost, too.
        var byteCount: Int {
            let fixed = 128
            switch self {
            case .granted, .left: return fixed
            case .chunk(let chunk): return fixed + chunk.bytes.count
            case .ended(_, _, let end): return fixed + end.log.count
            }
        }
    }

    /// `say` is called once if something cannot be written.
    init(
        directory: String,
        graph: GrowingGraph,
        say: @escaping @Sendable (String) -> Void
    ) throws {
        do {
            try UserFile.makeDirectories(directory, mode: 0o777)
        } catch {
            throw Failure(
                ExitStatus.usage,
                "The directory for logs, \(directory), cannot be created: \(error)."
            )
        }
        let folder: LogFolder
        do {
            folder = try LogFolder(path: directory)
        } catch {
            throw Failure(ExitStatus.usage, "The directory for logs cannot be used: \(error).")
        }
        do throws(SystemError) {
            thread = try SerialThread(name: "operon-logs")
        } catch {
            throw Failure(ExitStatus.failed, "Logs cannot be written: \(error).")
        }
        files = Mutex(LogFiles(folder, path: directory, graph: graph, say: say))
        state = Mutex(State())
    }

    /// Attempts of a run that goes on count on from those of its earlier runs, whose files stay.
    func resume(after attempts: [OperationID: Int]) {
        files.withLock { $0.earlier = attempts }
    }

    func note(_ notices: [Scheduler.Notice]) {
        for notice in notices {
            switch notice {
            case .log(let chunk):
                // If the disk is too slow, pieces are dropped; the result of the attempt carries
                // the last bytes.
                guard !chunk.bytes.isEmpty, !yieldIfRoom(.chunk(chunk)) else { continue }
                _ = state.withLock { $0.gaps.insert(chunk.held.attempt) }
            case .result(let operation, let attempt, let result):
                // Without the output of the operation, which is not written here.
                let end = EndOfLog(
                    log: result.log,
                    hasGaps: state.withLock { $0.gaps.remove(attempt) != nil }
                )
                if !yieldIfRoom(.ended(operation, attempt, end)) {
                    yield(.left(operation, attempt))
                }
            case .granted(let operation, let attempt, _): yield(.granted(operation, attempt))
            case .operationsAdded, .ready, .started, .resumed, .yielded, .waitEnded, .attemptEnded,
                .finished, .rangeFinished, .retry, .graphFinished, .workerJoined, .workerLost,
                .workerDraining, .workerBusy, .graphClosedIdle, .superseded, .eventRefused,
                .progress,
                .watched:
                continue
            }
        }
    }

    /// Queues an item regardless of the room left. There are at most two of these per attempt.
    private func yield(_ item: Item) {
        state.withLock { $0.waitingBytes += item.byteCount }
        write(item)
    }

    /// Queues an item if there is room. Returns whether there was.
    private func yieldIfRoom(_ item: Item) -> Bool {
        let fits = state.withLock { state in
            guard state.waitingBytes < Self.waitingBytesMax else { return false }
            state.waitingBytes += item.byteCount
            return true
        }
        if fits { write(item) }
        return fits
    }

    private func write(_ item: Item) {
        thread.submit { [self] in
            files.withLock { $0.write(item) }
            state.withLock { $0.waitingBytes -= item.byteCount }
        }
    }

    /// Returns when everything is written, or when the task is cancelled.
    func flush() async {
        let isWritten = Latch()
        thread.submit { isWritten.open() }
        await isWritten.wait()
    }

    /// A name may be any text: only characters that are harmless in a path stay.
    fileprivate static func fileName(_ name: String) -> String {
        let safe = name.map { character in
            character.isASCII && (character.isLetter || character.isNumber)
                || "-_.".contains(character) ? character : "_"
        }
        let text = String(safe.prefix(128))
        return text.hasPrefix(".") ? "_" + text.dropFirst() : text
    }
}

/// The log part of an attempt's result.
private struct EndOfLog: Sendable {
    let log: KeptLog
    /// Whether pieces before the end were dropped.
    let hasGaps: Bool
}

private struct LogFiles {
    let folder: LogFolder
    let path: String
    let graph: GrowingGraph
    /// How many attempts earlier runs of the graph made, where they made any. Only looked up.
    var earlier: [OperationID: Int] = [:]
    /// The attempts of each operation in this run, in order. Never iterated.
    private var attempts: [OperationID: [AttemptID]] = [:]
    /// The file sizes of running attempts, in bytes. Never iterated.
    private var sizes: [AttemptID: Int] = [:]
    /// Running attempts of which a piece did not come, or came without its place. Never iterated.
    private var broken: Set<AttemptID> = []
    /// Attempts whose file is final: it already contains any piece that arrives later.
    private var completed: Set<AttemptID> = []
    private let say: @Sendable (String) -> Void
    private var hasFailed = false

    init(
        _ folder: LogFolder,
        path: String,
        graph: GrowingGraph,
        say: @escaping @Sendable (String) -> Void
    ) {
        self.folder = folder
        self.path = path
        self.graph = graph
        self.say = say
    }

    mutating func write(_ item: LogWriter.Item) {
        switch item {
        case .granted(let operation, let attempt): granted(operation, attempt)
        case .chunk(let chunk): append(chunk)
        case .ended(let operation, let attempt, let end): complete(operation, attempt, end)
        case .left(let operation, let attempt): left(operation, attempt)
        }
    }

    private static let slowDisk = "the disk is too slow for what operations print"

    private mutating func failed(_ why: String) {
        guard !hasFailed else { return }
        hasFailed = true
        say("warning: logs in \(path) are incomplete: \(why)")
    }

    private mutating func granted(_ operation: OperationID, _ attempt: AttemptID) {
        attempts[operation, default: []].append(attempt)
    }

    /// The file name; `nil` for an attempt that was never granted.
    private func name(_ operation: OperationID, _ attempt: AttemptID) -> String? {
        guard let place = attempts[operation]?.firstIndex(of: attempt) else { return nil }
        // Two operation names may give the same file name; the index keeps the files apart.
        let name = LogWriter.fileName(graph.name(of: operation.index))
        let number = earlier[operation, default: 0] + place + 1
        return "\(operation.index)-\(name).\(number).log"
    }

    private mutating func append(_ chunk: LogChunk) {
        let attempt = chunk.held.attempt
        guard !completed.contains(attempt), let name = name(chunk.held.operation, attempt)
        else { return }
        if chunk.position != UInt64(sizes[attempt] ?? 0) { broken.insert(attempt) }
        do throws(LogFolder.Failure) {
            if let size = sizes[attempt] {
                try folder.append(chunk.bytes, to: name)
                sizes[attempt] = size + chunk.bytes.count
            } else {
                try folder.replace(name, with: chunk.bytes)
                sizes[attempt] = chunk.bytes.count
            }
        } catch {
            failed(error.message)
        }
    }

    private mutating func complete(_ operation: OperationID, _ attempt: AttemptID, _ end: EndOfLog)
    {
        completed.insert(attempt)
        let streamed = sizes.removeValue(forKey: attempt) ?? 0
        let isWhole = end.log.missing == 0
        // Otherwise the bytes in the file are the first ones of the attempt, without a gap.
        let isBroken = broken.remove(attempt) != nil || end.hasGaps
        // What is kept does not cover the gaps.
        if end.hasGaps, !isWhole { failed(Self.slowDisk) }
        guard !end.log.isEmpty, let name = name(operation, attempt) else { return }
        do throws(LogFolder.Failure) {
            let position = UInt64(streamed)
            if !isWhole, !isBroken, position >= end.log.tailOffset {
                // The last pieces came with the result alone.
                let rest = end.log.tail.dropFirst(Int(position - end.log.tailOffset))
                if !rest.isEmpty { try folder.append(Array(rest), to: name) }
            } else if isWhole || !isBroken || streamed < end.log.count {
                try folder.replace(name, with: end.log.text)
            }
        } catch {
            failed(error.message)
        }
    }

    private mutating func left(_ operation: OperationID, _ attempt: AttemptID) {
        completed.insert(attempt)
        sizes[attempt] = nil
        broken.remove(attempt)
        failed(Self.slowDisk)
    }
}
