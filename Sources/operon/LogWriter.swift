import Foundation
import NIOConcurrencyHelpers
import OperonArguments
import OperonCore
import OperonModel

/// Keeps what operations print in files, one per attempt that printed anything:
/// `DIRECTORY/<index>-<operation>.<attempt>.log`, both counted as in the graph and its report.
///
/// Pieces are appended as they come; the end of an attempt brings its last bytes, which replace the
/// file unless it has more.
struct LogWriter: Sendable {
    private let continuation: AsyncStream<Item>.Continuation
    private let task: Task<Void, Never>
    private let waitingBytes: NIOLockedValueBox<Int>

    private static let waitingBytesMax = 16 << 20

    private enum Item: Sendable {
        case granted(OperationID, AttemptID)
        case chunk(LogChunk)
        case result(OperationID, AttemptID, AttemptResult)
    }

    /// `say` is told, once, if something cannot be written.
    init(
        directory: String,
        graph: GrowingGraph,
        say: @escaping @Sendable (String) -> Void
    ) throws {
        do {
            try FileManager.default.createDirectory(
                atPath: directory,
                withIntermediateDirectories: true
            )
        } catch {
            throw Failure(
                ExitStatus.usage,
                "the directory for logs, \(directory), cannot be made: "
                    + error.localizedDescription
            )
        }
        let (items, continuation) = AsyncStream<Item>.makeStream()
        self.continuation = continuation
        let waitingBytes = NIOLockedValueBox(0)
        self.waitingBytes = waitingBytes
        // Not a child of the run: it must outlive the services to write what they left.
        task = Task {
            var files = LogFiles(directory: directory, graph: graph, say: say)
            for await item in items {
                switch item {
                case .granted(let operation, let attempt): files.granted(operation, attempt)
                case .chunk(let chunk):
                    files.append(chunk)
                    waitingBytes.withLockedValue { $0 -= chunk.bytes.count }
                case .result(let operation, let attempt, let result):
                    files.complete(operation, attempt, result)
                }
            }
        }
    }

    func note(_ notices: [Scheduler.Notice]) {
        for notice in notices {
            switch notice {
            case .log(let chunk):
                // A disk that is too slow loses pieces; the end of the attempt brings the last.
                let waits = waitingBytes.withLockedValue { bytes in
                    guard bytes < Self.waitingBytesMax else { return false }
                    bytes += chunk.bytes.count
                    return true
                }
                if waits { continuation.yield(.chunk(chunk)) }
            case .result(let operation, let attempt, let result):
                continuation.yield(.result(operation, attempt, result))
            case .granted(let operation, let attempt, _):
                continuation.yield(.granted(operation, attempt))
            case .operationsAdded, .ready, .started, .resumed, .yielded, .wentOn, .attemptEnded,
                .finished, .retry, .graphFinished, .workerJoined, .workerLost, .workerDraining,
                .workerBusy, .graphClosedIdle, .superseded, .eventRefused, .progress:
                continue
            }
        }
    }

    func finish() async {
        continuation.finish()
        await task.value
    }

    /// A name is anybody's text: only what is harmless in a path stays.
    fileprivate static func fileName(_ name: String) -> String {
        let safe = name.map { character in
            character.isASCII && (character.isLetter || character.isNumber)
                || "-_.".contains(character) ? character : "_"
        }
        let text = String(safe.prefix(128))
        return text.hasPrefix(".") ? "_" + text.dropFirst() : text
    }
}

private struct LogFiles {
    let directory: String
    let graph: GrowingGraph
    /// Attempts of each operation, in their order. Only looked up.
    private var attempts: [OperationID: [AttemptID]] = [:]
    private var sizes: [AttemptID: Int] = [:]
    /// Attempts whose file is final: a piece that comes later is in it.
    private var completed: Set<AttemptID> = []
    private let say: @Sendable (String) -> Void
    private var hasFailed = false

    init(directory: String, graph: GrowingGraph, say: @escaping @Sendable (String) -> Void) {
        self.directory = directory
        self.graph = graph
        self.say = say
    }

    private mutating func failed(_ path: String) {
        guard !hasFailed else { return }
        hasFailed = true
        say("warning: \(path) cannot be written; logs are not complete")
    }

    mutating func granted(_ operation: OperationID, _ attempt: AttemptID) {
        attempts[operation, default: []].append(attempt)
    }

    /// `nil` for an attempt that was never granted.
    private func path(_ operation: OperationID, _ attempt: AttemptID) -> String? {
        guard let place = attempts[operation]?.firstIndex(of: attempt) else { return nil }
        // Two names may become one file name: the index tells them apart.
        let name = LogWriter.fileName(graph.name(of: operation.index))
        return "\(directory)/\(operation.index)-\(name).\(place + 1).log"
    }

    mutating func append(_ chunk: LogChunk) {
        let attempt = chunk.held.attempt
        guard !completed.contains(attempt), let path = path(chunk.held.operation, attempt)
        else { return }
        if !FileManager.default.fileExists(atPath: path),
            !FileManager.default.createFile(atPath: path, contents: nil)
        {
            failed(path)
        }
        guard let file = FileHandle(forWritingAtPath: path) else { return }
        do {
            defer { file.closeFile() }
            try file.seekToEnd()
            try file.write(contentsOf: Data(chunk.bytes))
            sizes[attempt, default: 0] += chunk.bytes.count
        } catch {
            failed(path)
        }
    }

    mutating func complete(
        _ operation: OperationID,
        _ attempt: AttemptID,
        _ result: AttemptResult
    ) {
        completed.insert(attempt)
        let streamed = sizes.removeValue(forKey: attempt) ?? 0
        let isWhole = result.logBytesDropped == 0
        guard !result.logTail.isEmpty, isWhole || streamed < result.logTail.count else { return }
        guard let path = path(operation, attempt) else { return }
        guard
            FileManager.default.createFile(atPath: path, contents: Data(result.logTail))
        else {
            failed(path)
            return
        }
    }
}
