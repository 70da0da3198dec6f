import DequeModule
import Glibc
import NIOConcurrencyHelpers

/// Lines on their way to a reader who may be slow, or stand still: a thread of their own writes
/// them, and whoever adds one goes on at once. What there is no room for is left out, and counted
/// in a line of its own.
package final class LineQueue: Sendable {
    private struct State {
        var lines = Deque<Line>()
        /// Of these lines, and of the one that is being written.
        var bytes = 0
        /// Behind the last of these lines.
        var leftOut = 0
        var isWriting = false
    }

    private struct Line {
        let bytes: [UInt8]
        /// Left out before it.
        let leftOut: Int
    }

    /// Of the lines of a log that wait: what a reader misses in a second or two.
    package static let logBytesMax = 1 << 20

    private let state = NIOLockedValueBox(State())
    /// `nil`: the system gave none, and each line is written by whoever adds it.
    private let thread: SerialThread?
    private let bytesMax: Int
    private let write: @Sendable ([UInt8]) -> Void
    private let leftOut: @Sendable (_ count: Int) -> [UInt8]

    /// - Parameters:
    ///   - bytesMax: Of lines that wait.
    ///   - write: writes a line; may block for as long as the reader likes.
    ///   - leftOut: the line that says that so many lines are missing before it.
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

    /// Nothing waits to be written.
    package var isEmpty: Bool { state.withLockedValue { !$0.isWriting } }

    /// Takes lines with their ends, all of them or none. If nothing else waits there is room for
    /// any number.
    package func add(_ lines: [UInt8]) {
        guard let thread else { return write(lines) }
        state.withLockedValue { state in
            guard state.bytes == 0 || state.bytes + lines.count <= bytesMax else {
                state.leftOut += max(1, lines.count { $0 == UInt8(ascii: "\n") })
                return
            }
            state.bytes += lines.count
            state.lines.append(Line(bytes: lines, leftOut: state.leftOut))
            state.leftOut = 0
            guard !state.isWriting else { return }
            state.isWriting = true
            // Under the lock: a flush that comes behind this call is behind its job as well.
            thread.submit { [self] in writeAll() }
        }
    }

    /// On the thread.
    private func writeAll() {
        var written = 0
        while let line = next(after: written) {
            if line.leftOut > 0 { write(leftOut(line.leftOut)) }
            if !line.bytes.isEmpty { write(line.bytes) }
            written = line.bytes.count
        }
    }

    private func next(after written: Int) -> Line? {
        state.withLockedValue { state in
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

    private static let kept = NIOLockedValueBox<[LineQueue]>([])
    /// A reader that stands still does not keep a program from its end for longer.
    private static let lastWordsSeconds = 1.0

    /// From here on the end of the program waits a second for what was added.
    package func keepUntilExit() {
        Self.kept.withLockedValue { kept in
            if kept.isEmpty { _ = atexit { LineQueue.flushKept() } }
            kept.append(self)
        }
    }

    /// Before something is written past those that are kept.
    package static func flushKept() {
        for queue in kept.withLockedValue({ $0 }) { queue.flush(within: lastWordsSeconds) }
    }

    /// Returns when what was added is written; or after so many seconds, if nobody reads it.
    package func flush(within seconds: Double) {
        guard let thread else { return }
        let isWritten = ConditionLock(value: false)
        thread.submit {
            isWritten.lock()
            isWritten.unlock(withValue: true)
        }
        if isWritten.lock(whenValue: true, timeoutSeconds: seconds) { isWritten.unlock() }
    }

    /// Returns when what was added is written, or when the task is cancelled.
    package func flush() async {
        guard let thread else { return }
        let isWritten = Latch()
        thread.submit { isWritten.open() }
        await isWritten.wait()
    }
}
