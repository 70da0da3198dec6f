import DequeModule
import Glibc
import Synchronization

/// Lines on their way to a reader that may be slow or stalled. A thread of the queue writes them,
/// so the caller that adds one continues at once. Lines that do not fit are left out, and a line of
/// their own counts them.
package final class LineQueue: Sendable {
    private struct State {
        var lines = Deque<Line>()
        /// The bytes of these lines, and of the line that is being written.
        var bytes = 0
        /// The number of lines left out after the last of these.
        var leftOut = 0
        var isWriting = false
    }

    private struct Line {
        let bytes: [UInt8]
        /// The number of lines left out before it.
        let leftOut: Int
    }

    /// The most bytes of log lines that wait: what a reader misses in a second or two.
    package static let logBytesMax = 1 << 20

    private let state = Mutex(State())
    /// `nil`: the system could start no thread, so the caller writes each line itself.
    private let thread: SerialThread?
    private let bytesMax: Int
    private let write: @Sendable ([UInt8]) -> Void
    private let leftOut: @Sendable (_ count: Int) -> [UInt8]

    /// - Parameters:
    ///   - bytesMax: The most bytes of lines that wait.
    ///   - write: Writes a line; may block for as long as the reader likes.
    ///   - leftOut: Makes the line that states how many lines are missing before it.
    package init(
        bytesMax: Int = logBytesMax,
        write: @escaping @Sendable ([UInt8]) -> Void,
        leftOut: @escaping @Sendable (_ count: Int) -> [UInt8]
    ) {
        self.bytesMax = bytesMax
        self.write = write
        self.leftOut = leftOut
        do throws(SystemError) {
            thread = try SerialThread(name: "operon-lines")
        } catch {
            thread = nil
        }
    }

    deinit {
        thread?.stop()
    }

    /// Whether no line waits to be written.
    package var isEmpty: Bool { state.withLock { !$0.isWriting } }

    /// Adds lines including their ends, all of them or none. If nothing else waits there is room
    /// for any number.
    package func add(_ lines: [UInt8]) {
        guard let thread else { return write(lines) }
        state.withLock { state in
            guard state.bytes == 0 || state.bytes + lines.count <= bytesMax else {
                state.leftOut += max(1, lines.count { $0 == UInt8(ascii: "\n") })
                return
            }
            state.bytes += lines.count
            state.lines.append(Line(bytes: lines, leftOut: state.leftOut))
            state.leftOut = 0
            guard !state.isWriting else { return }
            state.isWriting = true
            // Under the lock, so that a flush after this call also comes after its job.
            thread.submit { [self] in writeAll() }
        }
    }

    /// Runs on the thread.
    private func writeAll() {
        var written = 0
        while let line = next(after: written) {
            if line.leftOut > 0 { write(leftOut(line.leftOut)) }
            if !line.bytes.isEmpty { write(line.bytes) }
            written = line.bytes.count
        }
    }

    private func next(after written: Int) -> Line? {
        state.withLock { state in
            state.bytes -= written
            if let line = state.lines.popFirst() { return line }
            guard state.leftOut > 0 else {
                state.isWriting = false
                return nil
            }
            defer { state.leftOut = 0 }
            return Line(bytes: [], leftOut: state.leftOut)
        }
    }

    // MARK: - The end of the program

    private static let kept = Mutex<[LineQueue]>([])
    /// The longest time, in seconds, for which a stalled reader delays the end of the program.
    private static let lastWordsSeconds = 1.0

    /// From here on the end of the program waits up to a second for lines that were added.
    package func keepUntilExit() {
        Self.kept.withLock { kept in
            if kept.isEmpty { _ = atexit { LineQueue.flushKept() } }
            kept.append(self)
        }
    }

    /// Flushes the kept queues, before something is written directly.
    package static func flushKept() {
        for queue in kept.withLock({ $0 }) { queue.flush(within: lastWordsSeconds) }
    }

    /// Returns when all added lines are written, or after this many seconds if nobody reads them.
    package func flush(within seconds: Double) {
        guard let thread else { return }
        let isWritten = ThreadSignal()
        thread.submit { isWritten.send() }
        isWritten.wait(seconds: seconds)
    }

    /// Returns when all added lines are written, or when the task is cancelled.
    package func flush() async {
        guard let thread else { return }
        let isWritten = Latch()
        thread.submit { isWritten.open() }
        await isWritten.wait()
    }
}
