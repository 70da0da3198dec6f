import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Where lines go: a terminal, a pipe, or a test's array.
package protocol TerminalOutput: Sendable {
    /// Columns and rows of the terminal now; `nil` if there is none or it does not say.
    func size() -> TerminalSize?

    /// Whether a write would be taken at once. A terminal that was stopped (Ctrl-S) takes nothing.
    func isWritable() -> Bool

    /// Writes all of it, or nothing more once the other side is gone: nobody is there to tell.
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

/// An open file of this process: standard output or standard error. It does not own the
/// descriptor, which lives as long as the process.
package struct FileOutput: TerminalOutput {
    private let descriptor: Int32

    private let firstError = FirstError()

    /// Shared by the copies of one output.
    private final class FirstError: Sendable {
        let code = Mutex<Int32?>(nil)
    }

    package static let standardOutput = FileOutput(descriptor: 1)
    package static let standardError = FileOutput(descriptor: 2)

    package init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    /// Whether it is a terminal.
    package var isTerminal: Bool { isatty(descriptor) == 1 }

    package func size() -> TerminalSize? {
        var size = winsize()
        let result = unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size)
        guard result == 0, size.ws_col > 0 else { return nil }
        return TerminalSize(columns: Int(size.ws_col), rows: Int(size.ws_row))
    }

    package func isWritable() -> Bool {
        var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        // An error is left to `write` to find.
        return unsafe poll(&request, 1, 0) != 0
    }

    /// Why the first write failed that did, in the system's words. A reader who has left is no
    /// failure.
    package var failure: String? {
        firstError.code.withLock { $0 }.map { code in
            unsafe strerror(code).map { unsafe String(cString: $0) } ?? "error \(code)"
        }
    }

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
                    // The descriptor was made non-blocking by whoever shares it: wait for room.
                    var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    _ = unsafe poll(&request, 1, -1)
                } else if errno != EINTR {
                    let code = errno
                    guard code != EPIPE else { return }
                    firstError.code.withLock { $0 = $0 ?? code }
                    return
                }
            }
        }
    }
}

/// The system call, which `FileOutput.write` hides by its name.
private func writeSome(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
    unsafe write(descriptor, bytes.baseAddress, bytes.count)
}
