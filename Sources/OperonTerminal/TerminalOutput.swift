import OperonSystem
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A destination of lines: a terminal, a pipe, or an array in a test.
package protocol TerminalOutput: Sendable {
    /// The current columns and rows of the terminal; `nil` if there is no terminal or it does not
    /// report them.
    func size() -> TerminalSize?

    /// Whether a write would be accepted at once. A stopped terminal (Ctrl-S) accepts nothing.
    func isWritable() -> Bool

    /// Writes all bytes. Once the reader is gone, it silently drops them: nobody is there to
    /// notify.
    func write(_ bytes: [UInt8])
}

package struct TerminalSize: Hashable, Sendable {
    package let columns: Int
    package let rows: Int

    package init(columns: Int, rows: Int) {
        self.columns = columns
        self.rows = rows
    }
}

/// An open file of this process: standard output or standard error. It does not own the descriptor,
/// which stays open as long as the process runs.
package struct FileOutput: TerminalOutput {
    private let descriptor: Int32

    private let firstError = FirstError()

    /// Shared by the copies of one output.
    private final class FirstError: Sendable {
        let code = Mutex<Int32?>(nil)
        let isClosed = Atomic(false)
    }

    package static let standardOutput = FileOutput(descriptor: 1)
    package static let standardError = FileOutput(descriptor: 2)

    package init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    /// Whether the file is a terminal.
    package var isTerminal: Bool { isatty(descriptor) == 1 }

    package func size() -> TerminalSize? {
        var size = winsize()
        let result = unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size)
        guard result == 0, size.ws_col > 0 else { return nil }
        return TerminalSize(columns: Int(size.ws_col), rows: Int(size.ws_row))
    }

    package func isWritable() -> Bool {
        var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        // `write` reports an error, if there is one.
        return unsafe poll(&request, 1, 0) != 0
    }

    /// The system's message for the first write that failed. A reader that has closed its end is
    /// not a failure.
    package var failure: String? {
        firstError.code.withLock { $0 }.map { SystemWords.text(of: $0) }
    }

    /// Whether a write found that the reader has closed its end.
    package var isClosed: Bool { firstError.isClosed.load(ordering: .relaxed) }

    /// Writes a line.
    package func print(_ line: String) { write(Array((line + "\n").utf8)) }

    package func write(_ bytes: [UInt8]) {
        unsafe bytes.withUnsafeBytes { buffer in
            var offset = 0
            while offset < buffer.count {
                let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[offset...])
                let count = unsafe writeSome(descriptor, rest)
                if count > 0 {
                    offset += count
                } else if errno == EAGAIN {
                    // Another process that shares the descriptor made it non-blocking: wait for
                    // room.
                    var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    _ = unsafe poll(&request, 1, -1)
                } else if errno != EINTR {
                    let code = errno
                    guard code != EPIPE else {
                        firstError.isClosed.store(true, ordering: .relaxed)
                        return
                    }
                    firstError.code.withLock { $0 = $0 ?? code }
                    return
                }
            }
        }
    }
}

/// Calls the system function, which the name `FileOutput.write` hides.
private func writeSome(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
    unsafe write(descriptor, bytes.baseAddress, bytes.count)
}
