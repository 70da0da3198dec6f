import Glibc
import NIOConcurrencyHelpers

/// Lines of a log on their way to a reader who may be slow, or stand still: a thread of their own
/// writes them, and whoever logs goes on at once. What there is no room for is left out, and
/// counted in a line of its own.
package final class LineQueue: Sendable {
    private struct State {
        var bytes = 0
        var leftOut = 0
    }

    /// Of lines that wait: what a reader misses in a second or two.
    private static let bytesMax = 1 << 20

    private let state = NIOLockedValueBox(State())
    /// `nil`: the system gave none, and each line is written by whoever logs it.
    private let thread: SerialThread?
    private let write: @Sendable ([UInt8]) -> Void
    private let leftOut: @Sendable (_ count: Int) -> [UInt8]

    /// - Parameters:
    ///   - write: writes a line; may block for as long as the reader likes.
    ///   - leftOut: the line that says that so many lines are missing before it.
    package init(
        write: @escaping @Sendable ([UInt8]) -> Void,
        leftOut: @escaping @Sendable (_ count: Int) -> [UInt8]
    ) {
        self.write = write
        self.leftOut = leftOut
        do throws(SystemError) {
            thread = try SerialThread(name: "operon-log")
        } catch {
            thread = nil
        }
    }

    /// Takes a line with its end.
    package func add(_ line: [UInt8]) {
        guard let thread else { return write(line) }
        let missing = state.withLockedValue { state -> Int? in
            guard state.bytes + line.count <= Self.bytesMax else {
                state.leftOut += 1
                return nil
            }
            state.bytes += line.count
            defer { state.leftOut = 0 }
            return state.leftOut
        }
        guard let missing else { return }
        thread.submit { [self] in
            if missing > 0 { write(leftOut(missing)) }
            write(line)
            state.withLockedValue { $0.bytes -= line.count }
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
}
