package import OperonModel
import OperonPorts

/// The lines that programs write to a named pipe (fifo(7)), each of them an occurrence, empty lines
/// included.
///
/// A line ends with a newline, or when the last writer closes the pipe. Lines of several writers
/// are not mixed if each writes its line at once and the line has at most 4,096 bytes (PIPE_BUF).
///
/// An identity is drawn for each line when it is read: two equal lines are two occurrences. While
/// nobody watches, a writer waits in open(2), so nothing is lost. What is in the pipe when the
/// watching process dies, and the line it was about to report, are lost: the kernel discards them.
/// Two sources with one pipe share its lines between them.
package struct PipeSource: TriggerSource {
    private let path: String
    private let threads: SourceThreads
    private let time: TimeSource

    /// How long it waits before it tries again to open the pipe.
    static let retryPause = Duration.seconds(1)
    /// How often it checks whether the pipe was replaced.
    static let checkInterval = Duration.seconds(10)

    /// - Parameter path: The absolute path of a pipe that exists or will exist.
    /// - Throws: `invalid`.
    package init(
        path: String,
        threads: SourceThreads,
        time: TimeSource = .system
    ) throws(TriggerSourceError) {
        if let problem = Limits.problem(ofWatchedPath: path) {
            throw TriggerSourceError(.invalid, "“\(path)” \(problem)")
        }
        self.path = path
        self.threads = threads
        self.time = time
    }

    package func run(
        _ report: @escaping @Sendable (Occurrence) async throws -> Void,
        status: @escaping @Sendable (TriggerSourceStatus) -> Void
    ) async throws {
        var tell = StatusTeller(status)
        while true {
            do {
                try await read(report, &tell)
            } catch let problem as Unavailable {
                tell(.waiting(problem.error))
            }
            try await time.sleep(time.now() + Self.retryPause)
        }
    }

    /// The pipe cannot be read at present. A type of its own, because `report` may throw anything.
    private struct Unavailable: Error {
        let error: TriggerSourceError
    }

    private func onFiles<Value: Sendable>(
        _ body: @escaping @Sendable () throws(TriggerSourceError) -> Value
    ) async throws -> Value {
        let result = await threads.files.perform { Result(catching: body) }
        do throws(TriggerSourceError) {
            return try result.get()
        } catch {
            throw Unavailable(error: error)
        }
    }

    /// Reads until the pipe is replaced or gone.
    private func read(
        _ report: @escaping @Sendable (Occurrence) async throws -> Void,
        _ tell: inout StatusTeller
    ) async throws {
        let path = path
        let pipe = try await onFiles { () throws(TriggerSourceError) in
            try PipeReader(path, lineBytesMax: LineOccurrence.bytesMax)
        }
        tell(.observing)
        while true {
            let isReadable = try await threads.readiness.readable(
                pipe.number,
                within: Self.checkInterval,
                by: time
            )
            guard isReadable else {
                guard await threads.files.perform({ pipe.isCurrent }) else { return }
                continue
            }
            switch pipe.read() {
            case .empty: break
            case .lines(let items):
                for item in items { try await pass(item, report, tell) }
            case .ended(let last):
                if let last { try await pass(last, report, tell) }
                _ = try await onFiles { () throws(TriggerSourceError) in try pipe.reopen() }
            }
        }
    }

    private func pass(
        _ item: LineSplitter.Item,
        _ report: @escaping @Sendable (Occurrence) async throws -> Void,
        _ tell: StatusTeller
    ) async throws {
        try Task.checkCancellation()
        switch LineOccurrence.make(item, of: "the pipe “\(path)”") {
        case .success(let occurrence): try await report(occurrence)
        case .failure(let error): tell.refused(error)
        }
    }
}
